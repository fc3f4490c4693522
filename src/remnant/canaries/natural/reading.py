"""Reads text of any size piece by piece, and recognises files that are not text.

A piece is a part of a plain file, or many short fields of a table that are searched together.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from remnant.canaries.natural.match import LONGEST, LONGEST_BLOCK, SHORTEST_RANDOM
from remnant.canaries.natural.rows import FieldText
from remnant.errors import InvalidInput

BLOCK = 1 << 18  # characters read at once
KEPT = 2 * LONGEST  # characters of the piece before that stand before a piece again
BINARY = "is a binary file: it holds a zero"
_READ = 1 << 20
# Between fields. No secret holds it, and what is next to it is the beginning or end of a line.
APART = "\n\0\n"
# A field that is one word, with a letter that no decimal has.
_ONE_WORD = re.compile(r"(?=\S*[A-DF-Za-df-z])[^\s\"'`\\]{8,2048}")
# Too short for a random string and without a digit or sign that other secrets have, or shorter.
_HARMLESS = re.compile(r"[A-Za-z_ .-]*|[^@]{0,6}")
_SIMPLE_NAME = re.compile("[A-Za-z0-9_ -]{1,64}")
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """A part of a file.

    Attributes:
        text: With the last ``KEPT`` characters of what came before. Not shown by ``repr``.
        fresh: Where it begins to be new: what begins before was looked at already.
        until: What begins here or later stands in the next piece too.
        line: Of the first character, from 1.
        column: Of the first character, from 1.
    """

    text: str
    fresh: int
    until: int
    line: int
    column: int

    def __repr__(self) -> str:
        return f"Piece(text=<{len(self.text)} characters>, line={self.line})"

    @property
    def characters(self) -> int:
        """How many new characters it has."""
        return self.until - self.fresh


def encoding_of(path: Path, *, latin_1: bool) -> str:
    """Return the encoding in which a file is text, after reading all of it.

    Args:
        path: The file.
        latin_1: Take Latin-1 for a file that is not in UTF-8; every file without zeros is.

    Returns:
        ``"utf-8-sig"``, which leaves a byte-order mark out, or ``"latin-1"``.

    Raises:
        InvalidInput: It is binary, in another encoding, or cannot be read.
    """
    encoding = "utf-8-sig"
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, position = 1, 0
    try:
        with path.open("rb") as file:
            while block := file.read(_READ):
                if position == 0:
                    _refuse_marks(path, block)
                if b"\0" in block:
                    raise InvalidInput(f"{path} {BINARY}.", hint="Leave it out.")
                if encoding == "utf-8-sig":
                    try:
                        decoder.decode(block)
                    except UnicodeDecodeError as fault:
                        if not latin_1:
                            line = lines + block[: fault.start].count(b"\n")
                            raise _not_utf_8(path, line) from None
                        encoding = "latin-1"
                lines += block.count(b"\n")
                position += len(block)
            if encoding == "utf-8-sig":
                try:
                    decoder.decode(b"", final=True)
                except UnicodeDecodeError:
                    if not latin_1:
                        raise _not_utf_8(path, lines) from None
                    encoding = "latin-1"
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None
    return encoding


def pieces_of(
    path: Path, encoding: str, *, block: int = BLOCK, kept: int = KEPT, longest: int = LONGEST_BLOCK
) -> Iterator[Piece]:
    """Yield a file's pieces; together their new parts are the file.

    The new part of a piece ends with a line, but for lines longer than ``block``. ``longest``
    characters follow it, so that a secret of that length which begins in it is whole.

    Guarantees:
        * No more than some ``block + kept + longest`` characters are in memory, however long the
          lines are.

    Raises:
        InvalidInput: The file changed since its encoding was found, or cannot be read.
    """
    try:
        with path.open(encoding=encoding, newline="") as file:
            yield from _pieces(file.read, block, kept, longest)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} changed while it was read.", hint="Try again.") from None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None


def _pieces(
    read: Callable[[int], str], block: int, kept: int = KEPT, longest: int = LONGEST_BLOCK
) -> Iterator[Piece]:
    text, fresh, line, column = "", 0, 1, 1
    more = True
    while more:
        added = read(block)
        more = len(added) == block
        text += added
        until = len(text)
        if more:
            furthest = len(text) - longest
            if furthest <= fresh:
                continue
            until = text.rfind("\n", fresh, furthest) + 1 or furthest
        yield Piece(text, fresh, until, line, column)
        start = max(0, until - kept)
        line, column = _moved(text[:start], line, column)
        text, fresh = text[start:], until - start


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Fields that are searched together, or a part of a long one.

    Attributes:
        text: All of them, with something between that belongs to no secret. Not shown by ``repr``.
        fresh, until: See ``Piece``.
        begins, ends: Where each field begins and ends in ``text``.
        fields: Each of them.
        characters: How many new characters of fields it has.
        passed: How many characters of the first field came before ``text``.
    """

    text: str
    fresh: int
    until: int
    begins: list[int]
    ends: list[int]
    fields: list[FieldText]
    characters: int
    passed: int = 0

    def __repr__(self) -> str:
        return f"Batch(text=<{len(self.text)} characters>, fields={len(self.fields)})"

    def field_at(self, start: int, end: int) -> int | None:
        """Return the number of the field that holds all of a part of the text; None without one."""
        number = bisect_right(self.begins, start) - 1
        return number if number >= 0 and end <= self.ends[number] else None


