"""Secrets that were found: each once, with how often and where it stands, and what it could be."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from dataclasses import dataclass

from remnant.canaries.natural.match import Match
from remnant.canaries.natural.shape import (
    CharacterRun,
    bits_of,
    check_bits,
    fits_template,
    runs_of,
    secret_in,
    shape_text,
    template_of,
)
from remnant.canaries.natural.spelling import bare, since_last
from remnant.canaries.template import Canary, Template
from remnant.errors import InvalidInput

MOST_PLACES = 1000  # of one secret that are remembered; all are counted
MOST_SECRETS = 1_000_000
_MOST_WAYS = 100  # of writing one secret, with the text before it
_DIGITS = 12  # of a fingerprint
_LEFT_OUT = {"left_out_if_none": True}  # of plain data, see ``remnant.records.typed``


@dataclass(frozen=True, slots=True)
class Place:
    """Where a secret stands: a file, and its line and column, both from 1.

    Attributes:
        line: In a file of rows, where the row begins.
        column: In a file of rows, the place in the field's text.
        row: Number of the row, from 1; 0 for the header of a table; None in plain text.
        field: Names and places that lead to the field; None in plain text.
    """

    path: str
    line: int
    column: int
    row: int | None = dataclasses.field(default=None, metadata=_LEFT_OUT)
    field: str | None = dataclasses.field(default=None, metadata=_LEFT_OUT)


@dataclass(frozen=True, slots=True, repr=False)
class Way:
    """How a secret is written, and what stands before it; neither shows in its ``repr``."""

    context: str
    written: str
    known: int
    tail: int

    def __repr__(self) -> str:
        return "Way(context=<redacted>, written=<redacted>)"

    @property
    def secret(self) -> str:
        """What is secret of it: without a country's code, an opening or a domain."""
        return self.written[self.known : len(self.written) - self.tail]


@dataclass(frozen=True, slots=True, repr=False)
class FoundSecret:
    """A secret that was found in text, once or more; it does not show in its ``repr``.

    Attributes:
        kind: See ``KINDS``.
        fingerprint: The same for the same secret and salt, and of no use without the salt.
        count: How often it stands there.
        places: Where; the first ``MOST_PLACES``.
        way: How it is written, and what stands before it, where it stands most often so; the first
            of those that are equally frequent. Places with the secret itself in the text before it
            are left aside; where there is no other, that text begins after it.
        service: Who gives out keys of this form; empty where that is unknown.

    Guarantees:
        * ``canary.secret`` is in the space of ``template``, which has ``2 ** bits`` secrets.
        * The text before it does not hold the secret, however it is spelt there: a model that is
          asked cannot copy it. One of fewer than four letters and digits may be a part of a word.
    """

    kind: str
    fingerprint: str
    count: int
    places: tuple[Place, ...]
    way: Way
    service: str = ""

    def __repr__(self) -> str:
        return f"FoundSecret({self.kind!r}, {self.fingerprint!r}, count={self.count})"

    @property
    def runs(self) -> list[CharacterRun]:
        """The parts that could be otherwise, and those that stay."""
        way = self.way
        return runs_of(self.kind, way.written, known=way.known, tail=way.tail)

    @property
    def length(self) -> int:
        """Characters, as it is written."""
        return len(self.way.written)

    @property
    def form(self) -> str:
        """What is secret in it, without anything of the secret or of the text before it."""
        return shape_text(self.runs)

    @property
    def bits(self) -> float:
        """Of its template's space: an upper bound of what is unknown about it."""
        return bits_of(self.runs)

    @property
    def check_bits(self) -> float:
        """How many of them check digits take, or numbers that are never given out."""
        return check_bits(self.kind)

    @property
    def parts(self) -> set[str]:
        """The whole of it and what is secret of it, for which an error is searched."""
        inner = {self.canary.secret} if self.has_template else set()
        return {self.way.written, self.way.secret} | inner

    @property
    def has_template(self) -> bool:
        """Whether it is short enough for a template."""
        return fits_template(self.runs)

    @property
    def template(self) -> Template:
        """The text before it and its form. It holds that text: never show it."""
        return template_of(self.runs, context=self.way.context)

    @property
    def canary(self) -> Canary:
        """The secret in its template, as something that was planted ``count`` times."""
        text = self.way.context + self.way.written
        return Canary(text, secret_in(self.template, text))


