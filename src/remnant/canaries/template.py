"""Text canaries: a template, the space of its secrets, numbered, and draws from it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Protocol

import numpy as np

from remnant.canaries.automaton import Automaton
from remnant.canaries.holes import Slot, slots_of
from remnant.canaries.sampling import draw_distinct
from remnant.errors import InvalidInput, require

_JOINED = 1000  # choices of places that are read as one


class Numbering(Protocol):
    """A bijection between the distinct secrets of a template and ``range(space)``."""

    space: int

    def secret_at(self, index: int) -> str:
        """Return the secret with this number, ``0 <= index < space``."""
        ...

    def index_of(self, secret: str) -> int | None:
        """Return the number of this secret, or None where it is not in the space."""
        ...

    def secrets(self) -> Iterator[str]:
        """Yield all secrets in the order of their numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A slot with choices, and the literal text that follows it."""

    choices: tuple[str, ...]
    after: str


def places_of(slots: Sequence[Slot]) -> list[Place]:
    """Join each slot with the literal after it; the first slot is no literal."""
    places: list[Place] = []
    for slot in slots:
        if slot.kind == "literal":
            last = places.pop()
            places.append(Place(last.choices, last.after + slot.choices[0]))
        else:
            places.append(Place(slot.choices, ""))
    return places


def mirrored(slots: Sequence[Slot]) -> list[Slot]:
    """The slots of the same secrets written backwards."""
    different = {id(slot): slot for slot in slots}  # a large vocabulary is turned once
    turned = {
        key: Slot(slot.kind, tuple(choice[::-1] for choice in slot.choices))
        for key, slot in different.items()
    }
    return [turned[id(slot)] for slot in reversed(slots)]


def one_way_only(places: Sequence[Place]) -> bool:
    """Whether every place but the last is prefix-free, so that no secret has two fillings.

    A place is prefix-free when none of its choices, with the literal after it, begins another.
    Then the first place of a secret can be read in one way only, hence the second, and so on.

    Example:
        >>> one_way_only([Place(("a", "ab"), " "), Place(("c", "cd"), "")])
        True
        >>> one_way_only([Place(("a", "ab"), ""), Place(("c", "bc"), "")])
        False
    """
    # Vocabularies are shared by many places: each is sorted once.
    different = {(id(place.choices), place.after): place for place in places[:-1]}
    return all(_prefix_free(place) for place in different.values())


def mixed_radix(slots: Sequence[Slot]) -> Numbering | None:
    """Number secrets that can be read in one way, from the left or else from the right.

    Words with a blank before each, for one, begin each other but never end each other.

    Returns:
        None where neither way is sure to be the only one.
    """
    for backwards in (False, True):
        places = places_of(mirrored(slots) if backwards else slots)
        if one_way_only(places):
            return _MixedRadix(places_of(slots), _Reader(places, backwards=backwards))
    return None


def _prefix_free(place: Place) -> bool:
    # Whatever sorts between a string and its continuation begins with it too: neighbours tell all.
    whole = sorted(choice + place.after for choice in place.choices)
    return not any(longer.startswith(shorter) for shorter, longer in pairwise(whole))


class _MixedRadix:
    """The number of a filling is ``sum(digit_i * product(len(choices_j) for j > i))``.

    The last place runs fastest, each in the order of its choices.
    """

    def __init__(self, places: Sequence[Place], reader: _Reader) -> None:
        self._places = list(places)
        self._reader = reader
        self.space = math.prod(len(place.choices) for place in places)

    def secret_at(self, index: int) -> str:
        parts: list[str] = []
        for place in self._wheels:
            index, digit = divmod(index, len(place.choices))
            parts += (place.after, place.choices[digit])
        return "".join(reversed(parts))

    @cached_property
    def _wheels(self) -> list[Place]:
        """The places from the last on, neighbours with few choices joined: fewer divisions."""
        joined: dict[tuple[int, str, int, str], Place] = {}  # of a row of digits, each three once
        wheels: list[Place] = []
        for place in self._places:
            before = wheels[-1] if wheels else None
            if before is None or len(before.choices) * len(place.choices) > _JOINED:
                wheels.append(place)
                continue
            key = (id(before.choices), before.after, id(place.choices), place.after)
            if key not in joined:
                both = product(before.choices, place.choices)
                joined[key] = Place(tuple(a + before.after + b for a, b in both), place.after)
            wheels[-1] = joined[key]
        return wheels[::-1]

    def index_of(self, secret: str) -> int | None:
        digits = self._reader.digits(secret)
        if digits is None:
            return None
        index = 0
        for place, digit in zip(self._places, digits, strict=True):
            index = index * len(place.choices) + digit
        return index

    def secrets(self) -> Iterator[str]:
        choices = [[choice + place.after for choice in place.choices] for place in self._places]
        return map("".join, product(*choices))


class _Reader:
    """Finds which choice stands in each place of a secret."""

    def __init__(self, places: Sequence[Place], *, backwards: bool) -> None:
        self._backwards = backwards
        different = {id(place.choices): place.choices for place in places}
        tables = {key: _Table(choices) for key, choices in different.items()}
        self._places = [(tables[id(place.choices)], place) for place in places]

    def digits(self, secret: str) -> list[int] | None:
        text = secret[::-1] if self._backwards else secret
        digits: list[int] = []
        at = 0
        for table, place in self._places:
            is_last = len(digits) == len(self._places) - 1
            digit = table.digits.get(text[at:]) if is_last else table.read(text, at, place.after)
            if digit is None:
                return None
            digits.append(digit)
            at += len(place.choices[digit]) + len(place.after)
        return digits[::-1] if self._backwards else digits


class _Table:
    """The choices of a place by their text."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.digits = {choice: digit for digit, choice in enumerate(choices)}
        self._lengths = sorted({len(choice) for choice in choices})

    def read(self, text: str, at: int, after: str) -> int | None:
        for length in self._lengths:
            digit = self.digits.get(text[at : at + length])
            # A slice that runs over the end is cut and may be another choice; startswith sees it.
            if digit is not None and text.startswith(after, at + length):
                return digit
        return None


