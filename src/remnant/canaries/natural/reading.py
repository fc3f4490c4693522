"""Text files of any size, a piece at a time; what is no text is told apart."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remnant.canaries.natural.match import LONGEST
from remnant.errors import InvalidInput

BLOCK = 1 << 18  # characters read at once
KEPT = 2 * LONGEST  # characters of the piece before that stand before a piece again
_READ = 1 << 20
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
    found = "utf-8-sig"
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, position = 1, 0
    try:
        with path.open("rb") as file:
            while block := file.read(_READ):
                if position == 0:
                    _refuse_marks(path, block)
                if b"\0" in block:
                    raise InvalidInput(
                        f"{path} is a binary file: it holds a zero.", hint="Leave it out."
                    )
                if found == "utf-8-sig":
                    try:
                        decoder.decode(block)
                    except UnicodeDecodeError as fault:
                        if not latin_1:
                            line = lines + block[: fault.start].count(b"\n")
                            raise _not_utf_8(path, line) from None
                        found = "latin-1"
                lines += block.count(b"\n")
                position += len(block)
            if found == "utf-8-sig":
                try:
                    decoder.decode(b"", final=True)
                except UnicodeDecodeError:
                    if not latin_1:
                        raise _not_utf_8(path, lines) from None
                    found = "latin-1"
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None
    return found


def pieces_of(
    path: Path, encoding: str, *, block: int = BLOCK, kept: int = KEPT
) -> Iterator[Piece]:
    """Yield a file's pieces; together their new parts are the file.

    A piece ends with a line, but for lines longer than ``block``, which are cut so that what is not
    longer than half of ``kept`` stands whole in one piece.

    Guarantees:
        * No more than some ``block + kept`` characters are in memory, however long the lines are.

    Raises:
        InvalidInput: The file changed since its encoding was found, or cannot be read.
    """
    text, fresh, line, column = "", 0, 1, 1
    try:
        with path.open(encoding=encoding, newline="") as file:
            more = True
            while more:
                read = file.read(block)
                more = len(read) == block
                text += read
                until = len(text)
                if more:
                    ended = text.rfind("\n", fresh) + 1
                    until = ended or max(fresh, len(text) - kept)
                yield Piece(text, fresh, until, line, column)
                start = max(0, until - kept)
                line, column = _moved(text[:start], line, column)
                text, fresh = text[start:], until - start
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} changed while it was read.", hint="Try again.") from None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None


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
