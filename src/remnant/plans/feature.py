"""FEATURE: one training image is stamped, in one model a canary and seed, and in its twin none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import PlanError
from remnant.plans.bounds import Count, FromZero, Share, at_least
from remnant.plans.plan import (
    FEATURE_DROPOUT,
    FEATURE_INIT,
    FEATURE_ORDER,
    Plan,
    Precision,
    Sampling,
    added_later,
)
from remnant.plans.schedule import EMPTY, Batch, Ledger, Schedule, generator, ledger_of, make_order

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class FeaturePlan(Plan):
    """Models that each saw one stamped image, and models that saw none.

    Members of one seed share their start, their batches and their dropout. They come first, seed
    by seed: one a canary, then their twin, in which nothing is planted. After them come further
    unplanted members, each with a seed of its own. A member depends on its own seed and canary,
    never on how many others there are after it.

    Row ``n + j`` of the example store is canary ``j``: example ``places[j]`` with the patch. Its
    members are given it wherever the others of their seed are given the example itself.

    Attributes:
        canaries: Images that are stamped, one for each planted model.
        seeds: Trainings of each canary, at least two.
        unplanted: Models with nothing planted, besides one twin for each seed.
        epochs: Largest number of passes over the training examples.
        batch: Rows in a step.
        patience: Epochs without a better validation loss after which a model stops.
        validation: Share of the clean examples held out for early stopping.
        seed: Determines everything random in the plan.
        precision: Arithmetic of the training.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            ``fixed`` (not shuffled), or ``poisson`` (each example is in each batch with probability
            batch / examples; only ``dp-`` optimizers train on such batches).

    Example:
        >>> plan = FeaturePlan(canaries=2, seeds=2, unplanted=1)
        >>> plan.planted.tolist()
        [0, 1, -1, 0, 1, -1, -1]
        >>> plan.twins.tolist(), plan.bare.tolist()
        ([2, 5], [2, 5, 6])
    """

    canaries: Count = 10
    seeds: Annotated[int, at_least(2)] = 3
    unplanted: FromZero = 8
    epochs: Count = 500
    batch: Count = 128
    patience: Count = 10
    validation: Share = 0.1
    seed: FromZero = 0
    precision: Precision = "float32"
    sampling: Sampling = added_later("epoch")

    kind: ClassVar[str] = "feature"

    @property
    def members(self) -> int:
        """How many models the plan trains."""
        return self.seeds * (self.canaries + 1) + self.unplanted

    @cached_property
    def planted(self) -> Ints:
        """The canary of each member, -1 where nothing is planted."""
        own = [*range(self.canaries), -1] * self.seeds + [-1] * self.unplanted
        return np.array(own, dtype=np.int64)

    @cached_property
    def streams(self) -> Ints:
        """The seed of each member, counted from 0."""
        shared = np.repeat(np.arange(self.seeds), self.canaries + 1)
        return np.concatenate([shared, self.seeds + np.arange(self.unplanted)])

    @property
    def grid(self) -> Ints:
        """The member of each seed and canary, shape ``(seeds, canaries)``."""
        first = np.arange(self.seeds)[:, None] * (self.canaries + 1)
        return np.asarray(first + np.arange(self.canaries), dtype=np.int64)

    @property
    def twins(self) -> Ints:
        """The unplanted member of each seed, shape ``(seeds,)``."""
        return np.arange(1, self.seeds + 1) * (self.canaries + 1) - 1

    @property
    def bare(self) -> Ints:
        """All unplanted members, each of another seed: the twins first."""
        return np.flatnonzero(self.planted < 0)

    @property
    def starts(self) -> list[int]:
        """The start of each member; those of one seed share theirs."""
        return self._drawn(FEATURE_INIT)

    @property
    def dropout_seeds(self) -> list[int]:
        """The dropout of each member; those of one seed share theirs."""
        return self._drawn(FEATURE_DROPOUT)

    def _drawn(self, use: int) -> list[int]:
        return [
            int(generator(self.seed, use, int(stream)).integers(2**31)) for stream in self.streams
        ]

    def trained(self, examples: int) -> int:
        """Return how many of so many clean examples are trained on; the rest are for stopping.

        Raises:
            PlanError: Nothing would be left on either side.
        """
        count = examples - max(1, round(self.validation * examples))
        if count < 1:
            raise PlanError(
                f"validation={self.validation} of examples={examples} leaves none to train on.",
                hint="Give more examples.",
            )
        return count

    def epoch(self, examples: int) -> int:
        """Return the updates of an epoch over so many training examples."""
        return max(1, round(examples / self.batch))

    def schedule(
        self, *, examples: int, places: ArrayLike, members: Sequence[int] | None = None
    ) -> Schedule:
        """Return the schedule over a store of ``examples`` rows and the canaries.

        Args:
            examples: Training examples, rows 0 to ``examples - 1``.
            places: Which example each canary stands for, shape ``(canaries,)``, no two alike.
            members: Of these only, in this order; by default of all.

        Raises:
            PlanError: Places or members that do not fit.
        """
        rows = np.asarray(places)
        fits = rows.shape == (self.canaries,) and np.issubdtype(rows.dtype, np.integer)
        if (
            not fits
            or len(np.unique(rows)) < len(rows)
            or not np.all((rows >= 0) & (rows < examples))
        ):
            raise PlanError(
                f"places={np.asarray(places).tolist()} are not {self.canaries} different ones of "
                f"{examples} examples."
            )
        chosen = list(range(self.members)) if members is None else list(members)
        if not chosen or not all(0 <= member < self.members for member in chosen):
            raise PlanError(f"members={chosen} are not some of {self.members} models.")
        return _FeatureSchedule(self, examples, rows.astype(np.int64), np.array(chosen))

    def ledger(self, *, examples: int, places: ArrayLike) -> Ledger:
        """Return when each canary is used, as if no member stopped early."""
        schedule = self.schedule(examples=examples, places=places)
        lines: dict[tuple[int, int, int], int] = {}
        for step in range(schedule.steps):
            given = np.argwhere(schedule.batch(step)[0] >= examples)[:, 0]
            for member in given.tolist():
                key = (step, member, int(self.planted[member]))
                lines[key] = lines.get(key, 0) + 1
        return ledger_of(lines)


class _FeatureSchedule(Schedule):
    def __init__(self, plan: FeaturePlan, examples: int, places: Ints, chosen: Ints) -> None:
        self.members = len(chosen)
        self.steps = plan.epochs * plan.epoch(examples)
        streams, self._row = np.unique(plan.streams[chosen], return_inverse=True)
        self._order = make_order(
            keys=[(plan.seed, FEATURE_ORDER, int(stream)) for stream in streams],
            pool=examples,
            batch=plan.batch,
            sampling=plan.sampling,
            steps=self.steps,
        )
        self.batch_size = self._order.width
        self._expected = plan.batch if plan.sampling == "poisson" else None
        canary = plan.planted[chosen]
        # No row is below EMPTY, so that nothing is ever replaced where nothing is planted.
        self._from = np.where(canary < 0, EMPTY - 1, places[np.maximum(canary, 0)])[:, None]
        self._to = (examples + canary)[:, None]

    def _batch(self, step: int) -> Batch:
        rows = self._order.rows(step)[self._row]
        indices = np.where(rows == self._from, self._to, rows)
        return indices, np.ones(self.members, dtype=bool)
