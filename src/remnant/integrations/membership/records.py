"""Texts from files or lists, read as a stream; which of them are in both sets or there twice."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.rows import json_lines
from remnant.errors import InvalidInput
from remnant.integrations.chat_template import RefusedMessages
from remnant.studies.membership.result import AS_A_FIELD, NUMBERED, RefusedRows

TEXT, MESSAGES = "text", "messages"
_PAIR = ("prompt", "completion")
_LINES = (".jsonl", ".ndjson", ".json")
_TABLES = {".csv": ",", ".tsv": "\t"}
_LONGEST_FIELD = 1 << 27
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}")
_UTF8 = "Save it as UTF-8."


@dataclass(frozen=True, slots=True)
class TextSource:
    """Texts that can be read more than once, one at a time.

    Attributes:
        name: What errors call it, such as ``"seen"`` or ``"seen='train.jsonl'"``.
        texts: The texts; empty where they are in a file.
        path: A file of JSON lines, a CSV or TSV file with a header, or a text file with a text a
            line; or None.
        field: The field or column of the text. Without one it is ``text``, ``prompt`` and
            ``completion`` joined, or ``messages``.
        chat: Turns messages into the text that the model was trained on.
        group: The field that says which rows belong together, such as those of one document.
        refused: Why the chat template gives no text for a row, by its place: such rows are passed
            over. Filled as rows are read; a row that was refused once stays so.
    """

    name: str
    texts: Sequence[str] = ()
    path: Path | None = None
    field: str | None = None
    chat: Callable[[list[Any]], str] | None = None
    group: str | None = None
    refused: dict[int, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield the place of each text, counted from 1, and the text.

        Raises:
            InvalidInput: The file cannot be read, or a row is no text. Errors name the line and
                quote nothing of it.
        """
        if self.path is None:
            for place, text in enumerate(self.texts, start=1):
                if not isinstance(text, str):
                    raise InvalidInput(
                        f"{self.name} {place} is a {type(text).__name__}, not a text.",
                        hint="Pass a list of texts.",
                    )
                yield place, _checked(text, self.name, place)
            return
        for place, _, text in self._texts():
            yield place, text

    def keyed(self) -> Iterator[tuple[int, str, tuple[bytes, ...]]]:
        """Yield the place of each text, the text, and digests of it and of its group.

        Raises:
            InvalidInput: As when texts are read; or a row does not say which group it belongs to.
        """
        if self.group is None:
            for place, text in self:
                yield place, text, (_digest(_folded(text)),)
            return
        for place, row, text in self._texts():
            member = row.get(self.group)
            if isinstance(member, bool) or not isinstance(member, str | int):
                raise InvalidInput(
                    f"{self.name}, row {place}, has no field {self.group!r} with a text or a whole "
                    "number.",
                    hint="Pass group=NAME, the field that says which rows belong together.",
                )
            yield place, text, (_digest(_folded(text)), _digest(f"group {member}"))

    def labelled(self, label: str) -> Iterator[tuple[int, str, Any]]:
        """Yield the place of each row of the file, its text, and its label as it is written.

        Raises:
            InvalidInput: As when texts are read; or a row has no label.
        """
        for place, row, text in self._texts():
            if label not in row:
                raise InvalidInput(
                    f"{self.name}, row {place}, has no label: there is no field {label!r}, and "
                    "the model is a classifier.",
                    hint="Pass label_field=NAME, the field of the label.",
                )
            yield place, text, row[label]

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the place of each row of the file, and its fields.

        Raises:
            InvalidInput: The file cannot be read, or a row is damaged.
        """
        if self.path is None:
            return
        try:
            # Never a newline of another kind: a text may hold any of them.
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                yield from self._rows(file)
        except UnicodeDecodeError:
            raise InvalidInput(f"{self.name} is not text in UTF-8.", hint=_UTF8) from None
        except OSError as fault:
            raise InvalidInput(
                f"{self.name} cannot be read: {fault.strerror or type(fault).__name__}.",
                hint="Check its path.",
            ) from None

    def _texts(self) -> Iterator[tuple[int, Mapping[str, Any], str]]:
        """Yield the place, the fields and the text of each row that has one."""
        for place, row in self.rows():
            if place in self.refused:
                continue
            try:
                text = self._text(row, place)
            except RefusedMessages as fault:
                self.refused[place] = fault.reason
                continue
            yield place, row, text

    def _rows(self, file: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
        ending = "" if self.path is None else self.path.suffix.lower()
        if ending in _TABLES:
            yield from self._table(file, _TABLES[ending])
            return
        if ending in _LINES:
            yield from ((place, self._object(row, place)) for place, row in json_lines(file))
            return
        for place, line in enumerate(file, start=1):
            if line.strip():
                yield place, {self.field or TEXT: line.rstrip("\r\n")}

    def _object(self, row: Any, place: int) -> Mapping[str, Any]:
        if isinstance(row, str) and self.field is None:
            return {TEXT: row}
        if not isinstance(row, dict):
            raise InvalidInput(
                f"{self.name}, line {place}, is no JSON object.",
                hint='Write one row a line, such as {"text": "..."}; the ending .txt is for plain '
                "lines.",
            )
        return row

    def _table(self, file: Any, delimiter: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        csv.field_size_limit(_LONGEST_FIELD)
        reader = csv.DictReader(file, delimiter=delimiter, strict=True)
        try:
            yield from enumerate(reader, start=1)
        except csv.Error:
            raise InvalidInput(
                f"{self.name}, near line {reader.line_num}, is no CSV.",
                hint="Quote fields that hold quotes or line ends.",
            ) from None

    def _text(self, row: Mapping[str, Any], place: int) -> str:
        pair = self.field is None and TEXT not in row and all(name in row for name in _PAIR)
        parts = [row[name] for name in _PAIR] if pair else []
        if parts and all(isinstance(part, str) for part in parts):
            return "".join(parts)
        if parts and all(isinstance(part, list) for part in parts):
            return self._chat([*parts[0], *parts[1]], place)
        wanted = self.field or (MESSAGES if TEXT not in row and MESSAGES in row else TEXT)
        if isinstance(row.get(wanted), list):
            return self._chat(row[wanted], place)
        if wanted not in row:
            raise InvalidInput(
                f"{self.name}, row {place}, has no field {wanted!r}{_named_fields(row)}.",
                hint="Pass field=NAME, the field of the text. The first line of a CSV file names "
                "the columns.",
            )
        if not isinstance(row[wanted], str):
            raise InvalidInput(
                f"{self.name}, row {place}: {wanted!r} is no text but a "
                f"{type(row[wanted]).__name__}.",
                hint="Pass field=NAME, another field, or write the text into one field.",
            )
        return _checked(row[wanted], self.name, place)

    def _chat(self, messages: list[Any], place: int) -> str:
        good = messages and all(
            isinstance(message, Mapping) and {"role", "content"} <= set(message)
            for message in messages
        )
        if not good:
            raise InvalidInput(
                f"{self.name}, row {place}, holds a list that is no conversation.",
                hint='Write messages as [{"role": "user", "content": "..."}, ...], or name the '
                "field of a text: field=NAME.",
            )
        if self.chat is None:
            raise InvalidInput(
                f"{self.name}, row {place}, holds messages, and no chat template is applied here.",
                hint=AS_A_FIELD,
            )
        return _checked(self.chat(messages), self.name, place)


def _named_fields(row: Mapping[str, Any]) -> str:
    """The fields of a row, if all of them are names; anything else may be a text."""
    names = [str(name) for name in row]
    if not names or not all(_NAME.fullmatch(name) for name in names):
        return ""
    return f"; its fields are: {', '.join(sorted(names)[:8])}"


def _checked(text: str, name: str, place: int) -> str:
    """Refuse a text that is no Unicode.

    Raises:
        InvalidInput: It holds half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{name}, row {place}, holds half of a surrogate pair, which is no character.",
            hint="Repair the row, or leave it out.",
        ) from None
    return text


