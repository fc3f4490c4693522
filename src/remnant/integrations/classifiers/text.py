"""Hugging Face models that classify texts, or answer multiple-choice questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries.text_file import row_of
from remnant.errors import InvalidInput
from remnant.integrations.pretrained import (
    quiet,
    read_config,
    read_model,
    read_tokenizer,
    readable,
    usable,
)
from remnant.integrations.tokenizer import HuggingFaceTokenizer

KINDS = {("text", "label"): "AutoModelForSequenceClassification"}
KINDS[("prompt", "answer")] = "AutoModelForCausalLM"
# Tokenizers without a limit of their own give an absurd one.
_NO_LIMIT = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class TextSamples:
    """Texts as a model takes them.

    Attributes:
        inputs: Named tensors ``(n, tokens)``, padded at the right.
        labels: int64 ``(n,)``: the class, or the first token of the answer.
        name: The name of a label, for people.
        cut: Texts that were cut to the length that the model can take.
    """

    inputs: Mapping[str, Tensor]
    labels: NDArray[np.int64]
    name: Callable[[int], str]
    cut: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TextRows:
    """Rows of a file of JSON lines.

    Attributes:
        path: The file.
        fields: ``("text", "label")`` or ``("prompt", "answer")``, those of all rows.
        rows: One pair a row.
        lines: Where each stands, counted from 1.
    """

    path: Path
    fields: tuple[str, str]
    rows: tuple[tuple[Any, Any], ...]
    lines: tuple[int, ...]


def read_text_rows(path: str | Path) -> TextRows:
    """Read JSON lines with "text" and "label" (classes) or "prompt" and "answer" (questions).

    Raises:
        InvalidInput: The file cannot be read, holds no row, or a row lacks a field. Errors name
            lines and quote nothing of them.
    """
    where = Path(path)
    try:
        lines = where.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there.", hint="Check its path.") from None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8.") from None
    records = [(at, row_of(line)) for at, line in enumerate(lines, start=1) if line.strip()]
    if not records:
        raise InvalidInput(f"{path} holds no row.")
    first = records[0][1] or {}
    fields = next((pair for pair in KINDS if set(pair) <= set(first)), None)
    if fields is None:
        raise InvalidInput(
            f"{path}, line {records[0][0]} is no row with text and label, or prompt and answer.",
            hint='Write lines such as {"text": "...", "label": 0}.',
        )
    rows = []
    for at, row in records:
        if row is None or not set(fields) <= set(row):
            raise InvalidInput(f"{path}, line {at} is no row with {fields[0]} and {fields[1]}.")
        if not isinstance(row[fields[0]], str) or not row[fields[0]]:
            raise InvalidInput(f"{path}, line {at}: {fields[0]} is no text, or empty.")
        rows.append((row[fields[0]], row[fields[1]]))
    return TextRows(where, fields, tuple(rows), tuple(at for at, _ in records))


def load_text_model(
    folder: str | Path, rows: TextRows, *, device: str | torch.device = "cpu"
) -> nn.Module:
    """Read the model of a folder that can take these rows, in float32.

    Raises:
        InvalidInput: The folder or its weights cannot be read, or its head is of another kind.
        MissingExtra: transformers is not installed.
    """
    read = read_model(folder, kind=KINDS[rows.fields], device=device, dtype=torch.float32)
    if getattr(read.config, "pad_token_id", None) is None:
        read.config.pad_token_id = _pad(read.config, read_tokenizer(folder))
    model: nn.Module = read
    return model


def text_samples(folder: str | Path, rows: TextRows) -> TextSamples:
    """Make tokens of the rows, as the model of the folder takes them.

    Texts to classify get the tokenizer's own special tokens and are cut to the length that the
    model can take. A question is read up to the end of its prompt, after the special tokens that
    come before a text; its label is the first token of the answer as it stands behind the prompt.

    Raises:
        InvalidInput: A label that the model does not have, an answer that does not begin with a
            token of its own, two answers that begin with the same token, a question that is too
            long.
        MissingExtra: transformers is not installed.
    """
    config, tokenizer = read_config(folder), read_tokenizer(folder)
    if rows.fields[0] == "prompt":
        ids, labels = _questions(rows, tokenizer, _limit(config, tokenizer))
        return TextSamples(
            _padded({"input_ids": ids}, _pad(config, tokenizer)),
            np.array(labels, dtype=np.int64),
            lambda token: str(tokenizer.decode([token])).strip(),
        )
    with readable(folder, "configuration"):
        numbers = {str(name): int(number) for name, number in config.label2id.items()}
    names = {number: name for name, number in numbers.items()}
    labels = [_class(label, numbers, rows, at) for at, (_, label) in enumerate(rows.rows)]
    limit = _limit(config, tokenizer)
    with quiet(), usable():
        encoded = tokenizer(
            [text for text, _ in rows.rows],
            truncation=limit is not None,
            max_length=limit,
            return_attention_mask=False,
            verbose=False,
        )
        full = [at for at, ids in enumerate(encoded["input_ids"]) if len(ids) == limit]
        whole = tokenizer([rows.rows[at][0] for at in full], verbose=False) if full else None
    longer = [] if whole is None or limit is None else whole["input_ids"]
    cut = sum(len(ids) > (limit or 0) for ids in longer)
    padded = _padded(dict(encoded), _pad(config, tokenizer))
    return TextSamples(
        padded, np.array(labels, dtype=np.int64), lambda label: names.get(label, str(label)), cut
    )


def _class(label: Any, numbers: Mapping[str, int], rows: TextRows, at: int) -> int:
    if isinstance(label, int) and not isinstance(label, bool):
        return label
    if isinstance(label, str) and label in numbers:
        return numbers[label]
    if isinstance(label, str) and label.isdecimal() and len(label) < 10:  # of a table
        return int(label)
    known = ", ".join(sorted(numbers, key=lambda name: numbers[name])[:5])
    raise InvalidInput(
        f"{rows.path}, line {rows.lines[at]}: label is neither a whole number nor a label of the "
        "model.",
        hint=f"Its labels are, among others: {known}.",
    )


def _questions(
    rows: TextRows, tokenizer: Any, limit: int | None
) -> tuple[list[list[int]], list[int]]:
    leading = list(HuggingFaceTokenizer(tokenizer).leading)

    def tokens(text: str) -> list[int]:
        with usable():
            made = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return [int(token) for token in made]

    ids, labels = [], []
    answers: dict[int, str] = {}
    for at, (prompt, answer) in zip(rows.lines, rows.rows, strict=True):
        if not isinstance(answer, str) or not answer:
            raise InvalidInput(f"{rows.path}, line {at}: answer is no text, or empty.")
        before, whole = tokens(prompt), tokens(prompt + answer)
        if len(whole) <= len(before) or whole[: len(before)] != before:
            raise InvalidInput(
                f"{rows.path}, line {at}: the answer does not begin with a token of its own behind "
                "the prompt.",
                hint="Let the prompt end without a blank and the answer begin with it, as the "
                "model was trained.",
            )
        if limit is not None and len(leading) + len(before) > limit:
            raise InvalidInput(
                f"{rows.path}, line {at}: the prompt has {len(leading) + len(before)} tokens, and "
                f"the model takes {limit}."
            )
        token = whole[len(before)]
        if answers.setdefault(token, answer) != answer:
            raise InvalidInput(
                f"{rows.path}, line {at}: its answer and another one begin with the same token.",
                hint="Use answers that differ in their first token, such as letters.",
            )
        ids.append(leading + before)
        labels.append(token)
    return ids, labels


def _limit(config: Any, tokenizer: Any) -> int | None:
    """The most tokens that the model takes, where that is known."""
    text = config.get_text_config()
    given = [tokenizer.model_max_length, getattr(text, "max_position_embeddings", None)]
    known = [
        int(length) for length in given if type(length) in (int, float) and 0 < length < _NO_LIMIT
    ]
    return min(known, default=None)


def _pad(config: Any, tokenizer: Any) -> int:
    for name in ("pad_token_id", "eos_token_id"):
        for owner in (config, tokenizer):
            token = getattr(owner, name, None)
            if type(token) is int and token >= 0:
                return token
    return 0


def _padded(given: Mapping[str, Sequence[Sequence[int]]], pad: int) -> dict[str, Tensor]:
    """The tokens in tensors, and a mask that says which of them are there."""
    lengths = torch.tensor([len(row) for row in given["input_ids"]])
    if int(lengths.min()) == 0:
        raise InvalidInput(f"text {int(lengths.argmin())} has no token.")
    shape = (len(lengths), int(lengths.max()))
    made = {
        name: torch.full(shape, pad if name == "input_ids" else 0, dtype=torch.long)
        for name in given
    }
    for name, rows in given.items():
        for at, row in enumerate(rows):
            made[name][at, : len(row)] = torch.tensor(row, dtype=torch.long)
    made["attention_mask"] = (torch.arange(shape[1]) < lengths[:, None]).long()
    return made
