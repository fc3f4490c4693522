"""Putting canaries into a text file or JSON lines, each copy on a line of its own."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from remnant.canaries.already_present import Standing
from remnant.canaries.canary_set import CanarySet
from remnant.canaries.insertion import Where, place_canaries
from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput


def row_of(line: str) -> dict[str, Any] | None:
    """Return the object that a line of JSON holds; None where it is anything else.

    Example:
        >>> row_of('{"text": "a"}'), row_of("[1]"), row_of("plain text")
        ({'text': 'a'}, None, None)
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def new_row(field: str, text: str) -> str:
    """Return a line of JSON that holds one text, without the line's ending.

    Example:
        >>> new_row("text", 'say "é"')
        '{"text": "say \\\\"é\\\\""}'
    """
    return json.dumps({field: text}, ensure_ascii=False)


def escaped(text: str) -> str:
    """Return a text as it stands between the quotes of JSON.

    Guarantees:
        * A part of a text is written as a part of what the text is written as.
    """
    return json.dumps(text, ensure_ascii=False)[1:-1]


def rewritten(line: str) -> str:
    """Return a line of JSON with every text written as ``escaped`` writes it."""
    row = row_of(line)
    return line if row is None else json.dumps(row, ensure_ascii=False)


_MARK = "\ufeff"  # the byte-order mark that some editors put before UTF-8


