"""Who is given which rows at which step, in which order, and the ledger of it; plans joined.

The rows of a step are shuffled epochs, draws with replacement, the given order, Poisson batches.
All are random access: the rows of step ``s`` come from a counter-based generator keyed by the
stream and by the epoch (or block of steps) that holds ``s``, never from the steps before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, PlanError, require

FULL_BATCHES = ("epoch", "replacement", "fixed")
SAMPLINGS = (*FULL_BATCHES, "poisson")
EMPTY = -1  # a place of a Poisson batch that holds no row
_BLOCK = 128  # steps drawn at once; part of the numbers, so never change it
_KEPT = 3  # epochs or blocks kept in memory


def generator(*key: int) -> np.random.Generator:
    """Return the counter-based generator of this key; equal keys give equal streams."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(list(key))))


class Order:
    """Batches of several streams over pools of one size.

    Args:
        keys: One key per stream; a stream depends on its own key alone.
        pool: Size of the pool that each stream draws from.
        batch: Rows a step.
        sampling: ``"epoch"`` walks through one permutation after another, so that every row of
            the pool is used once before any is used twice, also across a batch's border;
            ``"replacement"`` draws each row independently; ``"fixed"`` shuffles nothing and walks
            through the pool as it stands, again and again.

    Attributes:
        width: Places in a step: the batch.
    """

    def __init__(self, *, keys: Sequence[tuple[int, ...]], pool: int, batch: int, sampling: str):
        self._keys = list(keys)
        self._pool = pool
        self._batch = self.width = batch
        self._by_epoch = sampling != "replacement"
        self._shuffled = sampling != "fixed"
        self._kept: OrderedDict[int, NDArray[np.int32]] = OrderedDict()

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the pool's rows at ``step``, shape ``(streams, batch)``."""
        first = step * self._batch
        length = self._pool if self._by_epoch else _BLOCK * self._batch
        parts = []
        position, end = first, first + self._batch
        while position < end:
            part, offset = divmod(position, length)
            taken = min(end - position, length - offset)
            parts.append(self._part(part, length)[:, offset : offset + taken])
            position += taken
        return np.concatenate(parts, axis=1).astype(np.int64)

    def _part(self, part: int, length: int) -> NDArray[np.int32]:
        part = part if self._shuffled else 0
        if part in self._kept:
            self._kept.move_to_end(part)
            return self._kept[part]
        drawn = np.empty((len(self._keys), length), dtype=np.int32)
        for row, key in zip(drawn, self._keys, strict=True):
            rng = generator(*key, part)
            if not self._by_epoch:
                row[:] = rng.integers(0, self._pool, size=length)
            else:
                row[:] = rng.permutation(self._pool) if self._shuffled else np.arange(self._pool)
        self._kept[part] = drawn
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return drawn


class PoissonOrder(Order):
    """Poisson batches: each row of the pool is in each batch with probability ``batch / pool``.

    A batch's size is binomial and its rows are a uniform subset of that size, which is the same law
    as one coin per row. Sizes of all steps are drawn first, so that the width is known.

    Args:
        keys, pool: As for ``Order``.
        batch: Expected rows in a step, at most the pool's size.
        steps: Steps that will be asked for.

    Attributes:
        width: Places in a step: the largest batch of any stream and step, at least 1.

    Guarantees:
        * A stream's batches depend on its own key alone. Other streams, and steps after the one
          asked for, change only the number of empty places behind its rows.

    Raises:
        PlanError: The batch is larger than the pool.
    """

    def __init__(
        self, *, keys: Sequence[tuple[int, ...]], pool: int, batch: int, steps: int
    ) -> None:
        if batch > pool:
            raise PlanError(
                f"batch={batch} is more than the {pool} examples that Poisson batches draw from.",
                hint="Give a smaller batch, or more examples.",
            )
        super().__init__(keys=keys, pool=pool, batch=batch, sampling="poisson")
        rate = batch / pool
        drawn = [generator(*key, 0).binomial(pool, rate, size=steps) for key in self._keys]
        self._sizes = np.stack(drawn)
        self.width = max(1, int(self._sizes.max()))
        self._blocks: OrderedDict[int, list[list[NDArray[np.int64]]]] = OrderedDict()

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the pool's rows at ``step``, shape ``(streams, width)``, padded with -1."""
        block, within = divmod(step, _BLOCK)
        rows = np.full((len(self._keys), self.width), EMPTY, dtype=np.int64)
        for row, subsets in zip(rows, self._block(block), strict=True):
            row[: len(subsets[within])] = subsets[within]
        return rows

    def _block(self, block: int) -> list[list[NDArray[np.int64]]]:
        if block in self._blocks:
            self._blocks.move_to_end(block)
            return self._blocks[block]
        first, drawn = block * _BLOCK, []
        for key, sizes in zip(self._keys, self._sizes, strict=True):
            rng = generator(*key, 1 + block)
            drawn.append(
                [
                    rng.choice(self._pool, size=size, replace=False, shuffle=False)
                    for size in sizes[first : first + _BLOCK]
                ]
            )
        self._blocks[block] = drawn
        while len(self._blocks) > _KEPT:
            self._blocks.popitem(last=False)
        return drawn


