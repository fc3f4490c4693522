"""The ``[hidden]`` section of recipes: how trained models are disturbed before a second attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from remnant.plans.bounds import Count, Positive
from remnant.studies.shared.settings import Section


@dataclass(frozen=True, kw_only=True)
class HiddenSettings(Section, name="hidden"):
    """How the trained models are changed before they are attacked again.

    Attributes:
        noise: Scales of Gaussian weight noise, relative to the standard deviation of each tensor.
            Empty: no noise.
        draws: Noise draws of each scale; scores are averaged over them.
        relearn_steps: Steps of training on neighbours after which to attack. Empty: no relearning.
        neighbours: Examples like the canaries, never planted, that are trained on.
        learning_rate: Learning rate of these steps. Not set: the study's own, without its schedule.
    """

    HINT: ClassVar[str] = "Fix the recipe's [hidden], or leave it out."

    noise: tuple[Positive, ...] = (0.1, 0.2, 0.4)
    draws: Count = 5
    relearn_steps: tuple[Count, ...] = (1, 5, 20)
    neighbours: Count = 64
    learning_rate: Positive | None = None

    def _contradictions(self) -> list[str]:
        rows: dict[str, list[Any]] = {
            "noise": list(self.noise),
            "relearn_steps": list(self.relearn_steps),
        }
        if not any(rows.values()):
            return ["hidden.noise and hidden.relearn_steps are both empty"]
        return [
            f"hidden.{name}={row} is not in increasing order"
            for name, row in rows.items()
            if row != sorted(set(row))
        ]