def text_source(
    given: Sequence[str] | str | Path,
    *,
    name: str,
    field: str | None = None,
    chat: Callable[[list[Any]], str] | None = None,
    group: str | None = None,
) -> TextSource:
    """Return the texts of a list or of a file.

    Raises:
        InvalidInput: It is neither, or the file is not there.
    """
    if isinstance(given, str | Path):
        path = Path(given)
        called = f"{name}={str(path)!r}"
        if not path.is_file():
            kind = "is a folder" if path.is_dir() else "is not there"
            kind = "is no plain file" if path.exists() and not path.is_dir() else kind
            raise InvalidInput(
                f"{called} {kind}.", hint="Pass a file of JSON lines, a CSV file or a text file."
            )
        return TextSource(called, path=path, field=field, chat=chat, group=group)
    if not isinstance(given, Sequence):
        raise InvalidInput(
            f"{name} is a {type(given).__name__}, not a list of texts.",
            hint="Pass a list of texts, or the path of a file of JSON lines.",
        )
    if group is not None:
        raise InvalidInput(
            f"group={group!r} names a field, and {name} is a list.",
            hint="Pass a file, or one text of each group.",
        )
    return TextSource(name, texts=given, field=field)


def refused_rows(sources: Mapping[str, TextSource]) -> tuple[RefusedRows, ...]:
    """Say which rows of sources that were read have no text, by source and reason."""
    found = []
    for side, source in sources.items():
        by_reason: dict[str, list[int]] = {}
        for place, reason in source.refused.items():
            by_reason.setdefault(reason, []).append(place)
        total = sum(1 for _ in source.rows()) if by_reason else 0
        found += [
            RefusedRows(
                side=side,
                count=len(places),
                total=total,
                rows=tuple(sorted(places)[:NUMBERED]),
                reason=reason,
            )
            for reason, places in by_reason.items()
        ]
    return tuple(found)


