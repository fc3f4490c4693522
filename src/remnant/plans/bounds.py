"""Bounds of the fields of plans and of recipe sections: declared as annotations, checked here.

``batch: Count = 64`` declares a field that takes whole numbers of at least 1. A field with a plain
type, such as ``bool``, takes every value of it; ``X | None`` also takes None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bound:
    """What a field may hold.

    Attributes:
        words: Completes the sentence "NAME=VALUE is not ...".
        many: Several such values; completes "a list of ...".
        fits: Whether a value is allowed.
        stored: Returns what the field stores for an allowed value.
        schema: The keywords of a JSON schema that state the bound.
    """

    words: str
    many: str = ""
    fits: Callable[[Any], bool]
    stored: Callable[[Any], Any] = lambda value: value
    schema: Mapping[str, Any] = field(default_factory=dict)


def is_whole(value: Any) -> bool:
    """Whether ``value`` is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether ``value`` is a finite number, and no truth value."""
    kind = isinstance(value, int | float) and not isinstance(value, bool)
    return kind and abs(value) < math.inf


def at_least(least: int) -> Bound:
    """Return the bound of whole numbers of at least ``least``."""
    return Bound(
        words=f"a whole number of at least {least}",
        many=f"whole numbers of at least {least}",
        fits=lambda value: is_whole(value) and value >= least,
        stored=int,
        schema={"minimum": least},
    )


def number(words: str, **limits: float) -> Bound:
    """Return the bound of finite numbers within limits.

    Args:
        words: Complete the sentence "NAME=VALUE is not ...".
        limits: In the keywords of JSON schema, such as ``exclusiveMinimum=0``.
    """
    return Bound(
        words=words,
        many=words.replace("a number", "numbers"),
        fits=lambda value: (
            is_number(value) and all(_HOLDS[name](value, limits[name]) for name in limits)
        ),
        schema=limits,
    )


def one_of(allowed: Iterable[str]) -> Bound:
    """Return the bound of a field that takes one of a few texts."""
    choices = list(allowed)
    return Bound(
        words=f"one of {', '.join(choices)}",
        # A list cannot be looked up in a set.
        fits=lambda value: any(value == choice for choice in choices),
        schema={"enum": choices},
    )


def text(words: str) -> Bound:
    """Return the bound of texts that are not empty; ``words`` say what the text is."""
    return Bound(
        words=words,
        fits=lambda value: isinstance(value, str) and value != "",
        schema={"minLength": 1},
    )


def list_of(entry: Bound, *, least: int = 0) -> Bound:
    """Return the bound of lists with at least ``least`` entries; they are stored as tuples."""
    return Bound(
        words=f"a list of {entry.many}",
        fits=lambda value: (
            isinstance(value, list | tuple) and len(value) >= least and all(map(entry.fits, value))
        ),
        stored=lambda value: tuple(map(entry.stored, value)),
        schema={"minItems": least} if least else {},
    )


def distinct_texts(words: str) -> Bound:
    """Return the bound of lists of different texts, at least one; ``words`` say what they are."""
    texts = list_of(_STR, least=1)
    return Bound(
        words=f"a list of distinct {words}",
        fits=lambda value: texts.fits(value) and len(set(value)) == len(value),
        stored=tuple,
        schema={"minItems": 1, "uniqueItems": True},
    )


def whole_or_several(least: int) -> Bound:
    """Return the bound of a whole number or a list of them; a list of one is stored as a number."""
    many = list_of(at_least(least), least=1)
    return Bound(
        words=f"a whole number (or several) of at least {least}",
        fits=lambda value: many.fits(value if isinstance(value, list | tuple) else [value]),
        stored=lambda value: _single(many.stored(value if np.ndim(value) else [value])),
    )


def _single(values: tuple[int, ...]) -> int | tuple[int, ...]:
    return values[0] if len(values) == 1 else values


_INT = Bound(words="a whole number", many="whole numbers", fits=is_whole, stored=int)
_FLOAT = Bound(words="a number", many="numbers", fits=is_number)
_BOOL = Bound(words="true or false", fits=lambda value: isinstance(value, bool))
_STR = Bound(words="a text", many="texts", fits=lambda value: isinstance(value, str))
_DICT = Bound(words="a table", fits=lambda value: isinstance(value, dict))
_PLAIN = {int: _INT, float: _FLOAT, bool: _BOOL, str: _STR, dict: _DICT}

FromZero = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
Share = Annotated[float, number("between 0 and 1", exclusiveMinimum=0, exclusiveMaximum=1)]
ShareOrAll = Annotated[float, number("above 0 and at most 1", exclusiveMinimum=0, maximum=1)]
Positive = Annotated[float, number("a number above 0", exclusiveMinimum=0)]
NotNegative = Annotated[float, number("a number of at least 0", minimum=0)]


def bound_of(annotation: Any) -> Bound | None:
    """Return the bound that an annotation declares, or that of its type; None where it has none.

    Example:
        >>> bound_of(Count | None).words, bound_of(tuple[Count, ...]).words
        ('a whole number of at least 1', 'a list of whole numbers of at least 1')
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next((part for part in parts[1:] if isinstance(part, Bound)), None)
    if origin in (Union, UnionType):
        kinds = [part for part in parts if part is not NoneType]
        return bound_of(kinds[0]) if len(kinds) == 1 else None
    if origin is tuple:
        entry = bound_of(parts[0])
        return None if entry is None else list_of(entry)
    return _PLAIN.get(origin or annotation)


def field_faults(owner: Any, *, prefix: str = "") -> list[str]:
    """Return a fault for each field outside its bound; store the others in their usual form.

    The value of a field with ``repr=False`` is a secret and is in no fault.

    Args:
        owner: A frozen dataclass.
        prefix: What a field's name begins with in a fault.
    """
    faults = []
    for known in fields(owner):
        bound, optional = _bounds(owner.__class__)[known.name]
        value = getattr(owner, known.name)
        if bound is None or (optional and value is None):
            continue
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if bound.fits(value):
            object.__setattr__(owner, known.name, bound.stored(value))
        else:
            shown = f"={value!r}" if known.repr else ""
            faults.append(f"{prefix}{known.name}{shown} is not {bound.words}")
    return faults


@cache
def _bounds(owner: Hashable) -> dict[str, tuple[Bound | None, bool]]:
    """Return the bound of each annotation, and whether it allows None."""
    hints = get_type_hints(owner, include_extras=True)
    return {name: (bound_of(hint), NoneType in get_args(hint)) for name, hint in hints.items()}
