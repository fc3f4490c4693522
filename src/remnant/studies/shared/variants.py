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

from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures import unseen_needed
from remnant.plans import InjectPlan, PoisonPlan
from remnant.studies.shared.study import SectionedStudy

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


class ComparedStudy(SectionedStudy):
    """A study of twins that may have variants.

    Attributes:
        plan: INJECT or POISON.
        attack: How success is measured, with ``lags`` and ``confidence``.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: The variants.
    """

    plan: InjectPlan | PoisonPlan
    attack: Any
    label: str
    title: str
    compare: tuple[Variant[Any], ...]

    def lags(self) -> list[int]:
        """Return the lags at which the models are probed."""
        return lag_grid(self.plan.watch_steps, self.attack.lags)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, each variant as what differs from the study."""
        plain = super().to_dict()
        if not self.compare:
            return plain
        variants = [
            {"label": variant.label, **difference(plain, variant.study.to_dict())}
            for variant in self.compare
        ]
        return {**plain, "label": self.label, "title": self.title, "compare": variants}


def check_threshold(name: str, count: int, fpr: float, *, more: str) -> None:
    """Refuse too few unseen scores for a threshold.

    Args:
        name: The field of the recipe that says how many there are.
        count: Its value.
        fpr: The false-positive rate of the threshold.
        more: How to get more of them, as the beginning of the hint.

    Raises:
        NotEnoughEvidence: ``count`` is under 1/fpr.
    """
    needed = unseen_needed(fpr)
    if count < needed:
        raise NotEnoughEvidence(
            f"{name}={count} cannot place a threshold at attack.fpr={fpr:g}; it takes at least "
            f"{needed}.",
            hint=f"{more}, or ask for a larger fpr.",
        )


def lag_grid(watch_steps: int, wanted: tuple[int, ...] = ()) -> list[int]:
    """Return the lags to measure: those asked for, or a grid from 0 to the last step.

    The grid is 1-2-5 at the near end, where decay is fast, and eighths of the whole beyond.

    Example:
        >>> lag_grid(80)
        [0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80]
    """
    if wanted:
        beyond = [lag for lag in wanted if lag > watch_steps]
        if beyond:
            raise PlanError(
                f"attack.lags={beyond} are beyond watch_steps={watch_steps}.",
                hint="Raise the plan's watch_steps or drop these lags.",
            )
        return sorted(set(wanted))
    grid = {0, watch_steps}
    scale = 1
    while scale <= watch_steps:
        grid |= {scale * unit for unit in (1, 2, 5) if scale * unit <= watch_steps}
        scale *= 10
    last = max(1, watch_steps // 8)
    return sorted(grid | set(range(last, watch_steps, last)))
