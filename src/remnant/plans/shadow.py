"""SHADOW: many models, each on a random part of the data, so that everyone is seen and unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError, require
from remnant.plans.ledger import Ledger, ledger_of
from remnant.plans.order import SAMPLINGS, Order, generator
from remnant.plans.plan import (
    PRECISIONS,
    SHADOW_INIT,
    SHADOW_ORDER,
    SPLIT,
    Plan,
    one_of,
    whole,
)
from remnant.plans.schedule import Batch, Schedule


@dataclass(frozen=True, kw_only=True)
class ShadowPlan(Plan):
    """Models on random halves, in complementary pairs.

    Members ``2p`` and ``2p + 1`` split the examples between them, so that over an even number of
    models every example is seen by exactly half. A member depends on its own number and the seed,
    never on how many others there are.

    Attributes:
        models: How many.
        steps: Updates of each.
        fraction: Share of the examples each one sees. Other than one half gives independent
            parts instead of pairs.
        batch, seed, sampling, precision: As in the twin plans.

    Example:
        >>> seen = ShadowPlan(models=4, steps=10).seen(examples=6)
        >>> seen.sum(axis=0)
        array([2, 2, 2, 2, 2, 2])
    """

    models: int
    steps: int
    batch: int = 64
    seed: int = 0
    fraction: float = 0.5
    sampling: str = "epoch"
    precision: str = "float32"

    kind: ClassVar[str] = "shadow"

    def __post_init__(self) -> None:
        faults: list[str] = []
        for name, least in (("models", 1), ("steps", 1), ("batch", 1), ("seed", 0)):
            whole(self, name, least, faults)
        one_of(self, "sampling", SAMPLINGS, faults)
        one_of(self, "precision", PRECISIONS, faults)
        if not isinstance(self.fraction, int | float) or not 0 < self.fraction < 1:
            faults.append(f"fraction={self.fraction!r} is not between 0 and 1")
        require(faults, error=PlanError, hint="Mend the plan's fields.")

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
        if not chosen or not all(0 <= one < self.models for one in chosen):
            raise PlanError(f"members={chosen} are not some of {self.models} models.")
        return chosen

    def ledger(self, *, examples: int | None = None) -> Ledger:
        """Return an empty ledger: SHADOW plants nothing; ``seen`` says who saw what."""
        return ledger_of({})


class _ShadowSchedule(Schedule):
    def __init__(self, plan: ShadowPlan, seen: NDArray[np.bool_], chosen: list[int]) -> None:
        self.members, self.steps, self.batch_size = len(seen), plan.steps, plan.batch
        pools = [np.flatnonzero(row) for row in seen]
        self._groups = []
        for size in sorted({len(pool) for pool in pools}):  # two sizes when a half is odd
            of_size = [m for m, pool in enumerate(pools) if len(pool) == size]
            order = Order(
                keys=[(plan.seed, SHADOW_ORDER, chosen[m]) for m in of_size],
                pool=size,
                batch=plan.batch,
                sampling=plan.sampling,
            )
            self._groups.append((np.array(of_size), np.stack([pools[m] for m in of_size]), order))

    def _batch(self, step: int) -> Batch:
        indices = np.empty((self.members, self.batch_size), dtype=np.int64)
        for members, pools, order in self._groups:
            indices[members] = np.take_along_axis(pools, order.rows(step), axis=1)
        return indices, np.ones(self.members, dtype=bool)
