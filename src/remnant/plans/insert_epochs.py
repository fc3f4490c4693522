"""INSERT whose length may be given in epochs: what a text is cut into says how many steps."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from remnant.errors import PlanError, require
from remnant.plans.insert import InsertPlan
from remnant.plans.plan import Plan

_LENGTHS = ("steps", "epochs")


@dataclass(frozen=True, kw_only=True)
class InsertEpochsPlan(Plan):
    """``InsertPlan`` with ``epochs`` as an alternative to ``steps``.

    Attributes:
        steps: Updates of each member; or
        epochs: Passes over the examples, which need not be a whole number.
        repeats, trials, controls, twin, batch, seed, sampling, precision: As in ``InsertPlan``.

    Example:
        >>> plan = InsertEpochsPlan(repeats=(1,), epochs=3, batch=10)
        >>> plan.of(examples=105).steps
        32
    """

    repeats: tuple[int, ...]
    steps: int | None = None
    epochs: float | None = None
    trials: int = 5
    controls: int = 0
    twin: bool = False
    batch: int = 32
    seed: int = 0
    sampling: str = "epoch"
    precision: str = "float32"

    kind: ClassVar[str] = "insert"

    def __post_init__(self) -> None:
        faults = []
        if (self.steps is None) == (self.epochs is None):
            faults.append("give either steps or epochs")
        epochs = self.epochs
        if epochs is not None and (
            isinstance(epochs, bool)
            or not isinstance(epochs, int | float)
            or not 0 < epochs < math.inf
        ):
            faults.append(f"epochs={epochs!r} is not a number above 0")
        require(faults, error=PlanError, hint="Mend the plan's fields.")
        made = self._with(1 if self.steps is None else self.steps)
        for name in _shared():
            object.__setattr__(self, name, getattr(made, name))

    @property
    def canaries(self) -> int:
        """Canaries of one trial."""
        return len(self.repeats)

    @property
    def members(self) -> int:
        """How many models the plan trains."""
        return self._with(1).members

    def of(self, *, examples: int) -> InsertPlan:
        """Return the plan over so many examples, whose steps are known.

        Epochs end with the step that completes them.
        """
        if self.epochs is None:
            return self._with(self.steps)
        return self._with(max(1, math.ceil(self.epochs * examples / self.batch - 1e-9)))

    def _with(self, steps: int | None) -> InsertPlan:
        given: dict[str, Any] = {name: getattr(self, name) for name in _shared()}
        return InsertPlan(steps=steps, **given)  # type: ignore[arg-type]


def _shared() -> list[str]:
    """The fields that both plans have, but for the length."""
    return [one.name for one in dataclasses.fields(InsertPlan) if one.name not in _LENGTHS]