def make_order(
    *, keys: Sequence[tuple[int, ...]], pool: int, batch: int, sampling: str, steps: int
) -> Order:
    """Return the batches of several streams under any of ``SAMPLINGS``."""
    if sampling == "poisson":
        return PoissonOrder(keys=keys, pool=pool, batch=batch, steps=steps)
    return Order(keys=keys, pool=pool, batch=batch, sampling=sampling)


def rows_of(pools: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the store's rows at places of each stream's pool; an empty place stays empty.

    Args:
        pools: The store's rows that each stream draws from, ``(streams, pool)``.
        places: Within the pool, ``(streams, width)``.
    """
    rows = np.take_along_axis(pools, np.maximum(places, 0), axis=1)
    return np.where(places == EMPTY, EMPTY, rows)


Batch = tuple[NDArray[np.int64], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Trunk:
    """A stretch that several members share, so that it need be trained only once.

    Attributes:
        steps: Until this step every member's batches equal its parent's.
        parents: The member whose batches each member shares, shape ``(members,)``.
    """

    steps: int
    parents: NDArray[np.int64]


class Schedule(ABC):
    """Batches of a population, random access in the step.

    Attributes:
        members: Members of the population.
        steps: Steps from 0 to ``steps - 1`` have a batch.
        batch_size: Places in each member's batch; an empty place is -1.
        expected_batch: Expected number of rows in a batch; ``batch_size`` where every place is
            filled.
        trunks: Shared beginnings in order of their ends: at each end members part that were
            together until there, and no two come together again.
    """

    members: int
    steps: int
    batch_size: int
    trunks: tuple[Trunk, ...] = ()
    _expected: int | None = None

    @property
    def expected_batch(self) -> int:
        """Expected number of rows in a batch."""
        return self.batch_size if self._expected is None else self._expected

    @property
    def is_poisson(self) -> bool:
        """Whether batches have random sizes, and so empty places."""
        return self._expected is not None

    def batch(self, step: int) -> Batch:
        """Return the rows of the example store and who is active at ``step``.

        Returns:
            ``indices`` int64 ``(members, batch_size)`` and ``active`` bool ``(members,)``. The rows
            of a member that is not active are valid and mean nothing. -1 is an empty place of a
            Poisson batch.

        Raises:
            InvalidInput: The step is outside the schedule.
        """
        if not 0 <= step < self.steps:
            raise InvalidInput(
                f"step={step} is outside the schedule of {self.steps} steps.",
                hint=f"Ask for steps 0 to {self.steps - 1}.",
            )
        return self._batch(int(step))

    @abstractmethod
    def _batch(self, step: int) -> Batch: ...


class ArraySchedule(Schedule):
    """A schedule given as ``indices[steps, members, batch]`` and ``active[steps, members]``."""

    def __init__(
        self, indices: NDArray[np.int64], *, active: NDArray[np.bool_] | None = None
    ) -> None:
        faults = []
        if indices.ndim != 3 or 0 in indices.shape:
            faults.append(f"indices has shape {indices.shape}, not (steps, members, batch)")
        if not np.issubdtype(indices.dtype, np.integer):
            faults.append(f"indices has dtype {indices.dtype}, not an integer one")
        if active is not None and active.shape != indices.shape[:2]:
            faults.append(f"active has shape {active.shape}, not {indices.shape[:2]}")
        if active is not None and active.dtype != np.bool_:
            faults.append(f"active has dtype {active.dtype}, not bool")
        require(faults)
        self._indices = indices
        self._active = active
        self.steps, self.members, self.batch_size = indices.shape

    def span(self) -> tuple[int, int]:
        """Return the smallest and the largest row of any step."""
        return int(self._indices.min()), int(self._indices.max())

    def _batch(self, step: int) -> Batch:
        active = np.ones(self.members, bool) if self._active is None else self._active[step]
        return self._indices[step].astype(np.int64, copy=False), active


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """One line per canary, member and step at which the canary was used.

    Attributes:
        member: Who used it, shape ``(lines,)``.
        canary: Which one, counted from 0 within the plan.
        step: At which step of the schedule, in increasing order.
        uses: How many copies of it were in that batch.
        windows: The number of each canary's window, -1 for never, shape ``(canaries,)``; None where
            the plan has no windows.
    """

    member: NDArray[np.int64]
    canary: NDArray[np.int64]
    step: NDArray[np.int64]
    uses: NDArray[np.int64]
    windows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.step)


def ledger_of(
    lines: dict[tuple[int, int, int], int], *, windows: NDArray[np.int64] | None = None
) -> Ledger:
    """Build a ledger from ``{(step, member, canary): uses}``."""
    rows = np.array([(*key, lines[key]) for key in sorted(lines)], dtype=np.int64).reshape(-1, 4)
    step, member, canary, uses = rows.T
    return Ledger(member=member, canary=canary, step=step, uses=uses, windows=windows)


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
