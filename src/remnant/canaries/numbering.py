"""Numbering secrets one by one where each can be filled in one way only: mixed radix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Protocol

from remnant.canaries.holes import Slot

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
