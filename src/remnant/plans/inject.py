"""INJECT: train on clean data, take the injected updates at one moment, go on with clean data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput
from remnant.plans.bounds import whole_or_several
from remnant.plans.plan import FILL
from remnant.plans.schedule import Batch, Ledger, Order, Schedule, Trunk, ledger_of
from remnant.plans.twins import TwinPlan


@dataclass(frozen=True, kw_only=True)
class InjectPlan(TwinPlan):
    """INJECT (Jagielski et al., Alg. 2), as frozen data.

    A trial's members train alike until ``step``; there the planted member takes ``repeats``
    updates on a batch of canaries while the others do nothing; then all go on with clean data.

    Attributes:
        step: Clean steps before the injection; a list injects the same canaries several times.
        copies: Copies of each canary in the injected batch. Not set: the canaries fill the batch; a
            number: that many copies of each, then clean rows; a list: dealt to the canaries in
            turn.

    Example:
        >>> plan = InjectPlan(canaries=32, step=300, watch_steps=400, batch=64)
        >>> indices, active = plan.schedule(examples=1000).batch(300)
        >>> active[:3], sorted(set(indices[0]))[0]
        (array([ True, False, False]), np.int64(1000))
    """

    copies: Annotated[int | tuple[int, ...], whole_or_several(1)] | None = None

    kind: ClassVar[str] = "inject"

    def _contradictions(self) -> list[str]:
        faults = []
        if list(self.injections) != sorted(set(self.injections)):
            faults.append(f"step={self.step} is not in increasing order")
        needed = self.canaries if self.copies is None else int(self.copies_of.sum())
        if needed > self.batch:
            faults.append(
                f"canaries={self.canaries} take {needed} rows, more than batch={self.batch} holds"
            )
        return faults

    @property
    def injections(self) -> tuple[int, ...]:
        """Clean steps before each injection."""
        return self.step if isinstance(self.step, tuple) else (self.step,)

    @property
    def injected_steps(self) -> list[int]:
        """The steps of the schedule that are injected updates."""
        return [
            clean + number * self.repeats + repeat
            for number, clean in enumerate(self.injections)
            for repeat in range(self.repeats)
        ]

    @property
    def steps(self) -> int:
        """Steps of the whole schedule."""
        return self.planted_until + self.watch_steps

    @property
    def planted_until(self) -> int:
        """Updates done when the canaries have just been used for the last time: lag 0."""
        return self.injected_steps[-1] + 1

    @property
    def checkpoint_step(self) -> int:
        """Updates done at the checkpoint that a trial's members share: just before planting."""
        return self.injected_steps[0]

    def schedule(self, *, examples: int) -> Schedule:
        """Return the schedule over a store of ``examples`` clean rows, then the canaries."""
        if examples < 1:
            raise InvalidInput(f"examples={examples} leaves nothing to train on.")
        return _InjectSchedule(self, examples)

    def ledger(self, *, examples: int | None = None) -> Ledger:
        """Return when each canary is used; INJECT does not need to know ``examples``."""
        uses = self.copies_of
        return ledger_of(
            {
                (step, int(member), canary): int(uses[canary])
                for step in self.injected_steps
                for member in self.members_of("planted")
                for canary in range(self.canaries)
            }
        )

    @property
    def copies_of(self) -> NDArray[np.int64]:
        """Copies of each canary in an injected batch, shape ``(canaries,)``."""
        if self.copies is None:
            return np.bincount(np.resize(np.arange(self.canaries), self.batch))
        many = self.copies if isinstance(self.copies, tuple) else (self.copies,)
        return np.resize(np.array(many), self.canaries)

    def _injected_rows(self, examples: int) -> Iterator[NDArray[np.int64]]:
        for trial in range(self.trials):
            rows = self.canary_rows(examples, trial)
            if self.copies is None:
                yield np.resize(rows, self.batch)
            else:
                yield np.repeat(rows, self.copies_of)


class _InjectSchedule(Schedule):
    def __init__(self, plan: InjectPlan, examples: int) -> None:
        self.members, self.steps, self.batch_size = plan.members, plan.steps, plan.batch
        arms = len(plan.arms)
        parents = np.arange(plan.members) // arms * arms
        self._together = plan.checkpoint_step
        self.trunks = (Trunk(steps=self._together, parents=parents),)
        self._injected = plan.injected_steps
        made: dict[str, Any] = {"pool": examples, "batch": plan.batch, "sampling": plan.sampling}
        self._order = Order(keys=plan._order_keys(), **made)
        self._shared = Order(keys=plan._trunk_keys(), **made)
        self._fill = Order(
            keys=[(plan.seed, FILL, trial) for trial in range(plan.trials)],
            pool=examples,
            batch=plan.batch,
            sampling="replacement",
        )
        self._planted = plan.members_of("planted")
        self._canaries = list(plan._injected_rows(examples))

    def _batch(self, step: int) -> Batch:
        before = sum(1 for injected in self._injected if injected < step)
        if step in self._injected:
            indices = np.zeros((self.members, self.batch_size), dtype=np.int64)
            fill = self._fill.rows(before)
            for trial, rows in enumerate(self._canaries):
                indices[self._planted[trial]] = fill[trial]
                indices[self._planted[trial], : len(rows)] = rows
            return indices, np.isin(np.arange(self.members), self._planted)
        everyone = np.ones(self.members, dtype=bool)
        if step < self._together:
            arms = self.members // len(self._canaries)
            return self._shared.rows(step).repeat(arms, axis=0), everyone
        return self._order.rows(step - before), everyone
