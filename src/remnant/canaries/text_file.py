"""Putting canaries into a text file, each copy on a line of its own."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from remnant.canaries.canary_set import CanarySet
from remnant.canaries.insertion import Where, place_canaries
from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput

_MARK = "\ufeff"  # the byte-order mark that some editors put before UTF-8


def insert_into_file(
    source: str | Path,
    destination: str | Path,
    canary_set: CanarySet,
    *,
    rng: np.random.Generator | None = None,
    positions: ArrayLike | None = None,
) -> Where:
    """Copy a text file in UTF-8 and insert canaries, each copy as a line of its own.

    The file is read line by line, twice, and never held in memory.

    Args:
        source: The file to read; it is left as it is.
        destination: The file to write. It takes the place of what is there once it is complete,
            with the permissions of ``source``.
        canary_set: What is planted.
        rng: Places the copies at random line boundaries; see ``place_canaries``.
        positions: Or, for each copy, the line (from 0) before which it goes.

    Guarantees:
        * The lines that are not at ``where`` are those of ``source``, byte for byte. Line endings
          are the file's own; a byte-order mark stays in front, and a file whose last line is not
          ended stays so.
        * Each canary stands there as often as its ``repeats``; no control does.

    Returns:
        ``where``: lines of the new file, counted from 0, and the canary on each.

    Raises:
        InvalidInput: ``source`` is empty, not text in UTF-8, or cannot be read; it is the
            destination too; a canary spans several lines; or see ``place_canaries``.
    """
    old, new = Path(source), Path(destination)
    if not old.is_file():
        raise InvalidInput(f"source={old} is not a file.")
    if old.resolve() == new.resolve() or (new.exists() and old.samefile(new)):
        raise InvalidInput(
            f"destination={new} is the source too.", hint="Write the canaries to another file."
        )
    texts = [canary.text for canary in canary_set.canaries]
    if any("\n" in text or "\r" in text for text in texts):
        raise InvalidInput(
            "The canaries span several lines, and a file takes them as one line each.",
            hint="Take the line breaks out of the template.",
        )
    shape = _look_at(old)
    where = place_canaries(canary_set, among=shape.lines, rng=rng, positions=positions)
    with writing_whole(new, mode=stat.S_IMODE(old.stat().st_mode)) as file:
        file.write(shape.mark.encode())
        for line in _merge(old, shape, dict(where.tolist()), texts):
            file.write(line.encode())
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
    """

    lines: int
    splits_at: str
    ending: str
    is_closed: bool
    mark: str


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
    for last in _lines(path, splits_at):
        if count == 0:
            mark = _MARK if last.startswith(_MARK) else ""
            first = last
        if "\0" in last:
            raise InvalidInput(f"source={path} is a binary file: line {count + 1} holds a NUL.")
        count += 1
    if first == mark:
        return None
    if count == 1 and not first.endswith("\n") and splits_at == "\n" and "\r" in first:
        return None
    ending = "\r\n" if first.endswith("\r\n") else splits_at if first.endswith(splits_at) else "\n"
    return _Shape(count, splits_at, ending, last.endswith(splits_at), mark)


def _lines(path: Path, splits_at: str) -> Iterator[str]:
    # A newline that is given is the only one that splits, and nothing is translated.
    with path.open(encoding="utf-8", newline=splits_at) as file:
        yield from file


def _merge(path: Path, shape: _Shape, planted: dict[int, int], texts: list[str]) -> Iterator[str]:
    """Yield the new file's lines, without its mark."""
    lines = _lines(path, shape.splits_at)
    lines = chain([next(lines, "").removeprefix(shape.mark)], lines)
    last = shape.lines + len(planted) - 1
    for position in range(last + 1):
        line = texts[planted[position]] if position in planted else next(lines, "")
        if not line:
            raise _changed(path)
        if not line.endswith(shape.splits_at) and (shape.is_closed or position < last):
            line += shape.ending
        yield line
    if next(lines, ""):
        raise _changed(path)


def _changed(path: Path) -> InvalidInput:
    return InvalidInput(f"source={path} changed while it was read.", hint="Try again.")
