"""Replaces secrets in text by placeholders of their kinds, such as ``[CARD]``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from remnant.canaries.natural.found import FoundSecret
from remnant.canaries.natural.match import KINDS, Match
from remnant.canaries.natural.scanning import checked_finders, matches_in
from remnant.canaries.natural.spelling import (
    bare,
    bare_with_places,
    stands_alone,
    unescaped_with_places,
)
from remnant.errors import InvalidInput, require

# No finder takes brackets for a part of a secret.
PLACEHOLDERS = {kind: f"[{kind.upper()}]" for kind in KINDS}
MOST_ROUNDS = 20  # of replacing; a second one is rarely needed
# Letters and digits of a spelling. Shorter ones, and words, occur in harmless text as well.
_LEAST_WITH_DIGIT, _LEAST_OF_LETTERS, _LEAST_INSIDE_WORDS = 6, 12, 9
_WIDEST_GAP = 3  # signs and blanks between two letters or digits of a secret
# The end of a line and the indent of the next, with the signs of a comment or a quotation.
_WRAPPED = re.compile(r"[^\w\n]{0,3}\n[^\w\n]{0,80}")


class Span(NamedTuple):
    """A part of a text to replace, and the kind of secret that it is."""

    start: int
    end: int
    kind: str


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: With placeholders.
        counts: Replacements by kind; kinds without any are left out.
    """

    text: str
    counts: dict[str, int]


def redact(
    text: str,
    *,
    kinds: Sequence[str] = KINDS,
    region: str = "US",
    min_entropy: float | None = None,
) -> Redacted:
    """Replace each secret that is found in a text, wherever it occurs in it.

    Args:
        text: Any text.
        kinds: Which of ``KINDS``.
        region: The country of telephone numbers without an international code.
        min_entropy: See ``find_random``.

    Guarantees:
        * A scan with the same settings finds nothing in the result.
        * A secret that is found once is replaced in its other spellings too; see ``KnownSecrets``.
        * What the finders miss stays: the result is not proven free of secrets.

    Raises:
        InvalidInput: ``text`` is no string, or a setting is out of range.
        MissingExtra: A library of the extra ``scan`` is not installed.

    Example:
        >>> redact("to ann@uni.edu, 536-90-4399, again 536 90 4399")
        Redacted(text='to [EMAIL], [SSN], again [SSN]', counts={'ssn': 2, 'email': 1})
    """
    faults = [] if isinstance(text, str) else [f"text is of type {type(text).__name__}"]
    faults += [f"kinds={kind!r} is not one of {', '.join(KINDS)}" for kind in {*kinds} - {*KINDS}]
    require(faults)
    finders = checked_finders(kinds, region, min_entropy)
    counts: Counter[str] = Counter()
    for _ in range(MOST_ROUNDS):
        matches = [match for match in matches_in(text, finders) if match.kind in kinds]
        if not matches:
            return Redacted(text, in_order(counts))
        known = KnownSecrets.of_matches(text, matches)
        spans = joined_spans([*spans_of_matches(matches), *known.spans(text)])
        text = replaced(text, spans)
        counts.update(span.kind for span in spans)
    raise InvalidInput(
        f"After {MOST_ROUNDS} rounds of replacing secrets, the text still has some.",
        hint="Leave the kind out with kinds=.",
    )


