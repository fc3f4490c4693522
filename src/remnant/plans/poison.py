"""POISON: train on clean data and canaries together, then on clean data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError, require
from remnant.plans.bounds import Count, whole_or_several
from remnant.plans.plan import PLACES, added_later
from remnant.plans.schedule import Batch, Ledger, Order, Schedule, generator, ledger_of
from remnant.plans.twins import TwinPlan


@dataclass(frozen=True, kw_only=True)
class PoisonPlan(TwinPlan):
    """POISON (Jagielski et al., Alg. 1), as frozen data.

    In every epoch before ``step`` each canary takes the place of ``repeats`` clean rows of the
    planted member, at random places of that epoch; from ``step`` on it has none. So a trial's
    shared twins differ in exactly those places and in nothing else.

    Attributes:
        step: Step from which the canaries are gone (T_I). Where it is not the end of an epoch, the
            last one is cut short and some canaries miss it. Lags count from here; a canary's own
            last use is up to one epoch earlier (two, if cut short).
        epoch_steps: Steps of one epoch of planting. Not set: one pass over the clean rows.
        copies: Copies of each canary in every epoch, in place of ``repeats``: a number, or a list
            dealt to the canaries in turn. Not set: ``repeats`` of each.

    Example:
        >>> plan = PoisonPlan(canaries=4, step=20, watch_steps=5, trials=1, batch=10)
        >>> plan.ledger(examples=100).uses.sum()  # four canaries, two epochs of ten steps
        np.int64(8)
    """

    step: Count
    epoch_steps: Count | None = None
    copies: Annotated[int | tuple[int, ...], whole_or_several(1)] | None = added_later(None)

    kind: ClassVar[str] = "poison"

    def _contradictions(self) -> list[str]:
        if self.copies is not None and self.repeats != 1:
            return [f"copies={self.copies} and repeats={self.repeats} both say how often"]
        if self.epoch_steps is None:
            return []
        return self._room(min(self.epoch_steps, self.step))

    @property
    def copies_of(self) -> NDArray[np.int64]:
        """Copies of each canary in an epoch, shape ``(canaries,)``."""
        many = self.repeats if self.copies is None else self.copies
        return np.resize(np.array(many, dtype=np.int64), self.canaries)

    @property
    def steps(self) -> int:
        """Steps of the whole schedule."""
        return self.planted_until + self.watch_steps

    @property
    def planted_until(self) -> int:
        """Updates done when the canaries are removed: lag 0."""
        return self.step

    @property
    def checkpoint_step(self) -> int:
        """Updates done at the only checkpoint that a trial's members share: none."""
        return 0

    def schedule(self, *, examples: int) -> Schedule:
        """Return the schedule over a store of ``examples`` clean rows, then the canaries."""
        return _PoisonSchedule(self, examples, self._epoch(examples))

    def ledger(self, *, examples: int | None = None) -> Ledger:
        """Return when each canary is used.

        Args:
            examples: Clean rows, from which an epoch's length follows; not needed where the plan
                names ``epoch_steps``.
        """
        length = self._epoch(examples)
        lines: dict[tuple[int, int, int], int] = {}
        for trial, member in enumerate(self.members_of("planted")):
            for epoch in range(-(-self.planted_until // length)):
                places, canaries = self._places(trial, epoch, length)
                steps = epoch * length + places // self.batch
                for step, canary in zip(steps, canaries, strict=True):
                    if step < self.planted_until:
                        key = (int(step), int(member), int(canary))
                        lines[key] = lines.get(key, 0) + 1
        return ledger_of(lines)

    def _epoch(self, examples: int | None) -> int:
        if examples is not None and examples < 1:
            raise PlanError(f"examples={examples} leaves nothing to train on.")
        if self.epoch_steps is None and examples is None:
            raise PlanError(
                "The ledger of a POISON plan depends on the length of an epoch.",
                hint="Call ledger(examples=n), or give the plan epoch_steps.",
            )
        length = self.epoch_steps or -(-(examples or 1) // self.batch)
        length = min(length, self.planted_until)  # so that each canary is used, however soon T_I is
        require(self._room(length), error=PlanError, hint="Fix the plan's fields.")
        return length

    def _room(self, length: int) -> list[str]:
        needed, room = int(self.copies_of.sum()), length * self.batch
        if needed <= room:
            return []
        often = f"repeats={self.repeats}" if self.copies is None else f"copies={self.copies}"
        return [
            f"canaries={self.canaries} x {often} do not fit the {room} places "
            f"of an epoch of {length} steps"
        ]

    def _places(
        self, trial: int, epoch: int, length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places (step within the epoch times batch, plus slot) and their canaries."""
        canaries = np.repeat(np.arange(self.canaries), self.copies_of)
        rng = generator(self.seed, PLACES, trial, epoch)
        return rng.choice(length * self.batch, size=len(canaries), replace=False), canaries


class _PoisonSchedule(Schedule):
    def __init__(self, plan: PoisonPlan, examples: int, length: int) -> None:
        self.members, self.steps, self.batch_size = plan.members, plan.steps, plan.batch
        self._plan, self._examples, self._length = plan, examples, length
        self._order = Order(
            keys=plan._order_keys(), pool=examples, batch=plan.batch, sampling=plan.sampling
        )
        self._kept: tuple[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = (-1, [])

    def _batch(self, step: int) -> Batch:
        rows = self._order.rows(step)
        if step < self._plan.planted_until:
            epoch, within = divmod(step, self._length)
            for trial, member in enumerate(self._plan.members_of("planted")):
                places, canaries = self._epoch_places(epoch)[trial]
                here = places // self.batch_size == within
                stored = self._plan.canary_rows(self._examples, trial)
                rows[member, places[here] % self.batch_size] = stored[canaries[here]]
        return rows, np.ones(self.members, dtype=bool)

    def _epoch_places(self, epoch: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        if self._kept[0] != epoch:
            trials = range(self._plan.trials)
            self._kept = epoch, [self._plan._places(t, epoch, self._length) for t in trials]
        return self._kept[1]
