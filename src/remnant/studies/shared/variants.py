"""Variants of a study: the same but for some fields, trained and drawn beside it.

In a recipe they are tables, each with a label and the fields in which it differs:

    [[compare]]
    label = "10 repeats"
    plan.repeats = 10

A table or list that is a field's value (``training.options``) is replaced, not merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Variant(Generic[S]):
    """A study to compare with, and what it is called."""

    label: str
    study: S


@dataclass(frozen=True, slots=True)
class Remedy(Generic[S]):
    """A remedy to compare with doing nothing.

    Attributes:
        label: What it is called.
        settings: Its kind and the fields of that kind.
        study: The study with the recipe's fields that it changes, without what its kind changes.
    """

    label: str
    settings: Any
    study: S


def with_changes(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe with some fields of its sections replaced.

    Example:
        >>> with_changes({"plan": {"step": 1, "batch": 8}}, {"plan": {"step": 2}})
        {'plan': {'step': 2, 'batch': 8}}
    """
    made = dict(table)
    for section, fields in changes.items():
        old = made.get(section)
        both = isinstance(fields, Mapping) and isinstance(old, Mapping)
        made[section] = {**old, **fields} if both else fields  # type: ignore[dict-item]
    return made


def difference(table: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that make ``other`` of ``table``; fields it lacks are not named.

    Example:
        >>> difference({"plan": {"step": 1, "batch": 8}}, {"plan": {"step": 2, "batch": 8}})
        {'plan': {'step': 2}}
    """
    made = {}
    for section, fields in other.items():
        old = table.get(section)
        if isinstance(fields, Mapping) and isinstance(old, Mapping):
            changed = {
                name: value
                for name, value in fields.items()
                if name not in old or old[name] != value
            }
            if changed:
                made[section] = changed
        elif fields != old:
            made[section] = fields
    return made


def label_faults(labels: Iterable[str]) -> list[str]:
    """Return what is wrong with the labels of things that are drawn side by side."""
    given = list(labels)
    twice = sorted({label for label in given if given.count(label) > 1})
    return [f"the label {label!r} stands for two of what is compared" for label in twice]
