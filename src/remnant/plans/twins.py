"""What INJECT and POISON share: trials of a planted member, its unplanted twin and an A/A twin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from remnant.plans.bounds import Count, FromZero, one_of, whole_or_several
from remnant.plans.plan import DROPOUT, INIT, ORDER, FullBatches, Plan, Precision
from remnant.plans.schedule import generator

TWINS = ("shared", "fresh")


@dataclass(frozen=True, kw_only=True)
class TwinPlan(Plan):
    """Trials of twins: the fields that INJECT and POISON have in common.

    Row ``n + j`` of the example store is canary ``j``; with fresh canaries row ``n + trial *
    canaries + j`` is.

    Attributes:
        canaries: Examples planted in each trial.
        step: Clean steps before planting (INJECT) or before the canaries are removed (POISON).
        repeats: Consecutive updates on the canaries (INJECT), or copies of each canary in every
            epoch (POISON).
        watch_steps: Clean steps after the canaries were last used.
        trials: Independent repetitions, each with its own start and batch order.
        batch: Rows in a step.
        seed: Determines everything random in the plan.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            or ``fixed`` (not shuffled).
        twins: ``shared``: both members of a trial get the same clean batches throughout; ``fresh``:
            they share their start, then each has its own order.
        aa: Whether each trial has a third member with nothing planted and an order of its own. With
            the unplanted twin it makes the A/A pair, which must stay at chance.
        controls: Examples drawn like the canaries and never planted.
        fresh_canaries: Whether each trial plants its own canaries. The other trials' are then
            examples that it never planted.
        precision: Arithmetic of the training.
    """

    canaries: Count
    step: Annotated[int | tuple[int, ...], whole_or_several(0)]
    repeats: Count = 1
    watch_steps: FromZero
    trials: Count = 8
    batch: Count = 64
    seed: FromZero = 0
    sampling: FullBatches = "epoch"
    twins: Annotated[str, one_of(TWINS)] = "shared"
    aa: bool = True
    controls: FromZero = 0
    fresh_canaries: bool = True
    precision: Precision = "float32"

    @property
    def arms(self) -> tuple[str, ...]:
        """The members of one trial, in order."""
        return ("planted", "twin", "aa") if self.aa else ("planted", "twin")

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
        return [self._seed(INIT, trial, 0) for trial in range(self.trials) for _ in self.arms]

    @cached_property
    def dropout_seeds(self) -> list[int]:
        """The dropout of each member, shared by those who share their batch order."""
        return [
            self._seed(DROPOUT, trial, self._stream(arm))
            for trial in range(self.trials)
            for arm in self.arms
        ]

    def canary_rows(self, examples: int, trial: int) -> NDArray[np.int64]:
        """Return the rows of the example store that hold the canaries of ``trial``."""
        first = examples + (trial * self.canaries if self.fresh_canaries else 0)
        return np.arange(first, first + self.canaries)

    def _seed(self, use: int, trial: int, stream: int) -> int:
        return int(generator(self.seed, use, trial, stream).integers(2**31))

    def _stream(self, arm: str) -> int:
        if arm == "aa":
            return 3
        return self.arms.index(arm) + 1 if self.twins == "fresh" else 0

    def _trunk_keys(self) -> list[tuple[int, ...]]:
        return [(self.seed, ORDER, trial, 0) for trial in range(self.trials)]

    def _order_keys(self) -> list[tuple[int, ...]]:
        return [
            (self.seed, ORDER, trial, self._stream(arm))
            for trial in range(self.trials)
            for arm in self.arms
        ]
