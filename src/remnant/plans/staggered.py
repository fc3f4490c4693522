"""STAGGERED: one ordinary run, its canaries planted at random in cohorts along the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput
from remnant.plans.bounds import Count, FromZero, at_least, list_of
from remnant.plans.plan import COHORTS, DROPOUT, INIT, ORDER, PLACES, FullBatches, Plan, Precision
from remnant.plans.schedule import Batch, Ledger, Order, Schedule, generator, ledger_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StaggeredPlan(Plan):
    """Canaries assigned at random to {never, each start} x repeats, in a single training run.

    A cohort is planted a few canaries a batch over a window: all in one update would average each
    other out. Its canaries take the places of clean rows; a canary's repeats are in different
    batches. Canaries that are never planted are the controls of all cohorts at all lags.

    Row ``n + j`` of the example store is canary ``j``.

    Attributes:
        canaries: All canaries, including those never planted.
        never: Canaries that are never planted: the controls.
        starts: First step of each cohort's window, in increasing order.
        window: Steps over which a cohort is planted.
        repeats: How often a canary is used; several numbers are dealt evenly to the canaries of
            each cohort.
        per_batch: Largest number of canaries in one batch.
        steps: Steps of the whole run. Not set: two windows after the last start.
        batch: Rows in a step.
        seed: Determines everything random in the plan.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            or ``fixed`` (not shuffled).
        precision: Arithmetic of the training.

    Example:
        >>> plan = StaggeredPlan(canaries=90, never=30, starts=[50, 100], window=20,
        ...                      repeats=[1, 4], per_batch=8)
        >>> int((plan.last_seen == -1).sum()), plan.last_seen.max() < 120
        (30, np.True_)
    """

    canaries: Count
    never: Count
    starts: Annotated[tuple[int, ...], list_of(at_least(0), least=1)]
    window: Count
    repeats: Annotated[tuple[int, ...], list_of(at_least(1), least=1)] = (1,)
    per_batch: Count = 8
    steps: Count | None = None
    batch: Count = 64
    seed: FromZero = 0
    sampling: FullBatches = "epoch"
    precision: Precision = "float32"

    kind: ClassVar[str] = "staggered"

    def _contradictions(self) -> list[str]:
        if self.steps is None:
            object.__setattr__(self, "steps", self.starts[-1] + 2 * self.window)
        faults = []
        planted, cells = self.canaries - self.never, len(self.starts) * len(self.repeats)
        if planted < cells:
            faults.append(
                f"never={self.never} of canaries={self.canaries} leaves {max(planted, 0)} for "
                f"{cells} cohorts (starts x repeats)"
            )
        if any(b - a < self.window for a, b in zip(self.starts, self.starts[1:], strict=False)):
            faults.append(
                f"starts={list(self.starts)} are not in increasing order, at least "
                f"window={self.window} apart"
            )
        if self.starts[-1] + self.window > self.total_steps:
            faults.append(
                f"the last window ends at step {self.starts[-1] + self.window}, after the last of "
                f"steps={self.total_steps}"
            )
        if max(self.repeats) > self.window:
            faults.append(
                f"repeats={max(self.repeats)} do not fit different batches of window={self.window}"
            )
        if self.per_batch > self.batch:
            faults.append(f"per_batch={self.per_batch} is more than batch={self.batch} holds")
        if not faults:
            uses, room = self._most_uses(), self.window * self.per_batch
            if uses > room:
                faults.append(
                    f"the canaries of a window are used {uses} times, and window={self.window} x "
                    f"per_batch={self.per_batch} has room for {room}; plant fewer, or raise window "
                    "or per_batch"
                )
        return faults

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return 0 if self.steps is None else self.steps

    @cached_property
    def cohort_of(self) -> Ints:
        """The number of each canary's start, -1 for never; shape ``(canaries,)``."""
        return self._assigned[0]

    @cached_property
    def repeats_of(self) -> Ints:
        """How often each canary is used, 0 for never; shape ``(canaries,)``."""
        return self._assigned[1]

    @cached_property
    def first_seen(self) -> Ints:
        """The step at which each canary is first used, -1 for never; shape ``(canaries,)``."""
        return self._seen(np.minimum, self.total_steps)

    @cached_property
    def last_seen(self) -> Ints:
        """The step at which each canary is last used, -1 for never; shape ``(canaries,)``."""
        return self._seen(np.maximum, -1)

    @property
    def members(self) -> int:
        """One: an ordinary training run."""
        return 1

    @property
    def seeds(self) -> list[int]:
        """The start of the one member."""
        return [int(generator(self.seed, INIT, 0, 0).integers(2**31))]

    @property
    def dropout_seeds(self) -> list[int]:
        """The dropout of the one member."""
        return [int(generator(self.seed, DROPOUT, 0, 0).integers(2**31))]

    def planted(self, step: int) -> Ints:
        """Return the canaries in the batch of ``step``, none of them twice."""
        steps, canaries = self._uses
        first, last = np.searchsorted(steps, [step, step + 1])
        return canaries[first:last]

    def checkpoints(self, many: int = 20) -> tuple[int, ...]:
        """Return updates done at which to score all canaries.

        Args:
            many: Evenly spaced ones from the first window on, beside those right before and right
                after every window.
        """
        edges = {*self.starts, *(start + self.window for start in self.starts)}
        even = np.linspace(self.starts[0], self.total_steps, many)
        return tuple(sorted(edges | {round(step) for step in even.tolist()}))

    def schedule(self, *, examples: int) -> Schedule:
        """Return the schedule over a store of ``examples`` clean rows, then the canaries."""
        if examples < 1:
            raise InvalidInput(f"examples={examples} leaves nothing to train on.")
        return _StaggeredSchedule(self, examples)

    def ledger(self, *, examples: int | None = None) -> Ledger:
        """Return when each canary is used; STAGGERED does not need to know ``examples``."""
        steps, canaries = self._uses
        lines = {(int(s), 0, int(c)): 1 for s, c in zip(steps, canaries, strict=True)}
        return ledger_of(lines, windows=self.cohort_of)

    @cached_property
    def _assigned(self) -> tuple[Ints, Ints]:
        order = generator(self.seed, COHORTS, 0).permutation(self.canaries)[self.never :]
        cohort, repeats = np.full(self.canaries, -1), np.zeros(self.canaries, dtype=np.int64)
        cell = np.arange(order.size) % (len(self.starts) * len(self.repeats))
        cohort[order] = cell % len(self.starts)
        repeats[order] = np.array(self.repeats)[cell // len(self.starts)]
        return cohort, repeats

    @cached_property
    def _uses(self) -> tuple[Ints, Ints]:
        """Steps in increasing order, and the canary of each use."""
        steps, canaries = [], []
        for number, start in enumerate(self.starts):
            rng = generator(self.seed, COHORTS, 1 + number)
            mine = rng.permutation(np.flatnonzero(self.cohort_of == number))
            used = np.repeat(mine, self.repeats_of[mine])
            # Dealt over the window in turn: a canary's repeats fall into different batches, and no
            # batch holds more than one canary above another.
            turns = rng.permutation(self.window)[np.arange(used.size) % self.window]
            steps.append(start + turns)
            canaries.append(used)
        step, canary = np.concatenate(steps), np.concatenate(canaries)
        order = np.lexsort((canary, step))
        return step[order], canary[order]

    def _seen(self, keep: np.ufunc, start: int) -> Ints:
        steps, canaries = self._uses
        seen = np.full(self.canaries, start)
        keep.at(seen, canaries, steps)
        seen[self.cohort_of == -1] = -1
        return seen

    def _most_uses(self) -> int:
        planted = self.cohort_of >= 0
        return int(np.bincount(self.cohort_of[planted], self.repeats_of[planted]).max())


class _StaggeredSchedule(Schedule):
    def __init__(self, plan: StaggeredPlan, examples: int) -> None:
        self.members, self.steps, self.batch_size = 1, plan.total_steps, plan.batch
        self._plan, self._examples = plan, examples
        self._order = Order(
            keys=[(plan.seed, ORDER, 0, 0)],
            pool=examples,
            batch=plan.batch,
            sampling=plan.sampling,
        )

    def _batch(self, step: int) -> Batch:
        rows = self._order.rows(step)
        planted = self._plan.planted(step)
        if planted.size:
            places = generator(self._plan.seed, PLACES, 0, step).permutation(self.batch_size)
            rows[0, places[: planted.size]] = self._examples + planted
        return rows, np.ones(1, dtype=bool)
