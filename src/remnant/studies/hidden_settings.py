"""How a study asks whether what it no longer finds is gone or only hidden, as frozen data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from remnant.errors import PlanError, require
from remnant.studies.settings import number, whole_number


@dataclass(frozen=True, kw_only=True)
class HiddenSettings:
    """What is done to the trained models before they are attacked again.

    Attributes:
        noise: Scales of Gaussian weight noise: a tensor's noise has this many times the standard
            deviation of the tensor's own entries. None at all, if empty.
        draws: Noise draws of each scale; scores are averaged over them.
        relearn_steps: After how many steps of training on neighbours to attack. None, if empty.
        neighbours: How many examples like the canaries, never planted, are trained on.
        learning_rate: Of these steps; the study's own, without its schedule, if not given.
    """

    noise: tuple[float, ...] = (0.1, 0.2, 0.4)
    draws: int = 5
    relearn_steps: tuple[int, ...] = (1, 5, 20)
    neighbours: int = 64
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        faults = self._rising("noise", "numbers above 0", lambda v: number(v) and _positive(v))
        faults += self._rising(
            "relearn_steps", "whole numbers from 1", lambda v: not whole_number("", v, 1)
        )
        faults += whole_number("hidden.draws", self.draws, 1)
        faults += whole_number("hidden.neighbours", self.neighbours, 1)
        rate = self.learning_rate
        if rate is not None and not (number(rate) and _positive(rate)):
            faults.append(f"hidden.learning_rate={rate!r} is not a number above 0")
        if not faults and not self.noise and not self.relearn_steps:
            faults.append("hidden.noise and hidden.relearn_steps are both empty")
        require(faults, error=PlanError, hint="Mend the recipe's [hidden], or leave it out.")

    def _rising(self, name: str, words: str, fits: Any) -> list[str]:
        given = getattr(self, name)
        row = tuple(given) if isinstance(given, list | tuple) else None
        if row is None or not all(fits(value) for value in row):
            return [f"hidden.{name}={given!r} is not a list of {words}"]
        object.__setattr__(self, name, row)
        if list(row) != sorted(set(row)):
            return [f"hidden.{name}={list(row)} is not in increasing order"]
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return {
            "noise": list(self.noise),
            "draws": self.draws,
            "relearn_steps": list(self.relearn_steps),
            "neighbours": self.neighbours,
            "learning_rate": self.learning_rate,
        }


def _positive(value: float) -> bool:
    return value > 0 and math.isfinite(value)