class KnownSecrets:
    """Secrets that were found somewhere, and are searched for in their other spellings.

    A spelling is a secret's letters and digits, in any case, some or all of them as escapes of
    URLs, JSON or HTML. Up to three blanks or signs may be between two of them, or the end of a
    line and the indent of the next. The secret part of a
    secret counts as well, such as a telephone number without its international code; of an e-mail
    address only the whole counts, because the part before the ``@`` is often a word.

    Spellings that occur in harmless text are not searched for: those of fewer than 6 letters and
    digits, and of fewer than 12 if no digit is among them. Those of fewer than 9 are replaced only
    where no letter or digit is next to them.

    Args:
        spellings: The kind of each spelling, as ``bare`` gives it.
    """

    def __init__(self, spellings: Mapping[str, str]) -> None:
        self._kinds = {spelt: kind for spelt, kind in spellings.items() if _is_distinctive(spelt)}
        lengths: dict[str, set[int]] = {}
        for spelt in self._kinds:
            lengths.setdefault(spelt[:_LEAST_WITH_DIGIT], set()).add(len(spelt))
        self._lengths = {opening: sorted(many, reverse=True) for opening, many in lengths.items()}

    @classmethod
    def of_scan(cls, secrets: Iterable[FoundSecret]) -> KnownSecrets:
        """Return the secrets that a scan found."""
        spellings: dict[str, str] = {}
        for secret in secrets:
            spelt = _spellings(secret.kind, secret.way.written, secret.way.secret)
            spellings |= dict.fromkeys(spelt, secret.kind)
        return cls(spellings)

    @classmethod
    def of_matches(cls, text: str, matches: Iterable[Match]) -> KnownSecrets:
        """Return the secrets that were found in a text."""
        spellings: dict[str, str] = {}
        for match in matches:
            inner = text[match.start + match.known : match.end - match.tail]
            spelt = _spellings(match.kind, text[match.start : match.end], inner)
            spellings |= dict.fromkeys(spelt, match.kind)
        return cls(spellings)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where known secrets occur in a text, as they are or with escapes.

        Those that occur as they are come first, in order and without overlaps. Those with escapes,
        as in ``ann%40uni.edu``, follow, and may overlap them.
        """
        if not self._kinds:
            return
        yield from self._spans(text)
        unescaped = unescaped_with_places(text)
        if unescaped is not None:
            plain, places = unescaped
            for start, end, kind in self._spans(plain):
                yield Span(places[start], places[end], kind)

    def _spans(self, text: str) -> Iterator[Span]:
        """Yield where known secrets occur in a text as they are."""
        whole, width = bare(text), _LEAST_WITH_DIGIT
        starts = [
            at for at in range(len(whole) - width + 1) if whole[at : at + width] in self._lengths
        ]
        if not starts:
            return
        whole, places = bare_with_places(text)
        done = 0
        for at in starts:
            if at < done:
                continue
            for length in self._lengths[whole[at : at + width]]:
                kind = self._kinds.get(whole[at : at + length])
                within = places[at : at + length]
                if kind and len(within) == length and _is_together(text, within):
                    yield Span(within[0], within[-1] + 1, kind)
                    done = at + length
                    break


def _spellings(kind: str, written: str, secret: str) -> set[str]:
    if kind == "email":
        return {bare(written)}
    part = bare(secret)
    # An international code replaces the zero at the beginning of a telephone number.
    return {bare(written), part} | ({part.lstrip("0")} if kind == "phone" else set())


def _is_distinctive(spelt: str) -> bool:
    if any(character.isdigit() for character in spelt):
        return len(spelt) >= _LEAST_WITH_DIGIT
    return len(spelt) >= _LEAST_OF_LETTERS


def _is_together(text: str, places: Sequence[int]) -> bool:
    """Whether no gap is too wide, and a short secret is no part of a longer word."""
    gaps = (text[before + 1 : after] for before, after in pairwise(places) if after > before + 1)
    if any(len(gap) > _WIDEST_GAP and not _WRAPPED.fullmatch(gap) for gap in gaps):
        return False
    inside_words = len(places) >= _LEAST_INSIDE_WORDS
    return inside_words or stands_alone(text, places[0], places[-1] + 1)


def spans_of_matches(matches: Iterable[Match]) -> Iterator[Span]:
    """Yield the whole of each match as a part to replace."""
    return (Span(match.start, match.end, match.kind) for match in matches)


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one, with the kind of the first of them.

    Of spans with the same beginning the first in the sequence gives the kind.

    Example:
        >>> joined_spans([Span(4, 9, "card"), Span(0, 5, "phone"), Span(9, 12, "ssn")])
        [Span(start=0, end=9, kind='phone'), Span(start=9, end=12, kind='ssn')]
    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if joined and span.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def replaced(written: Sequence[str], spans: Iterable[Span]) -> str:
    """Return a text with a placeholder in place of each span.

    Args:
        written: The text, or how a file writes each of its characters.
        spans: In order and without overlaps.

    Example:
        >>> replaced(["a", "\\\\n", "b"], [Span(2, 3, "key")])
        'a\\\\n[KEY]'
    """
    parts, at = [], 0
    for span in spans:
        parts += ["".join(written[at : span.start]), PLACEHOLDERS[span.kind]]
        at = span.end
    return "".join([*parts, "".join(written[at:])])


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts in the order of ``KINDS``, without kinds that have none."""
    return {kind: counts[kind] for kind in KINDS if counts.get(kind)}
