"""INSERT: canaries put into the data once or often, and trained on as everything else is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError, require
from remnant.plans.ledger import Ledger, ledger_of
from remnant.plans.order import SAMPLINGS, Order, generator
from remnant.plans.plan import (
    DROPOUT,
    INIT,
    ORDER,
    PLACES,
    PRECISIONS,
    Plan,
    one_of,
    whole,
    whole_row,
)
from remnant.plans.schedule import Batch, Schedule


@dataclass(frozen=True, kw_only=True)
class InsertPlan(Plan):
    """The Secret Sharer's test, as frozen data.

    Each copy of a canary has an example of its own to stand in: the planted member meets the
    planted version of that example whenever its turn comes, the twin the clean one. So a trial's
    twins share their start and every batch, and differ in those examples alone.

    Row ``n + trial * copies + i`` of the example store is the planted version that belongs to copy
    ``i`` of that trial, in the order of ``copy_canaries``.

    Attributes:
        repeats: How many copies of each canary; one entry a canary.
        steps: Updates of each member.
        trials: Independent repetitions, each with canaries, start and order of its own.
        controls: Secrets drawn like the canaries and never planted, for each trial.
        twin: Whether each trial has a member that sees no canary.
        batch, seed, precision: As in the twin plans.
        sampling: As there; with ``"fixed"``, the same order in every epoch, copies stand in the
            first examples, so that all trials meet them in the same steps.

    Example:
        >>> plan = InsertPlan(repeats=(1, 4), steps=20, batch=10)
        >>> plan.ledger(examples=100).uses.sum()  # five copies in two epochs
        np.int64(10)
    """

    repeats: tuple[int, ...]
    steps: int
    trials: int = 1
    controls: int = 0
    twin: bool = True
    batch: int = 32
    seed: int = 0
    sampling: str = "epoch"
    precision: str = "float32"

    kind: ClassVar[str] = "insert"

    def __post_init__(self) -> None:
        faults: list[str] = []
        for name, least in (
            ("steps", 1),
            ("trials", 1),
            ("controls", 0),
            ("batch", 1),
            ("seed", 0),
        ):
            whole(self, name, least, faults)
        one_of(self, "twin", (True, False), faults)
        one_of(self, "sampling", SAMPLINGS, faults)
        one_of(self, "precision", PRECISIONS, faults)
        whole_row(self, "repeats", 1, faults)
        require(faults, error=PlanError, hint="Mend the plan's fields.")

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
        self.members, self.steps, self.batch_size = plan.members, plan.steps, plan.batch
        self._planted = plan.members_of("planted")
        self._arms = len(plan.arms)
        self._order = Order(
            keys=[(plan.seed, ORDER, trial, 0) for trial in range(plan.trials)],
            pool=examples,
            batch=plan.batch,
            sampling=plan.sampling,
        )
        self._versions = np.tile(np.arange(examples), (plan.trials, 1))
        for trial in range(plan.trials):
            first = examples + trial * plan.copies
            places = plan.places(examples=examples, trial=trial)
            self._versions[trial, places] = np.arange(first, first + plan.copies)

    def _batch(self, step: int) -> Batch:
        clean = self._order.rows(step)
        rows = np.repeat(clean, self._arms, axis=0)
        rows[self._planted] = np.take_along_axis(self._versions, clean, axis=1)
        return rows, np.ones(self.members, dtype=bool)
