"""Several schedules walked side by side by one population."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require
from remnant.plans.order import EMPTY
from remnant.plans.schedule import Batch, Schedule, Trunk


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """One schedule among those that are joined.

    Attributes:
        schedule: Over a store of clean rows, then its own canaries.
        shift: How many rows of other schedules' canaries stand before its own in the joined store.
        start: What decides its shared beginning; schedules with the same ``start`` begin alike,
            trial for trial, and need be trained only once until they part.
    """

    schedule: Schedule
    shift: int = 0
    start: Hashable = None


class JoinedSchedule(Schedule):
    """The members of several schedules, one after another, each given its own batches.

    Guarantees:
        * At every step a member is given what its own schedule gives it, canary rows moved to where
          its canaries stand in the joined store.
        * Members with the same ``start`` and trial share a trunk until the first of them parts.

    Raises:
        InvalidInput: There is no schedule, or their batch sizes or lengths differ.
    """

    def __init__(self, joints: Sequence[Joint], *, examples: int) -> None:
        schedules = [joint.schedule for joint in joints]
        faults = [] if joints else ["there is no schedule to join"]
        compared = {"batch_size": "expected_batch", "is_poisson": "is_poisson", "steps": "steps"}
        for name, attribute in compared.items():
            values = sorted({getattr(schedule, attribute) for schedule in schedules})
            if len(values) > 1:
                faults.append(f"schedules to join have {name} {', '.join(map(str, values))}")
        require(faults, error=InvalidInput)
        self._joints, self._examples = tuple(joints), examples
        self.members = sum(schedule.members for schedule in schedules)
        self.steps = schedules[0].steps
        self.batch_size = max(schedule.batch_size for schedule in schedules)
        self._expected = schedules[0].expected_batch if schedules[0].is_poisson else None
        ends = np.cumsum([0, *(schedule.members for schedule in schedules)])
        self._first: list[int] = [int(end) for end in ends[:-1]]
        self.trunks = self._shared_beginnings()

    def members_of(self, number: int) -> NDArray[np.int64]:
        """Return the members that belong to one of the joined schedules."""
        first = self._first[number]
        return np.arange(first, first + self._joints[number].schedule.members)

    def _shared_beginnings(self) -> tuple[Trunk, ...]:
        ends = {trunk.steps for joint in self._joints for trunk in joint.schedule.trunks}
        return tuple(Trunk(steps=end, parents=self._parents(end)) for end in sorted(ends))

    def _parents(self, end: int) -> NDArray[np.int64]:
        """Return, for each member up to ``end``, the member whose row it shares."""
        parents = np.arange(self.members)
        known: dict[tuple[Hashable, int], int] = {}
        for joint, first in zip(self._joints, self._first, strict=True):
            own = next((trunk for trunk in joint.schedule.trunks if trunk.steps >= end), None)
            if own is None:
                continue
            _, trial_of = np.unique(own.parents, return_inverse=True)
            key = ("alone", first) if joint.start is None else joint.start
            for member, trial in enumerate(trial_of.tolist()):
                parent = first + int(own.parents[member])
                parents[first + member] = known.setdefault((key, trial), parent)
        return parents

    def _batch(self, step: int) -> Batch:
        rows, active = [], []
        for joint in self._joints:
            indices, awake = joint.schedule.batch(step)
            moved = np.where(indices >= self._examples, indices + joint.shift, indices)
            empty = ((0, 0), (0, self.batch_size - moved.shape[1]))
            rows.append(np.pad(moved, empty, constant_values=EMPTY))
            active.append(awake)
        return np.concatenate(rows), np.concatenate(active)
