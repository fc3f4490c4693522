"""Tiny classifiers of texts and of images: trained on half of the records, on others, or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

WORDS = [f"w{number}" for number in range(60)]
LABELS = {"good": 0, "bad": 1}
SIDE = 12
Row = tuple[str, int]


def rows_of(count: int, rng: np.random.Generator, *, words: Sequence[str] = WORDS) -> list[Row]:
    """Texts of ten words; the class is that of their first word, wrong in a quarter of them."""
    made = []
    for _ in range(count):
        chosen = rng.choice(words, size=10).tolist()
        label = int(chosen[0][1:]) % 2
        made.append((" ".join(chosen), label if rng.random() > 0.25 else 1 - label))
    return made


def write_rows(path: Path, rows: Sequence[Row], **fields: str) -> Path:
    """JSON lines with the name of each class."""
    text, label = fields.get("text", "text"), fields.get("label", "label")
    names = {number: name for name, number in LABELS.items()}
    lines = [json.dumps({text: words, label: names[number]}) for words, number in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def tokenizer() -> Any:
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    made = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_max_length=16
    )


def bert(**options: Any) -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS) + 2,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        label2id=LABELS,
        id2label={number: name for name, number in LABELS.items()},
        **options,
    )
    return BertForSequenceClassification(config)


def trained_text(rows: Sequence[Row], *, epochs: int) -> Any:
    model = bert()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    ids = torch.tensor(tokenizer()([text for text, _ in rows])["input_ids"])
    labels = torch.tensor([label for _, label in rows])
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            optimizer.zero_grad()
            model(input_ids=ids[batch], labels=labels[batch]).loss.backward()
            optimizer.step()
    return model.eval()


def save_text(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class TextCase:
    """Folders of models, and files of rows."""

    home: Path
    seen: list[Row]
    unseen: list[Row]

    def options(self, model: str, *, reference: bool = True) -> list[object]:
        given: list[object] = ["--model", self.home / model, "--seen", self.home / "seen.jsonl"]
        given += ["--unseen", self.home / "unseen.jsonl"]
        return given + (["--reference-model", self.home / "reference"] if reference else [])


def text_case(home: Path) -> TextCase:
    """Models ``tuned`` (overfitted on seen rows), ``light``, ``reference`` and ``random``."""
    rng = np.random.default_rng(0)
    seen, unseen, others = (rows_of(count, rng) for count in (200, 200, 600))
    write_rows(home / "seen.jsonl", seen)
    write_rows(home / "unseen.jsonl", unseen)
    save_text(trained_text(seen, epochs=25), home / "tuned")
    save_text(trained_text([*seen, *others, *rows_of(2400, rng)], epochs=2), home / "light")
    save_text(trained_text(others, epochs=4), home / "reference")
    save_text(bert().eval(), home / "random")
    return TextCase(home, seen, unseen)


def images_of(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a brighter half, upper or lower, which is the class; wrong in a quarter."""
    labels = rng.integers(0, 2, size=count)
    images = rng.uniform(0.0, 0.6, size=(count, 1, SIDE, SIDE))
    for number, image in zip(labels, images, strict=True):
        image[0, number * 6 : number * 6 + 6] += 0.12
    flipped = np.where(rng.random(count) < 0.25, 1 - labels, labels)
    return (images * 255).astype(np.uint8), flipped


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 128), nn.ReLU(), nn.Linear(128, 2))


def trained_images(images: np.ndarray, labels: np.ndarray, *, epochs: int) -> nn.Module:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    inputs = torch.from_numpy(images.astype(np.float32) / 255)
    wanted = torch.from_numpy(labels)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[batch]), wanted[batch]).backward()
            optimizer.step()
    return model.eval()


def save_images(model: nn.Module, path: Path) -> Path:
    save_file(model.state_dict(), path)
    return path
