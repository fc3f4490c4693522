"""Rows with named fields: JSON lines, and tables (CSV, TSV) with a header."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remnant.data.own_files import listed
from remnant.data.text import read_text
from remnant.errors import InvalidInput, MissingField, require

JSON_LINES = (".jsonl", ".ndjson")
TABLES = {".csv": ",", ".tsv": "\t"}
ROW_ENDINGS = (*JSON_LINES, *TABLES)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}")


@dataclass(frozen=True, slots=True)
class Row:
    """Some fields of a row.

    Attributes:
        line: The number of its first line in the file, from 1.
        fields: The values by the name of their field: texts, or whatever JSON has.
    """

    line: int
    fields: Mapping[str, Any]


class NotJson:
    """What stands in for a line that is not JSON."""


def json_lines(lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line that is not blank, from 1, and its value.

    The value of a line that is not JSON, or is nested too deeply to be read, is ``NotJson``; the
    caller knows what its file is called.

    Example:
        >>> list(json_lines(['{"text": "a"}', "", "nope"]))[0]
        (1, {'text': 'a'})
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            yield number, NotJson


def has_rows(path: Path) -> bool:
    """Whether a file's ending says that it has rows with named fields."""
    return path.suffix.lower() in ROW_ENDINGS


def read_rows(path: Path, fields: Mapping[str, str]) -> list[Row]:
    """Read the rows of a file, each with the fields that are asked for.

    Blank lines are passed over. No error shows what a row says.

    Args:
        path: A file with one of ``ROW_ENDINGS``.
        fields: The names of the fields, each with the recipe's field that names it.

    Raises:
        InvalidInput: The file cannot be read, has no rows, or a row is damaged.
        MissingField: A row lacks a field.
    """
    text = read_text(path)
    if path.suffix.lower() in TABLES:
        rows = _table(path, text, fields)
    else:
        rows = _json_lines(path, text, fields)
    if not rows:
        raise InvalidInput(f"{path} has no rows.", hint="Give a file with rows.")
    return rows


def text_values(path: Path, rows: Sequence[Row], field: str) -> list[str]:
    """Return the texts of a field.

    Raises:
        InvalidInput: Some are no texts.
    """
    wrong = [row.line for row in rows if not isinstance(row.fields[field], str)]
    require(
        listed(f"{path}, line {line}: {field!r} is no text" for line in wrong),
        hint="Write texts in quotes, and leave out rows without one.",
    )
    return [row.fields[field] for row in rows]


def class_names(path: Path, rows: Sequence[Row], field: str) -> list[str]:
    """Return the classes of a field as texts; whole numbers are written as such.

    Raises:
        InvalidInput: Some are neither texts nor whole numbers.
    """
    names = [class_name(row.fields[field]) for row in rows]
    wrong = [row.line for row, name in zip(rows, names, strict=True) if name is None]
    require(
        listed(f"{path}, line {line}: {field!r} is no class" for line in wrong),
        hint="Write each class as a whole number or as its name.",
    )
    return [name for name in names if name is not None]


def class_name(value: Any) -> str | None:
    """Return a class as a text; None for what is neither a name nor a whole number.

    Example:
        >>> class_name(3.0), class_name("03"), class_name(" cat "), class_name(0.5)
        ('3', '3', 'cat', None)
    """
    if isinstance(value, str):
        name = value.strip()
        # Also -1 and 03, but no 0.5: a measurement is no class.
        if name.lstrip("+-").isdecimal():
            return str(int(name))
        return None if not name or _is_number(name) else name
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else None


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _json_lines(path: Path, text: str, fields: Mapping[str, str]) -> list[Row]:
    rows, faults, lacking = [], [], []
    for line, record in json_lines(text.split("\n")):
        if record is NotJson:
            faults.append(f"{path}, line {line}: this is not JSON")
            continue
        if not isinstance(record, dict):
            faults.append(f"{path}, line {line}: this is JSON, but no object with fields")
            continue
        missing = [name for name in fields if name not in record]
        if missing:
            known = f"it has {_field_names(record)}"
            lacking += [_missing(path, line, name, fields[name], known) for name in missing]
            continue
        rows.append(Row(line, {name: record[name] for name in fields}))
    if faults:
        require(listed(faults), hint="Write one JSON object a line.")
    require(
        listed(lacking),
        error=MissingField,
        hint="Name the field in the recipe, or add it to each line.",
    )
    return rows


def _field_names(record: Mapping[str, Any]) -> str:
    """The fields of a row, if all of them are names; anything else may be a text."""
    if not record or not all(_NAME.fullmatch(name) for name in record):
        return f"other fields ({len(record)})" if record else "no field"
    return ", ".join(list(record)[:10])


def _missing(path: Path, line: int, name: str, field: str, known: str) -> str:
    return f"{path}, line {line}: there is no field {name!r} ({field}); {known}"


def _table(path: Path, text: str, fields: Mapping[str, str]) -> list[Row]:
    records = _records(path, text)
    try:
        _, header = next(records)
    except StopIteration:  # blank lines alone
        return []
    names = [name.strip() for name in header]
    # The first line may hold data, which no error shows.
    missing = [
        f"{path}: none of the {len(names)} columns of its first line is called {name!r} ({field})"
        for name, field in fields.items()
        if name not in names
    ]
    require(
        missing,
        error=MissingField,
        hint="The first line must name the columns; name the right one in the recipe.",
    )
    twice = [f"{path}: two columns are called {name!r}" for name in fields if names.count(name) > 1]
    require(twice, hint="Give each column a name of its own.")
    rows, faults = [], []
    for line, cells in records:
        if len(cells) != len(names):
            faults.append(
                f"{path}, line {line}: this row has another number of columns ({len(cells)}) than "
                f"the first line ({len(names)})"
            )
            continue
        record = dict(zip(names, cells, strict=True))
        rows.append(Row(line, {name: record[name] for name in fields}))
    require(listed(faults), hint='Put quotes around texts with commas or line breaks: "a, b".')
    return rows


def _records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a table that are not blank, with the numbers of their first lines."""
    between = TABLES[path.suffix.lower()]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as fault:
        raise InvalidInput(
            f"{path}, line {line}: this row is damaged ({fault}).",
            hint="Write the file with a CSV library, or as JSON lines.",
        ) from fault
