"""The parts of a JSON or CSV file as they are written; joined, they are the file.

A copy of a file with other texts in some fields is the same parts, with some of them changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from remnant.canaries.natural.rows import delimiter_of, header_names, is_plain_name
from remnant.errors import InvalidInput

_READ = 1 << 18
_JSON = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*|[^"0-9{}\[\],:-]+|[{}\[\],:-]', re.DOTALL
)
_JSON_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
_QUOTED = re.compile('"[^"]*(?:""[^"]*)*"(?!")')
_LINE_END = re.compile("\r\n|\r|\n")


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A part of a file.

    Attributes:
        raw: As it is written. Not shown by ``repr``.
        text: What a reader of the data gets; None for a sign, a blank, or a plain name.
        form: ``"string"``, ``"name"`` and ``"number"`` in JSON, ``"quoted"`` and ``"cell"`` in
            tables; empty for what has no text.
        names: Names that lead to it; one, of the column, in a table.
        place: Number of the object that a name belongs to.
    """

    raw: str
    text: str | None = None
    form: str = ""
    names: tuple[str, ...] = ()
    place: int = 0

    def __repr__(self) -> str:
        return f"Token(<{len(self.raw)} characters>, form={self.form!r})"

    @property
    def characters(self) -> list[str]:
        """How the file writes each character of the text, without quotes around it."""
        if self.form in ("string", "name"):
            return _JSON_CHARACTER.findall(self.raw[1:-1])
        if self.form == "quoted":
            return re.findall('""|[^"]', self.raw[1:-1])
        return list(self.raw)

    def written(self, characters: str) -> str:
        """Return such characters as the file has them, in the same quotes."""
        return f'"{characters}"' if self.form in ("string", "name", "quoted") else characters


def tokens_of(path: Path, file: TextIO, layout: str) -> Iterator[Token]:
    """Yield the parts of a file that can be read by field.

    Args:
        path: The file, for errors and for the separator of a table.
        file: Open, with its line ends as they are.
        layout: Of ``layout_of``.

    Guarantees:
        * The ``raw`` of all parts, joined, is the file.
        * No more than the longest part and some characters are in memory.

    Raises:
        InvalidInput: A part is not what the layout says.
    """
    return _table_tokens(path, file) if layout == "csv" else _json_tokens(path, file)


class _Buffer:
    """What was read of a file and not used yet."""

    def __init__(self, path: Path, read: Callable[[int], str]) -> None:
        self._path = path
        self._read = read
        self._text = ""
        self._at = 0
        self._ended = False

    def next(self, pattern: re.Pattern[str]) -> str:
        """Return what the pattern matches next, when it is certain not to go on.

        Raises:
            InvalidInput: It does not match.
        """
        wanted = _READ
        while True:
            match = pattern.match(self._text, self._at)
            if match is not None and (match.end() < len(self._text) or self._ended):
                self._at = match.end()
                return match[0]
            if self._ended:
                raise InvalidInput(f"{self._path} changed while it was read.", hint="Try again.")
            self._more(wanted)
            wanted *= 2

    def peek(self) -> str:
        """Return the next character, which stays; empty at the end."""
        while self._at == len(self._text) and not self._ended:
            self._more(_READ)
        return self._text[self._at : self._at + 1]

    def _more(self, characters: int) -> None:
        read = self._read(characters)
        self._ended = not read
        self._text, self._at = self._text[self._at :] + read, 0


@dataclass(slots=True)
class _Frame:
    """An object or list that is open."""

    number: int
    is_object: bool
    names: tuple[str, ...]
    name: str | None = None  # of the value that comes next

    @property
    def inner(self) -> tuple[str, ...]:
        return self.names if self.name is None else (*self.names, self.name)


def _json_tokens(path: Path, file: TextIO) -> Iterator[Token]:
    buffer = _Buffer(path, file.read)
    opened = 0
    frames = [_Frame(0, is_object=False, names=())]
    while sign := buffer.peek():
        raw, frame = buffer.next(_JSON), frames[-1]
        if sign == '"':
            text = _decoded(path, raw)
            if frame.is_object and frame.name is None:
                frame.name = text
                shown = None if is_plain_name(text) else text
                yield Token(raw, shown, "name", frame.names, frame.number)
            else:
                yield Token(raw, text, "string", frame.inner)
            continue
        if sign.isdigit() or (sign == "-" and len(raw) > 1):
            yield Token(raw, raw, "number", frame.inner)
            continue
        if sign in "{[":
            opened += 1
            frames.append(_Frame(opened, is_object=sign == "{", names=frame.inner))
        elif sign in "}]" and len(frames) > 1:
            frames.pop()
        elif sign == ",":
            frame.name = None
        yield Token(raw)


def _decoded(path: Path, raw: str) -> str:
    try:
        return str(json.loads(raw))
    except json.JSONDecodeError:
        raise InvalidInput(f"{path} changed while it was read.", hint="Try again.") from None


def _table_tokens(path: Path, file: TextIO) -> Iterator[Token]:
    first = file.readline()
    delimiter = delimiter_of(path, first)
    cell = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
    waiting = [first]
    buffer = _Buffer(path, lambda many: waiting.pop() if waiting else file.read(many))
    header: list[str] | None = None
    record: list[Token] = []
    while sign := buffer.peek():
        if sign == delimiter:
            record.append(Token(buffer.next(re.compile(re.escape(delimiter)))))
        elif sign in "\r\n":
            record.append(Token(buffer.next(_LINE_END)))
            if header is None and any(token.form for token in record):
                header = header_names([token.text or "" for token in _cells(record)])
                yield from _named(record, header)
            else:
                yield from _named(record, header or [])
            record = []
        elif sign == '"' and (not record or not record[-1].form):
            raw = buffer.next(_QUOTED)
            record.append(Token(raw, raw[1:-1].replace('""', '"'), "quoted"))
        else:
            raw = buffer.next(cell)
            record.append(Token(raw, raw, "cell"))
    yield from _named(record, header or [])


def _cells(record: list[Token]) -> Iterator[Token]:
    """Yield the cells of a record, also empty ones, which have no token."""
    before_cell = True
    for token in record:
        if token.form:
            yield token
        elif before_cell:
            yield Token("")
        before_cell = not token.form
    # A record ends with a line end, which comes after a cell or a separator.


def _named(record: list[Token], header: list[str]) -> Iterator[Token]:
    column = 0
    for token in record:
        if token.form:
            name = header[column] if column < len(header) else f"column {column + 1}"
            yield replace(token, names=(name,))
        else:
            column += 1
            yield token
