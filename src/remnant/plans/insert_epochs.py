"""INSERT whose length may be given in epochs: what a text is cut into says how many steps."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from remnant.plans.bounds import Count, FromZero, Positive, at_least, list_of
from remnant.plans.insert import InsertPlan
from remnant.plans.plan import Plan, Precision, Sampling

_LENGTHS = ("steps", "epochs")


@dataclass(frozen=True, kw_only=True)
class InsertEpochsPlan(Plan):
    """``InsertPlan`` with ``epochs`` as an alternative to ``steps``.

    Attributes:
        repeats: Copies of each canary, one entry for each canary.
        steps: Updates of each model. Give either this or ``epochs``.
        epochs: Passes over the examples, not necessarily a whole number. Give either this or
            ``steps``.
        trials: Independent repetitions, each with its own canaries, start and order. Variants are
            compared trial by trial.
        controls: Secrets of each trial that are drawn like the canaries and never planted.
        twin: Whether each trial has a second model that sees no canary.
        batch: Rows in a step.
        seed: Determines everything random in the plan.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            ``fixed`` (not shuffled), or ``poisson`` (each example is in each batch with probability
            batch / examples; only ``dp-`` optimizers train on such batches).
        precision: Arithmetic of the training.

    Example:
        >>> plan = InsertEpochsPlan(repeats=(1,), epochs=3, batch=10)
        >>> plan.of(examples=105).steps
        32
    """

    repeats: Annotated[tuple[int, ...], list_of(at_least(1), least=1)]
    steps: Count | None = None
    epochs: Positive | None = None
    trials: Count = 5
    controls: FromZero = 0
    twin: bool = False
    batch: Count = 32
    seed: FromZero = 0
    sampling: Sampling = "epoch"
    precision: Precision = "float32"

    kind: ClassVar[str] = "insert"

    def _contradictions(self) -> list[str]:
        both = (self.steps is None) == (self.epochs is None)
        return ["give either steps or epochs"] if both else []

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
    return [known.name for known in dataclasses.fields(InsertPlan) if known.name not in _LENGTHS]
