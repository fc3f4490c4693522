"""A secret as it was found in a piece of text, before it is joined with its like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from remnant.errors import MissingExtra, import_failure

KINDS = ("card", "ssn", "iban", "email", "phone", "key", "random")
LONGEST = 2048  # characters; what is longer is no secret that a template could hold
SHORTEST_RANDOM = 16  # characters of a string that is a secret only because it looks random
LONGEST_BLOCK = 16_384  # characters of a private key, the only secret of several lines


@dataclass(frozen=True, slots=True, repr=False)
class Match:
    """Where a secret stands in a text, and which part of it is secret.

    Attributes:
        kind: One of ``KINDS``.
        start, end: Of the whole of it.
        value: What it is, however it was written: two of one kind with the same value are the same
            secret. Not shown by ``repr``.
        known: So many characters at its beginning are no secret, such as a country's code.
        tail: So many at its end are none, such as the domain of an address.
        service: Who gives out keys of this form, such as ``"GitHub"``; empty where it is unknown.
    """

    kind: str
    start: int
    end: int
    value: str
    known: int = 0
    tail: int = 0
    service: str = ""

    def __repr__(self) -> str:
        return f"Match({self.kind!r}, {self.start}, {self.end}, value=<redacted>)"


def without_overlaps(matches: Sequence[Match]) -> Iterator[Match]:
    """Leave out what overlaps an earlier one of the sequence; the order stays.

    Example:
        >>> whole, part = Match("key", 0, 20, "a"), Match("phone", 4, 14, "b")
        >>> [match.kind for match in without_overlaps([whole, part])]
        ['key']
    """
    taken: dict[int, list[Match]] = {}
    for match in matches:
        # Few matches are longer than LONGEST, so that they touch few cells of that width.
        cells = range(match.start // LONGEST, (match.end - 1) // LONGEST + 1)
        near = [other for cell in cells for other in taken.get(cell, ())]
        if all(match.end <= other.start or other.end <= match.start for other in near):
            for cell in cells:
                taken.setdefault(cell, []).append(match)
            yield match


def missing(fault: ImportError) -> MissingExtra:
    """Return the error for a library of the extra ``scan`` that is not installed."""
    return import_failure(
        fault,
        library=str(fault.name),
        message=f"Looking for secrets in text needs {fault.name}, which is not installed.",
        extra="scan",
    )


def is_letter_or_digit(text: str, at: int) -> bool:
    """Whether an ASCII letter or digit stands at a place, which may be outside the text."""
    character: Any = text[at : at + 1] if at >= 0 else ""
    return bool(character) and character.isascii() and character.isalnum()
