"""Texts in the fields of JSON and CSV files, row by row, as a reader of the data gets them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from remnant.errors import InvalidInput

LONGEST_ROW = 1 << 24  # characters; memory grows with the longest row, not with the file
LONG_NUMBER = 12  # digits: whole numbers from here on may be cards, and are read as text
_ENDINGS = {
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
}
_DELIMITERS = ",;\t|"
_PLAIN_NAME = re.compile(r"[A-Za-z_ .-]{0,20}")  # too short for a secret, and without a digit
_COLUMN_NAME = re.compile(r"[^\W\d]\w*(?:[ ./-]\w+){0,3}")
_LONGEST_COLUMN_NAME = 40
_LIST_PLACE = re.compile(r"\[[0-9]+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_READ = 1 << 18
_AS_TEXT = "Fix the file, or set as_text= to read it as plain text."
_CHOOSE = "Choose other fields with fields=, or set as_text= to read the file as plain text."


class _Number(str):
    """The digits of a whole number."""

    __slots__ = ()


class _Cells(dict[str, str]):
    """The cells of a table's row, whose names belong to the table."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number)


class FieldText(NamedTuple):
    """The text of one field.

    Attributes:
        text: Without the escapes of its file. Not shown by ``repr``.
        line: Where its row begins, from 1.
        row: Number of the row, from 1; 0 for the header of a table.
        field: Names and places that lead to it, such as ``messages[1].content``; empty for a row
            that is a text itself.
    """

    text: str
    line: int
    row: int
    field: str

    def __repr__(self) -> str:
        return f"FieldText(line={self.line}, row={self.row})"

    @property
    def name(self) -> str:
        """The last name of the field."""
        return _LIST_PLACE.sub("", self.field).rpartition(".")[2]


class RowCount:
    """Counts the rows of a file while they are read, and checks that they have the fields.

    Args:
        path: The file, for errors.
        fields: Those that were chosen; empty for all.
        needs_text: Whether a file whose rows have no text is refused.

    Attributes:
        rows: All rows so far, without the header and blank lines.
        without_text: Those whose fields hold no text.
        first_without_text: The line of the first of them; None where all have text.
    """

    def __init__(self, path: Path, fields: Sequence[str] = (), *, needs_text: bool = True) -> None:
        self.rows = 0
        self.without_text = 0
        self.first_without_text: int | None = None
        self._path = path
        self._fields = fields
        self._needs_text = needs_text
        self._seen: set[str] = set()

    def check_fields(self, line: int, values: Any) -> None:
        """Check that a row has one of the fields.

        Raises:
            InvalidInput: It has none.
        """
        present = [name for name in self._fields if next(_selected(values, name), None)]
        self._seen.update(present)
        if self._fields and not present:
            raise _fault(self._path, line, _no_field(self._fields, values), hint=_CHOOSE)

    def add(self, line: int, *, has_text: bool) -> None:
        """Count a row that begins at a line."""
        self.rows += 1
        if not has_text:
            self.without_text += 1
            self.first_without_text = self.first_without_text or line

    def check_all(self) -> None:
        """Check the file as a whole, after its last row.

        Raises:
            InvalidInput: No row has text, or a field is in none of them.
        """
        if self._needs_text and self.rows and self.without_text == self.rows:
            said = "has no text, and no other row has any"
            raise _fault(self._path, self.first_without_text or 1, said, hint=_CHOOSE)
        unused = [name for name in self._fields if name not in self._seen]
        if self.rows and unused:
            raise InvalidInput(f"{self._path}: no row has the field {unused[0]!r}.", hint=_CHOOSE)


def layout_of(path: Path) -> str | None:
    """Return how a file is laid out, by its name: ``"json lines"``, ``"json"`` or ``"csv"``.

    Returns:
        None for plain text.
    """
    return _ENDINGS.get(path.suffix.lower())


def check_rows(path: Path, encoding: str, layout: str) -> None:
    """Check that all rows of a file can be read by field.

    Raises:
        InvalidInput: A row cannot be read.
    """
    for _ in _rows(path, encoding, layout):
        pass


