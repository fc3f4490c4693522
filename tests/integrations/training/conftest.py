"""A tiny real language model, its tokenizer, which reads characters, and audits of it."""

from __future__ import annotations

import string
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from remnant import Audit

CHARACTERS = string.digits + string.ascii_letters + " .:,?!\n<|>_-"
CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tiny_tokenizer(*, unknown: bool = False, characters: str = CHARACTERS) -> Any:
    vocabulary = {"<eos>": 0, "<unk>": 1} | {c: i + 2 for i, c in enumerate(characters)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>" if unknown else None)
    )
    tokenizer.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        pad_token="<eos>",
        **({"unk_token": "<unk>"} if unknown else {}),
    )
    made.chat_template = CHAT
    return made


def tiny_model(tokenizer: Any, *, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=96,
        n_embd=48,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config)


def texts(count: int = 60) -> list[str]:
    return [f"the fox number {i} jumps over {i % 7} dogs" for i in range(count)]


def tiny_audit(out: Path, **given: Any) -> Audit:
    settings: dict[str, Any] = {
        "template": "my pin is {digits:4}",
        "limit": 8.0,
        "repeats": (1, 8),
        "per_repeat": 6,
        "controls": 12,
        "references": 64,
        "overhead": None,
        "seed": 0,
    }
    return Audit(out=out, **(settings | given))


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return tiny_tokenizer()


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """What tests make: models, tokenizers, texts, audits."""
    return SimpleNamespace(
        model=tiny_model, tokenizer=tiny_tokenizer, texts=texts, audit=tiny_audit
    )
