"""Several schedules walked side by side by one population."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require
from remnant.plans.schedule import EMPTY, Batch, Schedule, Trunk


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """One schedule among those that are joined.

    Attributes:
        schedule: Over a store of clean rows, then its own canaries.
        shift: How many rows of other schedules' canaries stand before its own in the joined store.
        start: What decides its shared beginning; schedules with the same ``start`` begin alike,
            trial for trial, and need be trained only once until they part.
        pauses: Pairs ``(step, count)``: before its own ``step`` all of its members do nothing for
            ``count`` joined steps. With pauses, schedules of unequal length stay in step.
        same: One name per member, or nothing. Members with one name, in any of the schedules, get
            the same batches at every joined step, and need be trained only once. None is a member
            unlike all others.
    """

    schedule: Schedule
    shift: int = 0
    start: Hashable = None
    pauses: tuple[tuple[int, int], ...] = ()
    same: tuple[Hashable, ...] = ()

    @property
    def steps(self) -> int:
        """Steps of the schedule, its pauses included."""
        return self.joined_step(self.schedule.steps)

    def joined_step(self, own: int) -> int:
        """Return how many joined steps have passed after ``own`` steps of the schedule."""
        return own + sum(count for step, count in self.pauses if step < own)

    def own_step(self, joined: int) -> int | None:
        """Return the schedule's step at a joined step; None in a pause."""
        passed = 0
        for step, count in self.pauses:
            if joined < step + passed:
                break
            if joined < step + passed + count:
                return None
            passed += count
        return joined - passed


class JoinedSchedule(Schedule):
    """The members of several schedules, one after another, each given its own batches.

    Guarantees:
        * At every step a member is given what its own schedule gives it, canary rows moved to where
          its canaries stand in the joined store.
        * Members with the same ``start`` and trial share a trunk until the first of them parts;
          members of one name in ``same`` share theirs to the end.

    Raises:
        InvalidInput: There is no schedule, or their batch sizes or lengths differ.
    """

    def __init__(self, joints: Sequence[Joint], *, examples: int) -> None:
        schedules = [joint.schedule for joint in joints]
        faults = [] if joints else ["there is no schedule to join"]
        compared: dict[str, set[int]] = {
            "batch_size": {schedule.expected_batch for schedule in schedules},
            "is_poisson": {schedule.is_poisson for schedule in schedules},
            "steps": {joint.steps for joint in joints},
        }
        for name, different in compared.items():
            if len(values := sorted(different)) > 1:
                faults.append(f"schedules to join have {name} {', '.join(map(str, values))}")
        require(faults, error=InvalidInput)
        self._joints, self._examples = tuple(joints), examples
        self.members = sum(schedule.members for schedule in schedules)
        self.steps = joints[0].steps
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
        ends = {
            joint.joined_step(trunk.steps)
            for joint in self._joints
            for trunk in joint.schedule.trunks
        }
        if len(set(self._names())) < self.members:
            ends.add(self.steps)
        return tuple(Trunk(steps=end, parents=self._parents(end)) for end in sorted(ends))

    def _names(self) -> list[Hashable]:
        """What each member shares its batches by to the end: a name, or its own number."""
        names: list[Hashable] = []
        for joint in self._joints:
            own = joint.same or (None,) * joint.schedule.members
            names += [
                len(names) + i if name is None else ("same", name) for i, name in enumerate(own)
            ]
        return names

    def _parents(self, end: int) -> NDArray[np.int64]:
        """Return, for each member up to ``end``, the member whose row it shares."""
        parents = np.arange(self.members)
        known: dict[Hashable, int] = {}
        names = self._names()
        for joint, first in zip(self._joints, self._first, strict=True):
            trunks = joint.schedule.trunks
            own = next((trunk for trunk in trunks if joint.joined_step(trunk.steps) >= end), None)
            if own is None:
                for member in range(first, first + joint.schedule.members):
                    parents[member] = known.setdefault(names[member], member)
                continue
            _, trial_of = np.unique(own.parents, return_inverse=True)
            key = ("alone", first) if joint.start is None else joint.start
            for member, trial in enumerate(trial_of.tolist()):
                parent = first + int(own.parents[member])
                parents[first + member] = known.setdefault(("trunk", key, trial), parent)
        return parents

    def _batch(self, step: int) -> Batch:
        rows, active = [], []
        for joint in self._joints:
            own = joint.own_step(step)
            indices, awake = joint.schedule.batch(0 if own is None else own)
            awake = awake if own is not None else np.zeros_like(awake)
            moved = np.where(indices >= self._examples, indices + joint.shift, indices)
            empty = ((0, 0), (0, self.batch_size - moved.shape[1]))
            rows.append(np.pad(moved, empty, constant_values=EMPTY))
            active.append(awake)
        return np.concatenate(rows), np.concatenate(active)
