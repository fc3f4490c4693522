"""What INJECT and POISON share: trials of a planted member, its unplanted twin and an A/A twin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError, require
from remnant.plans.order import SAMPLINGS, generator
from remnant.plans.plan import DROPOUT, INIT, ORDER, PRECISIONS, Plan, one_of, whole


@dataclass(frozen=True, kw_only=True)
class TwinPlan(Plan):
    """Trials of twins: the fields that INJECT and POISON have in common.

    Attributes:
        canaries: Examples planted in each trial.
        step: T_I: clean steps before planting (INJECT) or before removal (POISON).
        repeats: Consecutive updates on the canaries (INJECT); copies of each canary in every pass
            over the data (POISON).
        watch_steps: Clean steps after the canaries were last used.
        trials: Independent repetitions, each with its own start and batch order.
        batch: Rows a step.
        seed: From which everything random in the plan follows.
        sampling: ``"epoch"`` (shuffled, without replacement), ``"replacement"`` or ``"fixed"``
            (not shuffled).
        twins: ``"shared"``: a trial's twins meet the same clean batches throughout;
            ``"fresh"``: they share their start and then each has an order of its own.
        aa: Whether each trial has a third member, planted nothing and in an order of its own. With
            the unplanted twin it makes the A/A pair, which must stay at chance.
        controls: Examples drawn like the canaries and never planted.
        fresh_canaries: Whether each trial plants its own canaries. Row ``n + j`` of the example
            store is canary ``j``; with fresh canaries row ``n + trial * canaries + j`` is.
        precision: In which arithmetic the members are trained.
    """

    canaries: int
    step: int | tuple[int, ...]
    repeats: int = 1
    watch_steps: int
    trials: int = 3
    batch: int = 64
    seed: int = 0
    sampling: str = "epoch"
    twins: str = "shared"
    aa: bool = True
    controls: int = 0
    fresh_canaries: bool = False
    precision: str = "float32"

    def __post_init__(self) -> None:
        require(self._faults(), error=PlanError, hint="Mend the plan's fields.")

    def _faults(self) -> list[str]:
        faults: list[str] = []
        for name, least in (
            ("canaries", 1),
            ("repeats", 1),
            ("watch_steps", 0),
            ("trials", 1),
            ("batch", 1),
            ("seed", 0),
            ("controls", 0),
        ):
            whole(self, name, least, faults)
        one_of(self, "sampling", SAMPLINGS, faults)
        one_of(self, "twins", ("shared", "fresh"), faults)
        one_of(self, "aa", (True, False), faults)
        one_of(self, "fresh_canaries", (True, False), faults)
        one_of(self, "precision", PRECISIONS, faults)
        return faults

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
