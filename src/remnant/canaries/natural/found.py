"""Secrets that were found: each once, with how often and where it stands, and what it could be.

What a secret could be is its template:

Telephone numbers, cards and social security numbers: each digit could be another one. Addresses and
IBANs: each digit another digit, each letter another letter of its case. Keys: each character any of
the smallest alphabet that holds them all. Everything else stays as it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import math
import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from remnant.canaries.holes import ALPHABETS, MOST_SLOTS
from remnant.canaries.natural.match import Match
from remnant.canaries.natural.spelling import bare, since_last
from remnant.canaries.template import Canary, Template
from remnant.errors import InvalidInput, NotEnoughEvidence

_UPPER = "{choice:" + "|".join(string.ascii_uppercase) + "}"
_ALPHABETS = (
    string.digits,
    "0123456789abcdef",
    "0123456789ABCDEF",
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase,
    string.digits + string.ascii_letters,
    string.digits + string.ascii_letters + "-_",
    string.digits + string.ascii_letters + "+/",
    string.digits + string.ascii_letters + "+/-_.=",
    string.digits + string.ascii_letters + string.punctuation,
)
_NAMED = {"".join(alphabet): name for name, alphabet in ALPHABETS.items()}
_DIGITS_ALONE = {"card", "ssn", "phone"}
_IN_ONE_ALPHABET = {"key", "random"}
# Of how many fillings one passes the kind's check: Luhn's digit, the IBAN's two check digits, and
# the areas, groups and serial numbers that are given out.
_CHECKED = {"card": 10.0, "iban": 100.0, "ssn": 10**9 / (898 * 99 * 9999)}


@dataclass(frozen=True, slots=True)
class CharacterRun:
    """Characters of one kind that stand together.

    Attributes:
        kind: ``"literal"``, ``"digits"``, ``"numerals"`` (digits of another script),
            ``"letters"``, ``"upper"`` or ``"alphabet"``.
        text: The characters.
    """

    kind: str
    text: str


def runs_of(kind: str, written: str, *, known: int, tail: int) -> list[CharacterRun]:
    """Cut a secret into what could be otherwise and what stays; joined, they are the secret."""
    last = len(written) - tail
    middle = written[known:last]
    if kind in _IN_ONE_ALPHABET:
        inner = [CharacterRun("alphabet", middle)]
    else:
        classes = [_class(kind, character) for character in middle]
        pairs = groupby(zip(classes, middle, strict=True), key=lambda pair: pair[0])
        inner = [CharacterRun(name, "".join(c for _, c in many)) for name, many in pairs]
    around = [
        CharacterRun("literal", written[:known]),
        *inner,
        CharacterRun("literal", written[last:]),
    ]
    return [run for run in around if run.text]


def bits_of(runs: Sequence[CharacterRun]) -> float:
    """Return the base-2 logarithm of how many secrets there could be.

    Example:
        >>> round(bits_of(runs_of("ssn", "536-90-4399", known=0, tail=0)), 1)
        29.9
    """
    sizes = {"literal": 1, "digits": 10, "numerals": 10, "letters": 26, "upper": 26}
    return math.fsum(
        len(run.text) * math.log2(sizes.get(run.kind) or len(_alphabet(run.text))) for run in runs
    )


def check_bits(kind: str) -> float:
    """Return how many of these bits a check takes: so much less is really unknown.

    Example:
        >>> round(check_bits("card"), 2), check_bits("phone")
        (3.32, 0.0)
    """
    return math.log2(_CHECKED.get(kind, 1.0))


def fits_template(runs: Sequence[CharacterRun]) -> bool:
    """Whether a secret is no longer than a template can be."""
    return sum(len(run.text) for run in runs if run.kind != "literal") <= MOST_SLOTS


def template_of(runs: Sequence[CharacterRun], *, context: str) -> Template:
    """Return the template of a secret, after the text that stands before it.

    Guarantees:
        * The secret is in the template's space, which has ``2 ** bits_of(runs)`` secrets.

    Raises:
        NotEnoughEvidence: It is longer than a template can be.
    """
    if not fits_template(runs):
        raise NotEnoughEvidence(f"It has more than the {MOST_SLOTS} places of a template.")
    alphabets = [_alphabet(run.text) for run in runs if run.kind == "alphabet"]
    unnamed = [alphabet for alphabet in alphabets if alphabet not in _NAMED]
    return Template(
        _escaped(context) + "".join(map(_hole, runs)), tokens=tuple(unnamed[0]) if unnamed else None
    )


def shape_text(runs: Sequence[CharacterRun]) -> str:
    """Return the form of a secret for everybody's eyes: letters and digits that stay are dots.

    Example:
        >>> shape_text(runs_of("email", "ann.b7@uni.edu", known=0, tail=8))
        '{letters:3}.{letters:1}{digits:1}@….…'
    """
    return "".join(_told(run) for run in runs)


def _told(run: CharacterRun) -> str:
    if run.kind == "literal":
        return re.sub(r"[^\W_]+", "…", run.text)
    if run.kind == "alphabet":
        return "{" + f"{len(_alphabet(run.text))} characters:{len(run.text)}" + "}"
    kind = "digits" if run.kind == "numerals" else run.kind
    return "{" + f"{kind}:{len(run.text)}" + "}"


def _class(kind: str, character: str) -> str:
    if character.isdecimal():
        return "digits" if character in string.digits else "numerals"
    if kind in _DIGITS_ALONE or character not in string.ascii_letters:
        return "literal"
    return "letters" if character in string.ascii_lowercase else "upper"


def _alphabet(text: str) -> str:
    for alphabet in _ALPHABETS:
        if set(text) <= set(alphabet):
            return alphabet
    return "".join(sorted({*_ALPHABETS[-1], *text}))


def _hole(run: CharacterRun) -> str:
    many = len(run.text)
    if run.kind == "literal":
        return _escaped(run.text)
    if run.kind == "upper":
        return _UPPER * many
    if run.kind == "numerals":
        return "".join(map(_digits_like, run.text))
    if run.kind != "alphabet":
        return f"{{{run.kind}:{many}}}"
    return f"{{{_NAMED.get(_alphabet(run.text), 'tokens')}:{many}}}"


def _digits_like(character: str) -> str:
    """The hole of a digit of another script: any digit of that script."""
    nought = ord(character) - unicodedata.decimal(character)
    return "{choice:" + "|".join(chr(nought + value) for value in range(10)) + "}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def secret_in(template: Template, text: str) -> str:
    """Return what fills a template's holes in one of its whole texts."""
    return text[len(template.prefix) : len(text) - len(template.suffix)]


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