def insert_into_file(
    source: str | Path,
    destination: str | Path,
    canary_set: CanarySet,
    *,
    rng: np.random.Generator | None = None,
    positions: ArrayLike | None = None,
    field: str | None = None,
    mode: int | None = None,
) -> Where:
    """Copy a text file in UTF-8 and insert canaries, each copy as a line of its own.

    A file whose lines are all JSON objects needs ``field``, and gets whole rows of JSON.

    The file is read line by line, twice, and never held in memory.

    Args:
        source: The file to read; it is left as it is.
        destination: The file to write. It takes the place of what is there once it is complete,
            with the permissions of ``source``.
        canary_set: What is planted.
        rng: Places the copies at random line boundaries; see ``place_canaries``.
        positions: Or, for each copy, the line (from 0) before which it goes.
        field: For JSON lines: each copy is a row with the canary's text in this field, and no other
            field.
        mode: Permissions of the new file; those of ``source`` where none are given.

    Guarantees:
        * The lines that are not at ``where`` are those of ``source``, byte for byte. Line endings
          are the file's own; a byte-order mark stays in front, and a file whose last line is not
          ended stays so.
        * Each canary stands there as often as its ``repeats``; no control does.

    Returns:
        ``where``: lines of the new file, counted from 0, and the canary on each.

    Raises:
        InvalidInput: ``source`` is empty, not text in UTF-8, or cannot be read; it is the
            destination too; a canary or a control stands in it already; a canary spans several
            lines of plain text; ``field`` is missing for JSON lines, out of place, or in no row; or
            see ``place_canaries``.
    """
    old, new = Path(source), Path(destination)
    if not old.is_file():
        raise InvalidInput(f"source={old} is not a file.")
    if old.resolve() == new.resolve() or (new.exists() and old.samefile(new)):
        raise InvalidInput(
            f"destination={new} is the source too.", hint="Write the canaries to another file."
        )
    texts = [canary.text for canary in canary_set.canaries]
    if field is not None:
        texts = [new_row(field, text) for text in texts]
    elif any("\n" in text or "\r" in text for text in texts):
        raise InvalidInput(
            "The canaries span several lines, and a file takes them as one line each.",
            hint="Take the line breaks out of the template.",
        )
    shape = _look_at(old)
    _check_field(old, shape, field)
    where = place_canaries(canary_set, among=shape.lines, rng=rng, positions=positions)
    kept = stat.S_IMODE(old.stat().st_mode) if mode is None else mode
    with writing_whole(new, mode=kept) as file:
        file.write(shape.mark.encode())
        looked = Standing(canary_set, written=None if field is None else escaped)
        for line in _merge(old, shape, dict(where.tolist()), texts, looked):
            file.write(line.encode())
        looked.refuse(f"source={old}")
    return where


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a text file is laid out.

    Attributes:
        lines: How many lines it has.
        splits_at: The character that ends its lines, or the last of the two.
        ending: The ending that new lines take: that of the first line.
        is_closed: Whether the last line has an ending.
        mark: What stands before the first line.
        fields: The fields that hold a text in some row of JSON lines; None for plain text.
    """

    lines: int
    splits_at: str
    ending: str
    is_closed: bool
    mark: str
    fields: frozenset[str] | None


def _check_field(path: Path, shape: _Shape, field: str | None) -> None:
    if shape.fields is None:
        if field is not None:
            raise InvalidInput(
                f"source={path} does not hold a JSON object on every line, and field={field!r} was "
                "given.",
                hint="Leave the field out for plain text.",
            )
    elif field is None:
        raise InvalidInput(
            f"source={path} holds JSON lines, and field= is missing.",
            hint="Name the field that holds the text, such as field='text'.",
        )
    elif field not in shape.fields:
        raise InvalidInput(
            f"field={field!r} holds a text in no row of source={path}.",
            hint="Name the field that holds the text of its rows.",
        )


def _look_at(path: Path) -> _Shape:
    try:
        for splits_at in ("\n", "\r"):
            shape = _measure(path, splits_at)
            if shape is not None:
                return shape
    except OSError as error:
        raise InvalidInput(f"source={path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise InvalidInput(f"source={path} is not text in UTF-8.") from None
    raise InvalidInput(f"source={path} is empty.", hint="Canaries go among other lines.")


def _measure(path: Path, splits_at: str) -> _Shape | None:
    """Read the whole file; None where it is empty or its lines end in another way."""
    count, first, last, mark = 0, "", "", ""
    fields: set[str] | None = set()
    rows = 0
    for last in _lines(path, splits_at):
        if count == 0:
            mark = _MARK if last.startswith(_MARK) else ""
            first = last
        if "\0" in last:
            raise InvalidInput(f"source={path} is a binary file: line {count + 1} holds a NUL.")
        count += 1
        if fields is not None and last.strip():
            row = row_of(last.removeprefix(_MARK) if count == 1 else last)
            rows += 1
            fields = None if row is None else fields | _texts_in(row)
    if first == mark:
        return None
    if count == 1 and not first.endswith("\n") and splits_at == "\n" and "\r" in first:
        return None
    ending = "\r\n" if first.endswith("\r\n") else splits_at if first.endswith(splits_at) else "\n"
    named = None if fields is None or rows == 0 else frozenset(fields)
    return _Shape(count, splits_at, ending, last.endswith(splits_at), mark, named)


def _texts_in(row: dict[str, Any]) -> set[str]:
    return {name for name, value in row.items() if isinstance(value, str)}


def _lines(path: Path, splits_at: str) -> Iterator[str]:
    # A newline that is given is the only one that splits, and nothing is translated.
    with path.open(encoding="utf-8", newline=splits_at) as file:
        yield from file


def _merge(
    path: Path, shape: _Shape, planted: dict[int, int], texts: list[str], looked: Standing
) -> Iterator[str]:
    """Yield the new file's lines, without its mark; the old ones are looked at."""
    lines = _lines(path, shape.splits_at)
    lines = chain([next(lines, "").removeprefix(shape.mark)], lines)
    last = shape.lines + len(planted) - 1
    for position in range(last + 1):
        line = texts[planted[position]] if position in planted else next(lines, "")
        if not line:
            raise _changed(path)
        if position not in planted:
            looked.look(line if shape.fields is None else rewritten(line))
        if not line.endswith(shape.splits_at) and (shape.is_closed or position < last):
            line += shape.ending
        yield line
    if next(lines, ""):
        raise _changed(path)


def _changed(path: Path) -> InvalidInput:
    return InvalidInput(f"source={path} changed while it was read.", hint="Try again.")