def batches_of(fields: Iterable[FieldText], *, block: int = BLOCK) -> Iterator[Batch]:
    """Yield fields in batches of some ``block`` characters; a longer field is cut into pieces.

    A field that is one word stands in quotes after its name, as in ``key = "..."``: patterns that
    look at names or quotes then find in fields what they find in text. Fields too short for a
    secret are counted and left out.
    """
    texts: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    gathered: list[FieldText] = []
    length = short = 0
    for field in fields:
        if len(field.text) < SHORTEST_RANDOM and _HARMLESS.fullmatch(field.text):
            short += len(field.text)
            continue
        if len(field.text) > max(block, LONGEST):
            yield from _pieces_of_field(field, block)
            continue
        before, after = _around(field)
        begins.append(length + len(before))
        ends.append(begins[-1] + len(field.text))
        gathered.append(field)
        texts += (before, field.text, after)
        length = ends[-1] + len(after)
        if length >= block:
            yield _batch(texts, begins, ends, gathered, short)
            texts, begins, ends, gathered, length, short = [], [], [], [], 0, 0
    if gathered or short:
        yield _batch(texts, begins, ends, gathered, short)


def _batch(
    texts: list[str], begins: list[int], ends: list[int], fields: list[FieldText], short: int
) -> Batch:
    text = "".join(texts)
    characters = sum(ends) - sum(begins) + short
    return Batch(text, 0, len(text), begins, ends, fields, characters)


def _around(field: FieldText) -> tuple[str, str]:
    """Return what stands before and after a field in a batch."""
    if not _ONE_WORD.fullmatch(field.text):
        return "", APART
    name = field.name if _SIMPLE_NAME.fullmatch(field.name) else "field"
    return f'{name} = "', f'"{APART}'


def _pieces_of_field(field: FieldText, block: int) -> Iterator[Batch]:
    passed = 0  # characters before the piece
    for piece in _pieces(StringIO(field.text, newline="").read, block):
        text, fresh, until = piece.text, piece.fresh, piece.until
        yield Batch(text, fresh, until, [0], [len(text)], [field], until - fresh, passed)
        passed += max(0, until - KEPT)


def _moved(text: str, line: int, column: int) -> tuple[int, int]:
    """Return line and column after a text that begins at these."""
    ended = text.count("\n")
    if ended:
        return line + ended, len(text) - text.rfind("\n")
    return line, column + len(text)


def _refuse_marks(path: Path, block: bytes) -> None:
    for mark, name in _MARKS.items():
        if block.startswith(mark):
            raise InvalidInput(
                f"{path} begins with the mark of {name}.", hint="Save it again in UTF-8."
            )


def _not_utf_8(path: Path, line: int) -> InvalidInput:
    return InvalidInput(
        f"{path} is not text in UTF-8, from line {line} on.",
        hint="Save it again in UTF-8, or set latin_1= to read it as Latin-1.",
    )
