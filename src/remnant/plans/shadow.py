"""SHADOW: many models, each on a random part of the data, so that everyone is seen and unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError
from remnant.plans.bounds import Count, FromZero, Share
from remnant.plans.plan import SHADOW_INIT, SHADOW_ORDER, SPLIT, Plan, Precision, Sampling
from remnant.plans.schedule import (
    EMPTY,
    Batch,
    Ledger,
    Schedule,
    generator,
    ledger_of,
    make_order,
    rows_of,
)


@dataclass(frozen=True, kw_only=True)
class ShadowPlan(Plan):
    """Models on random halves, in complementary pairs.

    Members ``2p`` and ``2p + 1`` split the examples between them, so that over an even number of
    models every example is seen by exactly half. A member depends on its own number and the seed,
    never on how many others there are.

    Attributes:
        models: Models to train.
        steps: Updates of each model.
        batch: Rows in a step.
        seed: Determines everything random in the plan.
        fraction: Share of the examples that each model sees. Other than one half gives independent
            parts instead of complementary pairs.
        sampling: Order of the examples: ``epoch`` (shuffled, without replacement), ``replacement``,
            ``fixed`` (not shuffled), or ``poisson`` (each example is in each batch with probability
            batch / examples seen; only ``dp-`` optimizers train on such batches).
        precision: Arithmetic of the training.

    Example:
        >>> seen = ShadowPlan(models=4, steps=10).seen(examples=6)
        >>> seen.sum(axis=0)
        array([2, 2, 2, 2, 2, 2])
    """

    models: Count
    steps: Count
    batch: Count = 64
    seed: FromZero = 0
    fraction: Share = 0.5
    sampling: Sampling = "epoch"
    precision: Precision = "float32"

    kind: ClassVar[str] = "shadow"

    @property
    def members(self) -> int:
        """How many models the plan trains."""
        return self.models

    @property
    def seeds(self) -> list[int]:
        """The start of each member."""
        return [
            int(generator(self.seed, SHADOW_INIT, m).integers(2**31)) for m in range(self.models)
        ]

    def seen(self, *, examples: int, members: Sequence[int] | None = None) -> NDArray[np.bool_]:
        """Return which member sees which example, bool ``(members, examples)``.

        Args:
            examples: How many there are.
            members: Speak of these only, in this order; by default of all.
        """
        count = round(self.fraction * examples)
        if not 0 < count < examples:
            raise PlanError(
                f"fraction={self.fraction} of examples={examples} leaves nothing seen or unseen.",
                hint="Give more examples.",
            )
        chosen = self._chosen(members)
        seen = np.zeros((len(chosen), examples), dtype=bool)
        paired = self.fraction == 0.5
        for row, member in zip(seen, chosen, strict=True):
            draw = generator(self.seed, SPLIT, member // 2 if paired else member)
            order = draw.permutation(examples)
            second = paired and member % 2 == 1
            row[order[count:] if second else order[:count]] = True
        return seen

    def schedule(self, *, examples: int, members: Sequence[int] | None = None) -> Schedule:
        """Return the schedule over a store of ``examples`` rows, of all members or of these."""
        chosen = self._chosen(members)
        return _ShadowSchedule(self, self.seen(examples=examples, members=chosen), chosen)

    def _chosen(self, members: Sequence[int] | None) -> list[int]:
        chosen = list(range(self.models)) if members is None else list(members)
        if not chosen or not all(0 <= member < self.models for member in chosen):
            raise PlanError(f"members={chosen} are not some of {self.models} models.")
        return chosen

    def ledger(self, *, examples: int | None = None) -> Ledger:
        """Return an empty ledger: SHADOW plants nothing; ``seen`` says who saw what."""
        return ledger_of({})


class _ShadowSchedule(Schedule):
    def __init__(self, plan: ShadowPlan, seen: NDArray[np.bool_], chosen: list[int]) -> None:
        self.members, self.steps = len(seen), plan.steps
        pools = [np.flatnonzero(row) for row in seen]
        self._groups = []
        for size in sorted({len(pool) for pool in pools}):  # two sizes when a half is odd
            of_size = [m for m, pool in enumerate(pools) if len(pool) == size]
            order = make_order(
                keys=[(plan.seed, SHADOW_ORDER, chosen[m]) for m in of_size],
                pool=size,
                batch=plan.batch,
                sampling=plan.sampling,
                steps=plan.steps,
            )
            self._groups.append((np.array(of_size), np.stack([pools[m] for m in of_size]), order))
        self.batch_size = max(order.width for _, _, order in self._groups)
        self._expected = plan.batch if plan.sampling == "poisson" else None

    def _batch(self, step: int) -> Batch:
        indices = np.full((self.members, self.batch_size), EMPTY, dtype=np.int64)
        for members, pools, order in self._groups:
            indices[members, : order.width] = rows_of(pools, order.rows(step))
        return indices, np.ones(self.members, dtype=bool)