@dataclass(slots=True)
class Overlap:
    """Which texts are used: each once, one of each group, and none that is on both sides.

    Only digests are kept, 16 bytes a text.

    Attributes:
        counts: Texts of each side, as they were read, and rows without one.
        shared: Texts that are on both sides, themselves or by their group; of the side with fewer.
        repeated: Further copies, and further texts of a group, within each side.
        used_counts: Texts of each side that are used.
        samples: Some texts of each side that are used, drawn at random.
    """

    counts: tuple[int, int]
    shared: int
    repeated: tuple[int, int]
    used_counts: tuple[int, int]
    samples: tuple[list[str], list[str]]
    _left_out: frozenset[bytes] = field(repr=False, default=frozenset())

    def used(self, source: TextSource) -> Iterator[tuple[int, str]]:
        """Yield the texts of a side that are used, each once."""
        known: set[bytes] = set()
        for place, text, keys in source.keyed():
            if known.isdisjoint(keys) and self._left_out.isdisjoint(keys):
                yield place, text
            known.update(keys)


def overlap(
    seen: TextSource, unseen: TextSource, *, sampled: int, rng: np.random.Generator
) -> Overlap:
    """Read both sides once: count them, find what they share, and draw a sample of each.

    Args:
        seen, unseen: The texts.
        sampled: Texts of a sample, at most.
        rng: Draws the samples.
    """
    keys: list[set[bytes]] = []
    for source in (seen, unseen):
        keys.append({key for _, _, both in source.keyed() for key in both})
    left_out = frozenset(keys[0] & keys[1])
    counts, shared, repeated, kept = zip(
        *(_counted(source, left_out) for source in (seen, unseen)), strict=True
    )
    result = Overlap(
        counts=(counts[0], counts[1]),
        shared=min(shared),
        repeated=(repeated[0], repeated[1]),
        used_counts=(kept[0], kept[1]),
        samples=([], []),
        _left_out=left_out,
    )
    for source, sample, many in zip((seen, unseen), result.samples, kept, strict=True):
        chosen = set(rng.choice(many, size=min(many, sampled), replace=False).tolist())
        sample += [text for i, (_, text) in enumerate(result.used(source)) if i in chosen]
    return result


def _counted(source: TextSource, left_out: frozenset[bytes]) -> tuple[int, int, int, int]:
    """How many texts there are, are on both sides, are further copies, and are used."""
    total = shared = repeated = used = 0
    known: set[bytes] = set()
    for _, _, keys in source.keyed():
        total += 1
        copy = not known.isdisjoint(keys)
        on_both = not left_out.isdisjoint(keys)
        repeated += copy
        shared += on_both and not copy
        used += not copy and not on_both
        known.update(keys)
    total += len(source.refused)
    return total, shared, repeated, used


def _folded(text: str) -> str:
    """A text without what makes no other record of it: upper case and white space."""
    return " ".join(text.casefold().split())


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