_LARGEST_SHOWN = 10**30


@dataclass(frozen=True, slots=True, repr=False)
class Canary:
    """A text with a secret in it; neither shows in its ``repr``.

    Attributes:
        text: The whole text.
        secret: Its random part, from the first hole to the end of the last.
    """

    text: str
    secret: str

    def __repr__(self) -> str:
        return "Canary(text=<redacted>, secret=<redacted>)"


@dataclass(frozen=True, repr=False)
class Template:
    """A text with holes; the secrets that fill them form its space.

    Holes are ``{digits:n}``, ``{letters:n}`` (a to z), ``{hex:n}`` (0 to 9, a to f), ``{words:n}``
    (of ``words``, one space between them), ``{tokens:n}`` (of ``tokens``, nothing between them)
    and ``{choice:a|b|c}``; ``{{`` and ``}}`` are literal braces. A choice holds no ``|`` and no
    brace: such texts go into ``tokens``.

    Attributes:
        pattern: The text with its holes.
        words: The vocabulary of ``{words:n}``, or None.
        tokens: The vocabulary of ``{tokens:n}``, or None.
        prefix: The literal text before the first hole.
        slots: The places from the first hole to the last. Each has its choices; literals between
            holes have one. ``{digits:3}`` is three slots, ``{words:2}`` a slot, a blank, a slot.
        suffix: The literal text after the last hole.

    Guarantees:
        * The space counts distinct secrets, also where two fillings give the same secret.
        * ``secret_at`` and ``index_of`` are each other's inverse between secrets and
          ``range(space)``.
        * Templates with the same pattern and vocabularies are equal.

    Raises:
        InvalidInput: The pattern has no hole, an unknown one or unbalanced braces; a vocabulary
            is absent, empty, repeats itself or is not used; a secret could be filled in so many
            ways that its space cannot be counted.

    Example:
        >>> template = Template("the random number is {digits:9}")
        >>> template.space
        1000000000
        >>> template.text("281265017")
        'the random number is 281265017'
        >>> Template("{choice:a|ab}{choice:b|bb}").space
        3
    """

    pattern: str
    words: Sequence[str] | None = field(default=None, kw_only=True)
    tokens: Sequence[str] | None = field(default=None, kw_only=True)
    prefix: str = field(init=False, compare=False)
    slots: tuple[Slot, ...] = field(init=False, compare=False)
    suffix: str = field(init=False, compare=False)
    _numbering: Numbering = field(init=False, compare=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        words = _vocabulary("words", self.words, faults)
        tokens = _vocabulary("tokens", self.tokens, faults)
        if not isinstance(self.pattern, str):
            faults.append(f"pattern is of type {type(self.pattern).__name__}, not a string")
        elif not _is_unicode(self.pattern):
            faults.append("pattern holds half of a surrogate pair, which no file can store")
        require(faults)
        prefix, slots, suffix = slots_of(self.pattern, {"words": words, "tokens": tokens})
        for name, value in {
            "words": words,
            "tokens": tokens,
            "prefix": prefix,
            "slots": slots,
            "suffix": suffix,
            "_numbering": mixed_radix(slots) or Automaton(slots),
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = {"words": self.words, "tokens": self.tokens}
        sizes = [f"{name}=<{len(many)}>" for name, many in given.items() if many is not None]
        return f"Template({', '.join([repr(self.pattern), *sizes])})"

    @property
    def space(self) -> int:
        """How many distinct secrets there are."""
        return self._numbering.space

    def text(self, secret: str) -> str:
        """Return the whole text with this secret.

        Raises:
            InvalidInput: The secret is not in the space.
        """
        self.index_of(secret)
        return f"{self.prefix}{secret}{self.suffix}"

    def __contains__(self, secret: object) -> bool:
        return isinstance(secret, str) and self._numbering.index_of(secret) is not None

    def secret_at(self, index: int) -> str:
        """Return the secret with this number; the order is fixed by pattern and vocabularies.

        Raises:
            InvalidInput: ``index`` is not a whole number from 0 to ``space - 1``.
        """
        try:
            number = operator.index(index)
        except TypeError:
            raise InvalidInput(f"index={index!r} is not a whole number.") from None
        if not 0 <= number < self.space:
            raise InvalidInput(
                f"index={_shown(number)} is not between 0 and {_shown(self.space)} - 1.",
                hint="It counts the secrets of the template's space.",
            )
        return self._numbering.secret_at(number)

    def index_of(self, secret: str) -> int:
        """Return the number of this secret.

        Raises:
            InvalidInput: The secret is not in the space; the message does not repeat it.
        """
        index = self._numbering.index_of(secret) if isinstance(secret, str) else None
        if index is None:
            raise InvalidInput(
                f"The secret given is not one of the {_shown(self.space)} of {self.pattern!r}.",
                hint="Pass what fills the holes, not the whole text.",
            )
        return index

    def secrets(self) -> Iterator[str]:
        """Yield every secret once, in the order of their numbers."""
        return self._numbering.secrets()

    def sample(
        self, n: int, *, rng: np.random.Generator, exclude: Iterable[str] = ()
    ) -> list[Canary]:
        """Draw canaries with different secrets.

        Args:
            n: How many.
            rng: Where the randomness comes from.
            exclude: Secrets that must not be drawn.

        Guarantees:
            * Uniform without replacement over the space less the excluded secrets, in random
              order, whatever its size.
            * A larger ``n`` from an equal generator begins with the same canaries.

        Raises:
            InvalidInput: ``n`` is more than the space leaves, or an excluded secret is outside it.

        Example:
            >>> canaries = Template("pin {digits:2}").sample(100, rng=np.random.default_rng(0))
            >>> len({canary.secret for canary in canaries})
            100
        """
        faults: list[str] = []
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            faults.append(f"n={n!r} is not a whole number of at least 0")
        if not isinstance(rng, np.random.Generator):
            faults.append(f"rng={rng!r} is not a numpy.random.Generator")
        if isinstance(exclude, str):
            faults.append("exclude is one string, not several secrets")
        require(faults)
        barred = {self.index_of(secret) for secret in exclude}
        if n > self.space - len(barred):
            raise InvalidInput(
                f"n={n} is more than the {self.space - len(barred)} secrets left of a space of "
                f"{self.space}.",
                hint="Draw fewer, or give the template a larger space.",
            )
        return self._canaries(draw_distinct(int(n), space=self.space, rng=rng, exclude=barred))

    def _canaries(self, indices: Iterable[int]) -> list[Canary]:
        secrets = map(self._numbering.secret_at, indices)
        return [Canary(f"{self.prefix}{secret}{self.suffix}", secret) for secret in secrets]


def _vocabulary(
    name: str, given: Sequence[str] | None, faults: list[str]
) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        faults.append(f"{name} is one string, not a list of strings")
        return None
    try:
        entries = tuple(given)
    except TypeError:
        faults.append(f"{name} is of type {type(given).__name__}, not a list of strings")
        return None
    wrong = [at for at, entry in enumerate(entries) if not isinstance(entry, str)]
    if wrong:
        faults.append(f"{name}[{wrong[0]}] is of type {type(entries[wrong[0]]).__name__}, not str")
    elif not _is_unicode("".join(entries)):
        faults.append(f"{name} holds half of a surrogate pair, which no file can store")
    return entries


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(number: int) -> str:
    # Python refuses to print integers of several thousand digits.
    return str(number) if abs(number) < _LARGEST_SHOWN else f"about 2**{number.bit_length() - 1}"