def fields_of(
    path: Path,
    encoding: str,
    layout: str,
    *,
    fields: Sequence[str] = (),
    count: RowCount | None = None,
) -> Iterator[FieldText]:
    """Yield the texts of a file in order: of all fields, or of some and of what is inside them.

    Names of fields are texts too where they are long or have digits, as those of a table whose
    header is data. Whole numbers of ``LONG_NUMBER`` digits or more are texts, shorter ones are not.

    Args:
        path: The file.
        encoding: Of ``encoding_of``.
        layout: Of ``layout_of``.
        fields: Names, such as ``text``, or paths, such as ``messages.content``; empty for all.
        count: Counts and checks the rows.

    Raises:
        InvalidInput: A row cannot be read or has none of the fields; a field is in no row; or no
            row has text. The message names the file and the line.
    """
    count = RowCount(path, fields) if count is None else count
    for row, line, values in _rows(path, encoding, layout):
        if row == 0:
            header = () if fields else values.items()
            yield from (FieldText(text, line, row, name) for name, text in header)
            continue
        count.check_fields(line, values)
        has_text = False
        for field, text in _texts(values, fields):
            has_text = True
            yield FieldText(text, line, row, field)
        count.add(line, has_text=has_text)
    count.check_all()


def _texts(values: Any, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each field under a value, in order."""
    chosen = [pair for name in fields for pair in _selected(values, name)]
    waiting: list[tuple[str, Any]] = chosen[::-1] if fields else [("", values)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Number):
            if len(value.lstrip("-")) >= LONG_NUMBER:
                yield path, str(value)
        elif isinstance(value, str):
            if value:
                yield path, without_surrogates(value)
        elif isinstance(value, dict):
            for name in () if isinstance(value, _Cells) else value:
                if not is_plain_name(name):
                    yield f"{path} (name of a field)".lstrip(), without_surrogates(name)
            before = f"{path}." if path else ""
            if all(type(inner) is str for inner in value.values()):
                for name, inner in value.items():
                    if inner:
                        yield before + name, without_surrogates(inner)
                continue
            waiting += [(before + name, inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            places = range(len(value) - 1, -1, -1)
            waiting += [(f"{path}[{place}]", value[place]) for place in places]


@lru_cache(maxsize=4096)
def is_plain_name(name: str) -> bool:
    """Whether a field's name is too short for a secret and has no digit."""
    return _PLAIN_NAME.fullmatch(name) is not None


def without_surrogates(text: str) -> str:
    """Return a text in which halves of a pair, which are no characters, are replaced."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _selected(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of a field, which may be a path through objects and lists.

    A path into an empty list gives None: the field is there, and has no text.

    Example:
        >>> list(_selected({"chat": [{"said": "a"}, {"said": "b"}]}, "chat.said"))
        [('chat[0].said', 'a'), ('chat[1].said', 'b')]
    """
    if isinstance(value, dict) and name in value:
        yield name, value[name]
        return
    nodes = [("", value)]
    empty = False
    for part in name.split("."):
        inner = []
        empty |= any(node == [] for _, node in nodes)
        for path, node in _without_lists(nodes):
            if isinstance(node, dict) and part in node:
                inner.append((f"{path}.{part}" if path else part, node[part]))
        nodes = inner
    yield from nodes
    if empty and not nodes:
        yield name, None


def _without_lists(nodes: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    waiting = nodes[::-1]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, list):
            places = range(len(node) - 1, -1, -1)
            waiting += [(f"{path}[{place}]", node[place]) for place in places]
        else:
            yield path, node


def _rows(path: Path, encoding: str, layout: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the number, first line and value of each row; a table's header has the number 0."""
    reader: dict[str, Callable[[Path, TextIO], Iterator[tuple[int, int, Any]]]] = {
        "json lines": _json_lines,
        "json": _json_document,
        "csv": _table,
    }
    try:
        with path.open(encoding=encoding, newline="") as file:
            yield from reader[layout](path, file)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} changed while it was read.", hint="Try again.") from None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    number = 1
    while line := file.readline(LONGEST_ROW + 1):
        if len(line) > LONGEST_ROW:
            raise _fault(path, number, f"is longer than {LONGEST_ROW} characters")
        yield line
        number += 1


def _json_lines(path: Path, file: TextIO) -> Iterator[tuple[int, int, Any]]:
    row = 0
    for number, line in enumerate(_lines(path, file), start=1):
        if line.isspace():
            continue
        row += 1
        try:
            yield row, number, _DECODER.decode(line)
        except json.JSONDecodeError as fault:
            said = f"is not JSON ({fault.msg.removesuffix(' at')}, column {fault.colno})"
            raise _fault(path, number, said) from None
        except RecursionError:
            raise _fault(path, number, "is nested too deeply") from None


def _json_document(path: Path, file: TextIO) -> Iterator[tuple[int, int, Any]]:
    """Yield the elements of a list, or values that follow each other, one after another."""
    source = _Source(path, file)
    row = 0
    if source.peek() != "[":
        while source.peek():
            row += 1
            yield row, source.line, source.value()
        return
    source.skip()
    while (sign := source.peek()) != "]":
        if row:
            if sign != ",":
                raise source.fault("a comma or ] is missing after a row")
            source.skip()
            source.peek()
        row += 1
        yield row, source.line, source.value()
    source.skip()
    if source.peek():
        raise source.fault("there is more text after the list")


class _Source:
    """Reads JSON values one after another, with no more in memory than the next one needs."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._text = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def peek(self) -> str:
        """Return the next character that is no blank, which stays; empty at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in " \t\r\n":
                    return character
                self.line += character == "\n"
                self._at += 1
            if not self._more(_READ):
                return ""

    def skip(self) -> None:
        """Leave out one character."""
        self._at += 1

    def value(self) -> Any:
        """Return the next value."""
        wanted = _READ
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                # A number at the end of what was read may go on.
                if end - self._at <= LONGEST_ROW and (end < len(self._text) or self._ended):
                    self.line += self._text.count("\n", self._at, end)
                    self._at = end
                    return value
            except json.JSONDecodeError as fault:
                if self._ended:
                    self.line += self._text.count("\n", self._at, fault.pos)
                    raise self.fault(fault.msg.removesuffix(" at")) from None
            except RecursionError:
                raise self.fault("it is nested too deeply") from None
            if len(self._text) - self._at > LONGEST_ROW:
                said = f"is not JSON, or a row is longer than {LONGEST_ROW} characters"
                raise _fault(self._path, self.line, said)
            self._more(wanted)
            wanted *= 2

    def fault(self, said: str) -> InvalidInput:
        """Return the error for text that is not JSON at the present line."""
        return _fault(self._path, self.line, f"is not JSON ({said})")

    def _more(self, characters: int) -> bool:
        read = "" if self._ended else self._file.read(characters)
        self._ended = not read
        self._text, self._at = self._text[self._at :] + read, 0
        return bool(read)


def _table(path: Path, file: TextIO) -> Iterator[tuple[int, int, Any]]:
    names: list[str] | None = None
    row = 0
    for line, cells in _cells(path, file):
        if names is None:
            names = header_names(cells)
            if names:
                yield 0, line, _Cells(zip(names, cells, strict=True))
                continue
        row += 1
        extra = (f"column {place}" for place in range(len(names) + 1, len(cells) + 1))
        yield row, line, _Cells(zip([*names, *extra], cells, strict=False))


def _cells(path: Path, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row, and leave blank lines out."""
    lines = _lines(path, file)
    first = next(lines, "")
    delimiter = delimiter_of(path, first)

    def all_lines() -> Iterator[str]:
        yield first
        yield from lines

    reader = csv.reader(all_lines(), delimiter=delimiter, strict=True)
    begins = 1
    before = csv.field_size_limit(LONGEST_ROW)  # of the whole process, so it is put back
    try:
        for cells in reader:
            if cells:
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as fault:
        raise _fault(path, begins, f"is not CSV ({fault})") from None
    finally:
        csv.field_size_limit(before)


def delimiter_of(path: Path, first_line: str) -> str:
    """Return what separates the cells of a table, by its name and its first line."""
    return max(_DELIMITERS, key=first_line.count) if path.suffix.lower() == ".csv" else "\t"


def header_names(cells: Sequence[str]) -> list[str]:
    """Return the names in a table's first row; empty where that row looks like data."""
    names = [cell.strip() for cell in cells]
    plain = all(
        len(name) <= _LONGEST_COLUMN_NAME and _COLUMN_NAME.fullmatch(name) for name in names
    )
    return names if plain and len(set(names)) == len(names) else []


def _no_field(fields: Sequence[str], values: Any) -> str:
    named = ", ".join(map(repr, fields))
    said = f"has no field {named}" if len(fields) == 1 else f"has none of the fields {named}"
    # A name that could be a secret is not shown.
    names = (
        [name for name in values if _PLAIN_NAME.fullmatch(name)] if isinstance(values, dict) else []
    )
    return f"{said}; it has {', '.join(names[:10])}" if names else said


def _fault(path: Path, line: int, said: str, *, hint: str = _AS_TEXT) -> InvalidInput:
    return InvalidInput(f"{path}, line {line}: the row {said}.", hint=hint)