@dataclass(slots=True, repr=False)
class _Entry:
    """What is known of one secret so far."""

    service: str
    count: int = 0
    places: list[Place] = dataclasses.field(default_factory=list)
    ways: dict[Way, int] = dataclasses.field(default_factory=dict)
    cut_ways: dict[Way, int] = dataclasses.field(default_factory=dict)


class Joining:
    """Joins the matches that are the same secret.

    Args:
        context: Characters before a secret that belong to it.
        most: More different secrets than this are refused.
    """

    def __init__(self, *, context: int, most: int = MOST_SECRETS) -> None:
        self._context = context
        self._most = most
        self._entries: dict[tuple[str, str], _Entry] = {}

    def add(
        self, match: Match, text: str, place: Place, *, since: int = 0, begins: int = 0
    ) -> None:
        """Add one match in ``text``, which stands at ``place``.

        Args:
            match: Where it stands in ``text``.
            text: With what is before it.
            place: In the file.
            since: Where the same secret ended the last time before; 0 where it did not.
            begins: Where the field begins that it stands in.

        Raises:
            InvalidInput: There are too many different secrets to be secrets.
        """
        entry = self._entries.get((match.kind, match.value))
        if entry is None:
            if len(self._entries) >= self._most:
                raise self._too_many()
            entry = self._entries[match.kind, match.value] = _Entry(match.service)
        entry.count += 1
        if len(entry.places) < MOST_PLACES:
            entry.places.append(place)
        first = max(begins, match.start - self._context)
        begin = max(first, since)
        begin += since_last(
            bare(text[match.start + match.known : match.end - match.tail]),
            text[begin : match.start],
        )
        written = text[match.start : match.end]
        way = Way(text[begin : match.start], written, match.known, match.tail)
        ways = entry.ways if begin == first else entry.cut_ways
        if way in ways or len(ways) < _MOST_WAYS:
            ways[way] = ways.get(way, 0) + 1

    def joined(self, *, salt: bytes) -> tuple[FoundSecret, ...]:
        """Return each secret once: the most frequent first, then in the order found."""
        secrets = [
            FoundSecret(
                kind,
                fingerprint_of(kind, value, salt=salt),
                entry.count,
                tuple(entry.places),
                _most_frequent(entry.ways or entry.cut_ways),
                entry.service,
            )
            for (kind, value), entry in self._entries.items()
        ]
        return tuple(sorted(secrets, key=lambda secret: -secret.count))

    def _too_many(self) -> InvalidInput:
        kinds = [kind for kind, _ in self._entries]
        worst = max(set(kinds), key=kinds.count)
        share = kinds.count(worst) / len(kinds)
        return InvalidInput(
            f"There are more than {self._most} different secrets, {share:.0%} of them of kind "
            f"{worst!r}: that is data, not text.",
            hint="Leave the kind out, or the files that hold them.",
        )


def _most_frequent(ways: dict[Way, int]) -> Way:
    return max(ways, key=ways.__getitem__)


def fingerprint_of(kind: str, value: str, *, salt: bytes) -> str:
    """Return twelve hex digits that tell equal secrets, to those who have the salt (HMAC-SHA256).

    Whoever has the salt can try out all numbers of a card: keep it, or make a new one each time.

    Example:
        >>> fingerprint_of("ssn", "536904399", salt=b"0123456789abcdef")
        '4b6927b57daf'
    """
    message = f"{kind}\0{value}".encode()
    return hmac.new(salt, message, hashlib.sha256).hexdigest()[:_DIGITS]
