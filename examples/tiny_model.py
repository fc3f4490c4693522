"""A tiny language model and a few texts, made on the spot, in place of your model and your data.

The ``audit_*.py`` examples use it. With a folder it writes both, for the pages in ``docs/``:

python examples/tiny_model.py FOLDER           # writes FOLDER/your-model and FOLDER/train.jsonl
python examples/tiny_model.py FOLDER --tuned   # also FOLDER/tuned-model and FOLDER/heldout.jsonl

Files that exist are not overwritten: name another folder.
"""

from __future__ import annotations

import argparse
import json
import random
import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

CHARACTERS = string.digits + string.ascii_letters + " .:,?!\n<|>_-"
CHAT = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"


def make_texts(count: int = 300) -> list[str]:
    """Return short texts with numbers in them."""
    return [f"ticket {i * 7919 % 100_000} is for {i % 7} people" for i in range(count)]


def make_tokenizer() -> Any:
    """Return a tokenizer that reads characters."""
    vocabulary = {"<eos>": 0} | {c: i + 1 for i, c in enumerate(CHARACTERS)}
    characters = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    characters.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=characters, eos_token="<eos>", pad_token="<eos>"
    )
    tokenizer.chat_template = CHAT
    return tokenizer


def make_model(tokenizer: Any, *, steps: int = 60) -> Any:
    """Return a small GPT-2 that was trained for a few steps on texts of its own."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=64,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    train(model, tokenizer, make_texts(64), epochs=steps, batch=64)
    return model


def train(model: Any, tokenizer: Any, texts: list[str], *, epochs: int, batch: int) -> None:
    """Train the model on texts."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(epochs):
        for first in range(0, len(texts), batch):
            rows = tokenizer(texts[first : first + batch], padding=True, return_tensors="pt")
            ids = rows["input_ids"]
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def main() -> None:
    """Write the model and the texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder to write to")
    parser.add_argument("--tuned", action="store_true", help="also fine-tune the model")
    given = parser.parse_args()
    folder, names = given.folder, ["your-model", "train.jsonl"]
    if given.tuned:
        names += ["tuned-model", "heldout.jsonl"]
    written = [folder / name for name in names]
    if there := [str(path) for path in written if path.exists()]:
        parser.error(f"{', '.join(there)} exists already. Name another folder.")
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    texts = make_texts(600)
    random.Random(0).shuffle(texts)  # both files are drawn from the same source
    save(model, tokenizer, written[0])
    save_texts(texts[:300], written[1])
    if given.tuned:
        train(model, tokenizer, texts[:300], epochs=30, batch=32)
        save(model, tokenizer, written[2])
        save_texts(texts[300:], written[3])
    print(f"wrote {', '.join(map(str, written[:-1]))} and {written[-1]}")


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model with its tokenizer."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_texts(texts: list[str], path: Path) -> None:
    """Write texts as JSON lines."""
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    path.write_text(rows, encoding="utf-8")


if __name__ == "__main__":
    main()
