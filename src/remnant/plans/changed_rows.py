"""The batches of a schedule with rows replaced, or with every canary before its last steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError
from remnant.plans.schedule import Batch, Schedule, generator


class CleanLast(Schedule):
    """A schedule in another order: canaries first, then clean steps.

    Each use of a planted row in the last ``clean`` steps is exchanged with a use of a clean row in
    an earlier step of the same member, which is drawn at random.

    Args:
        schedule: Over ``examples`` clean rows, then the planted ones.
        examples: How many rows are clean.
        clean: Steps at the end without a planted row.
        seed: Determines which uses are exchanged.

    Guarantees:
        * Every member is given the same rows, each as often, as by ``schedule``.
        * No planted row is in the last ``clean`` steps.

    Raises:
        PlanError: ``clean`` leaves no step before, or too few places for the canaries.
    """

    def __init__(self, schedule: Schedule, *, examples: int, clean: int, seed: int) -> None:
        self.members, self.steps = schedule.members, schedule.steps
        self.batch_size, self.trunks = schedule.batch_size, ()
        if clean >= schedule.steps:
            raise PlanError(
                f"{clean} clean steps at the end leave none before: there are {schedule.steps}.",
                hint="Train for longer, or end with fewer clean steps.",
            )
        self._schedule, self._first = schedule, schedule.steps - clean
        self._moved: dict[int, list[tuple[int, int, int]]] = {}
        rows = np.stack([schedule.batch(step)[0] for step in range(schedule.steps)])
        for member in range(self.members):
            self._exchange(rows[:, member], member, examples, generator(seed, member))

    def _exchange(
        self, rows: NDArray[np.int64], member: int, examples: int, rng: np.random.Generator
    ) -> None:
        late = np.argwhere(rows >= examples)
        late = late[late[:, 0] >= self._first]
        before = rows[: self._first]
        early = np.argwhere((before >= 0) & (before < examples))
        if len(early) < len(late):
            raise PlanError(
                f"{len(late)} uses of canaries do not fit into {len(early)} places before the "
                "clean steps.",
                hint="End with fewer clean steps.",
            )
        chosen = early[rng.choice(len(early), size=len(late), replace=False)]
        for (step, place), (other_step, other_place) in zip(
            late.tolist(), chosen.tolist(), strict=True
        ):
            own, other = int(rows[step, place]), int(rows[other_step, other_place])
            self._moved.setdefault(step, []).append((member, place, other))
            self._moved.setdefault(other_step, []).append((member, other_place, own))

    def _batch(self, step: int) -> Batch:
        rows, active = self._schedule.batch(step)
        if step in self._moved:
            rows = rows.copy()
            for member, place, row in self._moved[step]:
                rows[member, place] = row
        return rows, active


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
