"""INSERT: canaries put into the data once or often; its length is given in steps or epochs."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError
from remnant.plans.bounds import Count, FromZero, Positive, at_least, list_of
from remnant.plans.plan import DROPOUT, INIT, ORDER, PLACES, Plan, Precision, Sampling
from remnant.plans.schedule import (
    Batch,
    Ledger,
    Schedule,
    generator,
    ledger_of,
    make_order,
    rows_of,
)


@dataclass(frozen=True, kw_only=True)
class InsertPlan(Plan):
    """The Secret Sharer's test, as frozen data.

    Each copy of a canary has an example of its own to stand in: the planted member meets the
    planted version of that example whenever its turn comes, the twin the clean one. So a trial's
    twins share their start and every batch, and differ in those examples alone.

    Row ``n + trial * copies + i`` of the example store is the planted version that belongs to copy
    ``i`` of that trial, in the order of ``copy_canaries``.

    Attributes:
        repeats: Copies of each canary, one entry for each canary.
        steps: Updates of each model.
        trials: Independent repetitions, each with its own canaries, start and order.
        controls: Secrets of each trial that are drawn like the canaries and never planted.
        twin: Whether each trial has a second model that sees no canary.
        batch: Rows in a step.
        seed: Determines everything random in the plan.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            ``fixed`` (not shuffled), or ``poisson`` (each example is in each batch with probability
            batch / examples; only ``dp-`` optimizers train on such batches). With ``fixed`` the
            copies are in the first examples, so that all trials meet them in the same steps.
        precision: Arithmetic of the training.

    Example:
        >>> plan = InsertPlan(repeats=(1, 4), steps=20, batch=10)
        >>> plan.ledger(examples=100).uses.sum()  # five copies in two epochs
        np.int64(10)
    """

    repeats: Annotated[tuple[int, ...], list_of(at_least(1), least=1)]
    steps: Count
    trials: Count = 1
    controls: FromZero = 0
    twin: bool = True
    batch: Count = 32
    seed: FromZero = 0
    sampling: Sampling = "epoch"
    precision: Precision = "float32"

    kind: ClassVar[str] = "insert"

    @property
    def canaries(self) -> int:
        """Canaries of one trial."""
        return len(self.repeats)

    @property
    def copies(self) -> int:
        """Planted examples of one trial."""
        return sum(self.repeats)

    @property
    def copy_canaries(self) -> NDArray[np.int64]:
        """The canary of each copy, shape ``(copies,)``."""
        return np.repeat(np.arange(self.canaries), self.repeats)

    @property
    def arms(self) -> tuple[str, ...]:
        """The members of one trial, in order."""
        return ("planted", "twin") if self.twin else ("planted",)

    @property
    def members(self) -> int:
        """How many models the plan trains."""
        return self.trials * len(self.arms)

    def members_of(self, arm: str) -> NDArray[np.int64]:
        """Return the member of each trial that plays ``arm``, shape ``(trials,)``."""
        return np.arange(self.trials) * len(self.arms) + self.arms.index(arm)

    @cached_property
    def seeds(self) -> list[int]:
        """The start of each member; a trial's members share theirs."""
        return self._seeds(INIT)

    @cached_property
    def dropout_seeds(self) -> list[int]:
        """The dropout of each member; a trial's members share theirs."""
        return self._seeds(DROPOUT)

    def places(self, *, examples: int, trial: int) -> NDArray[np.int64]:
        """Return the clean example in which each copy of a trial stands, all different.

        Raises:
            PlanError: There are more copies than examples.
        """
        if self.copies > examples:
            raise PlanError(
                f"repeats adds up to {self.copies} copies, more than the {examples} examples they "
                "stand in.",
                hint="Plant less often, or train on more data.",
            )
        if self.sampling == "fixed":
            return np.arange(self.copies)
        rng = generator(self.seed, PLACES, trial)
        return rng.choice(examples, size=self.copies, replace=False)

    def schedule(self, *, examples: int) -> Schedule:
        """Return the schedule over ``examples`` clean rows, then the planted versions."""
        return _InsertSchedule(self, examples)

    def ledger(self, *, examples: int) -> Ledger:
        """Return when each canary is used; canary ``j`` of trial ``t`` is ``t * canaries + j``."""
        schedule = self.schedule(examples=examples)
        lines: dict[tuple[int, int, int], int] = {}
        owners = self.copy_canaries
        for step in range(self.steps):
            rows, _ = schedule.batch(step)
            for trial, member in enumerate(self.members_of("planted")):
                planted = rows[member][rows[member] >= examples] - examples - trial * self.copies
                for canary in owners[planted]:
                    key = (step, int(member), int(trial * self.canaries + canary))
                    lines[key] = lines.get(key, 0) + 1
        return ledger_of(lines)

    def _seeds(self, use: int) -> list[int]:
        drawn = [int(generator(self.seed, use, t, 0).integers(2**31)) for t in range(self.trials)]
        return [seed for seed in drawn for _ in self.arms]


class _InsertSchedule(Schedule):
    def __init__(self, plan: InsertPlan, examples: int) -> None:
        self.members, self.steps = plan.members, plan.steps
        self._planted = plan.members_of("planted")
        self._arms = len(plan.arms)
        self._order = make_order(
            keys=[(plan.seed, ORDER, trial, 0) for trial in range(plan.trials)],
            pool=examples,
            batch=plan.batch,
            sampling=plan.sampling,
            steps=plan.steps,
        )
        self.batch_size = self._order.width
        self._expected = plan.batch if plan.sampling == "poisson" else None
        self._versions = np.tile(np.arange(examples), (plan.trials, 1))
        for trial in range(plan.trials):
            first = examples + trial * plan.copies
            places = plan.places(examples=examples, trial=trial)
            self._versions[trial, places] = np.arange(first, first + plan.copies)

    def _batch(self, step: int) -> Batch:
        clean = self._order.rows(step)
        rows = np.repeat(clean, self._arms, axis=0)
        rows[self._planted] = rows_of(self._versions, clean)
        return rows, np.ones(self.members, dtype=bool)


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
