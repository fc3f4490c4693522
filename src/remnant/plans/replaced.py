"""The batches of a schedule with some rows replaced by others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.plans.schedule import Batch, Schedule


class ReplacedRows(Schedule):
    """A schedule in which each member has its own replacements.

    Args:
        schedule: The batches.
        rows: The row that stands for each row of the store, ``(members, rows of the store)``; an
            empty place stays empty.

    Guarantees:
        * At every step a member is given ``rows[member, row]`` for each ``row`` of its batch.
    """

    def __init__(self, schedule: Schedule, rows: NDArray[np.int64]) -> None:
        self.members, self.steps = schedule.members, schedule.steps
        self.batch_size, self.trunks = schedule.batch_size, ()
        self._expected = schedule.expected_batch if schedule.is_poisson else None
        self._schedule, self._rows = schedule, rows

    def _batch(self, step: int) -> Batch:
        indices, active = self._schedule.batch(step)
        moved = np.take_along_axis(self._rows, np.maximum(indices, 0), axis=1)
        return np.where(indices < 0, indices, moved), active
