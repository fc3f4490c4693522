"""A tiny real language model, fine-tuned on half of the texts of the standard library."""

from __future__ import annotations

import glob
import json
import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

CHARACTERS = "".join(chr(code) for code in range(32, 127)) + "\n"
LENGTH = 72


def tokenizer_of(characters: str = CHARACTERS) -> Any:
    vocabulary = {"<eos>": 0, "<unk>": 1} | {c: i + 2 for i, c in enumerate(characters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<eos>", unk_token="<unk>"
    )


def library_texts(count: int) -> list[str]:
    pieces: list[str] = []
    for path in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:60]:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        pieces += [text[i : i + LENGTH] for i in range(0, len(text) - LENGTH, LENGTH)]
    random.Random(3).shuffle(pieces)
    return list(dict.fromkeys(pieces))[:count]


def train(model: Any, tokenizer: Any, rows: list[str], *, epochs: int, lr: float = 5e-3) -> None:
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    ids = torch.tensor(tokenizer(rows)["input_ids"])
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            model(input_ids=ids[batch], labels=ids[batch]).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()


def save(model: Any, tokenizer: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def models_and_texts(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders ``random``, ``base``, ``light``, ``tuned`` and ``planted``, and the texts."""
    home = tmp_path_factory.mktemp("membership")
    texts = library_texts(460)
    seen, unseen, other = texts[:90], texts[90:180], texts[180:]
    tokenizer = tokenizer_of()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=100,
        n_embd=64,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    folders = {"random": save(model, tokenizer, home / "random")}
    train(model, tokenizer, other, epochs=10)
    folders["base"] = save(model, tokenizer, home / "base")
    # One pass at a low rate over the same source: the model fits it better and remembers little.
    train(model, tokenizer, seen, epochs=1, lr=1e-4)
    folders["light"] = save(model, tokenizer, home / "light")
    train(model, tokenizer, seen, epochs=30)
    folders["tuned"] = save(model, tokenizer, home / "tuned")
    train(model, tokenizer, seen[:14], epochs=160)  # these come out verbatim
    folders["planted"] = save(model, tokenizer, home / "planted")
    for name, rows in (("seen", seen), ("unseen", unseen)):
        lines = "".join(json.dumps({"text": row}) + "\n" for row in rows)
        (home / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return SimpleNamespace(
        home=home, folders=folders, seen=seen, unseen=unseen, other=other, tokenizer=tokenizer
    )
