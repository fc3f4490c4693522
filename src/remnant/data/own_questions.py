"""Multiple-choice questions and labelled texts from the user's own rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remnant.data.own_files import (
    Origin,
    OwnFiles,
    class_numbers,
    data_files,
    listed,
)
from remnant.data.question import LETTERS, MultipleChoice
from remnant.data.rows import ROW_ENDINGS, Row, class_names, has_rows, read_rows, text_values
from remnant.errors import InvalidInput, require

_HOW = {
    "choice": "the choice itself",
    "letter": "its letter",
    "place": "its place, counted from 0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFields:
    """Which fields of a row make a question.

    Attributes:
        question: The question.
        choices: One field with a list of choices, or several fields with one choice each.
        answer: The right choice: the choice itself, its letter, or its place counted from 0.
        text, label: In place of these, a text and its class; all classes are the choices.
    """

    question: str = "question"
    choices: tuple[str, ...] = ("choices",)
    answer: str = "answer"
    text: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question whose answer is not yet a place among the choices."""

    text: str
    choices: tuple[str, ...]
    answer: Any
    subject: str
    where: str


def own_questions(
    files: OwnFiles, fields: QuestionFields
) -> tuple[list[MultipleChoice], list[MultipleChoice] | None, Origin]:
    """Read questions from JSON lines, CSV or TSV.

    The answers of all rows are read in the same way: as the choice itself, as its letter (A, B,
    ...) or as its place from 0, whichever fits all rows.

    Returns:
        The questions to train on, the held-out ones or None, and the origin.

    Raises:
        InvalidInput: A file is missing, damaged or lacks a field; a row is no question; answers fit
            several ways that differ, or none.
    """
    if fields.text is not None and fields.label is not None:
        return _labelled(files, fields.text, fields.label)

    def read(path: Path) -> tuple[list[_Asked], Sequence[Path]]:
        places = _files(path)
        return [asked for place in places for asked in _asked(place, fields)], places

    train, later, origin = files.read(read)
    how = _reading([*train, *(later or [])], files)
    made = [
        None if part is None else [_question(asked, how) for asked in part]
        for part in (train, later)
    ]
    return made[0] or [], made[1], Origin(origin.files, answers=how)


def _files(path: Path) -> list[Path]:
    places = data_files(path, ROW_ENDINGS)
    strange = [place for place in places if not has_rows(place)]
    require(
        [f"{place} does not end in one of {', '.join(ROW_ENDINGS)}" for place in strange],
        hint="Save it as JSON lines or as a table with a header.",
    )
    return places


def _asked(path: Path, fields: QuestionFields) -> list[_Asked]:
    named = dict.fromkeys(fields.choices, "data.choices")
    named |= {fields.question: "data.question", fields.answer: "data.answer"}
    rows = read_rows(path, named)
    texts = text_values(path, rows, fields.question)
    made, faults = [], []
    for row, text in zip(rows, texts, strict=True):
        where = f"{path}, line {row.line}"
        choices = _choices(row, fields.choices)
        if choices is None:
            faults.append(
                f"{where}: {', '.join(map(repr, fields.choices))} hold no list of choices"
            )
        elif not text.strip() or not all(choices):
            faults.append(f"{where}: the question or a choice is blank")
        elif not 2 <= len(choices) <= len(LETTERS) or len(set(choices)) < len(choices):
            faults.append(f"{where}: there are not 2 to {len(LETTERS)} different choices")
        else:
            answer = row.fields[fields.answer]
            made.append(_Asked(text.strip(), choices, answer, path.stem, where))
    require(
        listed(faults),
        hint=f"Give 2 to {len(LETTERS)} different choices: a list in JSON lines, or a column for "
        'each, such as data.choices = ["a", "b"].',
    )
    return made


def _choices(row: Row, names: Sequence[str]) -> tuple[str, ...] | None:
    values = [row.fields[name] for name in names]
    given = values[0] if len(values) == 1 else values
    if not isinstance(given, list):
        return None
    plain = [str(value) if _is_plain(value) else "" for value in given]
    return tuple(text.strip() for text in plain)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _reading(questions: Sequence[_Asked], files: OwnFiles) -> str:
    """Return how all answers can be read.

    Raises:
        InvalidInput: In no way, or in several that differ.
    """
    places = {how: [_place(asked, how) for asked in questions] for how in _HOW}
    fitting = [how for how, found in places.items() if None not in found]
    if not fitting:
        best = max(_HOW, key=lambda how: sum(place is not None for place in places[how]))
        wrong = [
            asked.where
            for asked, place in zip(questions, places[best], strict=True)
            if place is None
        ]
        require(
            listed(f"{where}: the answer is not {_HOW[best]}, as others are" for where in wrong),
            hint="Write each answer as the choice itself, its letter, or its place from 0.",
        )
    if any(places[how] != places[fitting[0]] for how in fitting[1:]):
        raise InvalidInput(
            f"data.path: the answers of {files.path} can be read as "
            f"{' or as '.join(_HOW[how] for how in fitting)}.",
            hint="Write letters: A for the first choice, B for the second.",
        )
    return fitting[0]


def _place(asked: _Asked, how: str) -> int | None:
    """The place of the right choice, if the answer is read in this way."""
    answer = str(asked.answer).strip() if _is_plain(asked.answer) else ""
    if how == "place":
        named: Sequence[str] = [str(place) for place in range(len(asked.choices))]
    else:
        named = asked.choices if how == "choice" else LETTERS[: len(asked.choices)]
    return list(named).index(answer) if answer in list(named) else None


def _question(asked: _Asked, how: str) -> MultipleChoice:
    place = _place(asked, how)
    if place is None:  # ``_reading`` has seen to it
        raise InvalidInput(f"{asked.where}: the answer is not {_HOW[how]}.")
    return MultipleChoice(asked.text, asked.choices, place, asked.subject)


def _labelled(
    files: OwnFiles, text: str, label: str
) -> tuple[list[MultipleChoice], list[MultipleChoice] | None, Origin]:
    """Read texts with a class each; all classes are the choices."""
    left_out = 0

    def read(path: Path) -> tuple[list[tuple[str, str, str]], Sequence[Path]]:
        nonlocal left_out
        places, made = _files(path), []
        for place in places:
            rows = read_rows(place, {text: "data.text", label: "data.label"})
            texts, names = text_values(place, rows, text), class_names(place, rows, label)
            made += [
                (said.strip(), name, place.stem) for said, name in zip(texts, names, strict=True)
            ]
        kept = [row for row in made if row[0]]
        left_out += len(made) - len(kept)
        if not kept:
            raise InvalidInput(f"{path} has no text.", hint="Give rows with texts.")
        return kept, places

    train, later, origin = files.read(read)
    names = None if later is None else [name for _, name, _ in later]
    numbers, later_numbers, origin = class_numbers([name for _, name, _ in train], names, origin)
    classes = origin.classes
    if len(classes) > len(LETTERS):
        raise InvalidInput(
            f"data.path: {files.path} has {len(classes)} classes, more than the {len(LETTERS)} "
            "that a question may have.",
            hint="Join rare classes.",
        )

    def asked(rows: Sequence[tuple[str, str, str]], places: Sequence[int]) -> list[MultipleChoice]:
        return [
            MultipleChoice(said, classes, place, subject)
            for (said, _, subject), place in zip(rows, places, strict=True)
        ]

    held_out = None if later is None else asked(later, later_numbers or [])
    return asked(train, numbers), held_out, Origin(origin.files, classes, left_out=left_out)
