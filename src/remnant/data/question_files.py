"""Reads multiple-choice questions from JSON, JSON lines or CSV, as the published sets lay them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from remnant.data.question import LETTERS, MultipleChoice
from remnant.data.text import read_text
from remnant.errors import InvalidInput

_INSTRUCTION = re.compile(
    r"Please .*?question: (?P<text>.*?)\n\n(?:(?P<choices>Answer1: .*)\n\n)?"
    r"Answer format: (?P<names>\S+)\s*",
    re.DOTALL,
)
# What labels mean, in the parts of ETHICS and in sets of texts to be classified.
_MEANINGS = {
    "justice": ("unreasonable", "reasonable"),
    "deontology": ("unreasonable", "reasonable"),
    "virtue": ("does not fit", "fits"),
    "commonsense": ("not wrong", "wrong"),
    "sst2": ("negative", "positive"),
    "agnews": ("world", "sports", "business", "technology"),
}


def read_questions(path: Path) -> list[MultipleChoice]:
    """Read the questions of a file.

    Records of JSON, JSON lines or a table with a header are one of:

    * ``question``, ``choices`` (a list, or ``text`` and ``label`` as in ARC) and ``answer`` or
      ``answerKey``: a place, a label or the choice itself;
    * ``question``, ``choice0``, ``choice1``, ... and ``answer``, a place;
    * ``label`` (0 or 1) and ``scenario`` or ``input``, perhaps ``excuse``, as in ETHICS; or
      ``text`` that is to be classified, in tables without a header too (AG News, SST-2);
    * ``instruction``, with the choices in it as ``Answer1: ... Answer2: ...``, and ``answer``.

    Raises:
        InvalidInput: The file cannot be read, or a record is none of these.
    """
    text = read_text(path)
    subject = re.sub(r"_?(train|test|dev|val)$", "", path.stem)
    subject = path.parent.name if subject in ("", "cm") else subject
    questions = []
    try:
        records = list(_records(text, path.suffix))
    except (ValueError, csv.Error) as fault:
        raise InvalidInput(f"{path} is damaged: {fault}.") from fault
    for place, record in enumerate(records, start=1):
        try:
            questions.append(_question(record, subject))
        except (KeyError, ValueError, TypeError, IndexError, StopIteration) as fault:
            raise InvalidInput(
                f"{path}: record {place} is no multiple-choice question.",
                hint="It takes question, choices and answer; see read_questions.",
            ) from fault
    if not questions:
        raise InvalidInput(f"{path} holds no questions.")
    return questions


def _records(text: str, ending: str) -> Iterator[Any]:
    if ending == ".csv":
        bare = ("label", "text") if re.match(r"\d+,", text) else None
        yield from csv.DictReader(io.StringIO(text, newline=""), bare, strict=True)
    elif ending == ".tsv":
        for line in filter(str.strip, text.split("\n")):
            said, _, label = line.rpartition("\t")
            yield {"text": said, "label": label}
    elif text.lstrip().startswith("["):
        yield from json.loads(text)
    else:
        yield from (json.loads(line) for line in text.split("\n") if line.strip())


def _question(record: dict[str, Any], subject: str) -> MultipleChoice:
    if "instruction" in record:
        text, choices, answer = _instructed(record)
    elif "label" in record:
        text, choices, answer = _judged(record, subject)
    else:
        text, choices, answer = _plain(record)
    made = MultipleChoice(
        text.strip(), tuple(choice.strip() for choice in choices), answer, subject
    )
    if not made.text or not 2 <= len(made.choices) <= len(LETTERS) or not all(made.choices):
        raise ValueError("a part is empty")
    if not 0 <= made.answer < len(made.choices):
        raise IndexError(made.answer)
    return made


def _plain(record: dict[str, Any]) -> tuple[str, Sequence[str], int]:
    given = record.get("choices")
    if given is None:
        names = sorted(name for name in record if re.fullmatch(r"choice\d+", str(name)))
        choices, labels = [record[name] for name in names], []
    elif isinstance(given, dict):
        choices, labels = given["text"], given["label"]
    else:
        choices, labels = list(given), []
    answer = record["answer"] if "answer" in record else record["answerKey"]
    for known in (labels, list(map(str, range(len(choices)))), list(LETTERS), choices):
        if str(answer) in known:
            return record["question"], choices, known.index(str(answer))
    raise ValueError(answer)


def _judged(record: dict[str, Any], subject: str) -> tuple[str, Sequence[str], int]:
    text = next(record[name] for name in ("scenario", "input", "text") if name in record)
    parts = re.sub(r"\s*\[SEP\]\s*", "\nTrait: ", text), record.get("excuse") or ""
    known = _MEANINGS.get(subject.removesuffix("-subset"), ("no", "yes"))
    return "\n".join(filter(None, map(str.strip, parts))), known, int(record["label"])


def _instructed(record: dict[str, Any]) -> tuple[str, Sequence[str], int]:
    match = _INSTRUCTION.fullmatch(record["instruction"])
    if match is None:
        raise ValueError("an instruction of another kind")
    names = match["names"].split("/")
    choices = names if match["choices"] is None else _numbered(match["choices"])
    if len(choices) != len(names):
        raise ValueError("as many choices as names")
    return match["text"], choices, names.index(record["answer"])


def _numbered(choices: str) -> list[str]:
    return re.split(r"\s*Answer\d+: ", choices)[1:]
