"""Entries of a JSON object, asked for by type, with every fault noted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from remnant.errors import require


class Fields:
    """A JSON object from a record; what is not as it should be is noted, not raised at once.

    Guarantees:
        * ``check`` lists all faults, of inner objects too.
        * A fault names the place and the type that stands there, never the value.

    Example:
        >>> found = Fields({"bits": "high"}, name="canary")
        >>> found.number("bits"), found.faults
        (0.0, ['canary.bits is a str, no finite number'])
    """

    def __init__(self, found: Any, *, name: str, faults: list[str] | None = None) -> None:
        self.name = name
        self.faults: list[str] = [] if faults is None else faults
        self._found: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        if not isinstance(found, Mapping):
            self.note("", f"is {_kind(found)}, no object")

    def has(self, key: str) -> bool:
        """Whether there is something other than null under the key."""
        return self._found.get(key) is not None

    def number(self, key: str) -> float:
        """A finite number; 0 where there is a fault."""
        return self._number(f".{key}", self._found.get(key))

    def number_or_none(self, key: str) -> float | None:
        """A finite number, or None where it is null or missing."""
        return self.number(key) if self.has(key) else None

    def whole(self, key: str) -> int:
        """A whole number of any size that is not negative; 0 where there is a fault."""
        return self._whole(f".{key}", self._found.get(key))

    def whole_or_none(self, key: str) -> int | None:
        """A whole number, or None where it is null or missing."""
        return self.whole(key) if self.has(key) else None

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._found.get(key)
        if not isinstance(value, bool):
            self.note(f".{key}", f"is {_kind(value)}, neither true nor false")
        return value is True

    def flags(self, key: str) -> tuple[bool, ...]:
        """A list of truth values."""
        found = self._entries(key)
        for place, entry in found:
            if not isinstance(entry, bool):
                self.note(place, f"is {_kind(entry)}, neither true nor false")
        return tuple(entry is True for _, entry in found)

    def words(self, key: str) -> dict[str, str]:
        """An object's entries, each as it is printed."""
        value = self._found.get(key)
        if not isinstance(value, Mapping):
            self.note(f".{key}", f"is {_kind(value)}, no object")
            return {}
        return {str(name): _printed(entry) for name, entry in value.items()}

    def text(self, key: str) -> str:
        """Words."""
        return self._text(f".{key}", self._found.get(key))

    def text_or_none(self, key: str) -> str | None:
        """Words, or None where they are null or missing."""
        return self.text(key) if self.has(key) else None

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(self._number(place, entry) for place, entry in self._entries(key))

    def numbers_or_none(self, key: str) -> tuple[float | None, ...]:
        """A list of finite numbers and nulls."""
        return self._numbers_or_none(f".{key}", self._found.get(key))

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._whole(place, entry) for place, entry in self._entries(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of words."""
        return tuple(self._text(place, entry) for place, entry in self._entries(key))

    def rows(self, key: str) -> tuple[tuple[float | None, ...], ...]:
        """A list of lists of finite numbers and nulls."""
        return tuple(self._numbers_or_none(place, entry) for place, entry in self._entries(key))

    def inner(self, key: str) -> Fields:
        """An object within this one; its faults are noted here."""
        return Fields(self._found.get(key), name=f"{self.name}.{key}", faults=self.faults)

    def each(self, key: str) -> tuple[Fields, ...]:
        """A list of objects; their faults are noted here."""
        return tuple(
            Fields(entry, name=f"{self.name}{place}", faults=self.faults)
            for place, entry in self._entries(key)
        )

    def same_length(self, **columns: tuple[Any, ...]) -> None:
        """Note a fault for every column that is not as long as the first."""
        (first, expected), *others = columns.items()
        for key, column in others:
            if len(column) != len(expected):
                self.note(f".{key}", f"has {len(column)} entries for {len(expected)} {first}")

    def note(self, place: str, fault: str) -> None:
        """Note a fault at a place within this object, such as ``".bits"``."""
        self.faults.append(f"{self.name}{place} {fault}")

    def check(self) -> None:
        """Raise ``InvalidInput`` if there was any fault."""
        require(self.faults)

    def _entries(self, key: str) -> list[tuple[str, Any]]:
        return self._listed(f".{key}", self._found.get(key))

    def _listed(self, place: str, value: Any) -> list[tuple[str, Any]]:
        """The entries of a list with their places."""
        if not isinstance(value, list):
            self.note(place, f"is {_kind(value)}, no list")
            return []
        return [(f"{place}[{i}]", entry) for i, entry in enumerate(value)]

    def _numbers_or_none(self, place: str, value: Any) -> tuple[float | None, ...]:
        return tuple(
            None if entry is None else self._number(inner, entry)
            for inner, entry in self._listed(place, value)
        )

    def _number(self, place: str, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and _finite(value):
            return float(value)
        self.note(place, f"is {_kind(value)}, no finite number")
        return 0.0

    def _whole(self, place: str, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.note(place, f"is {_kind(value)}, no whole number from 0")
        return 0

    def _text(self, place: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        self.note(place, f"is {_kind(value)}, no text")
        return ""


def _printed(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_printed, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_printed(entry)}" for name, entry in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
