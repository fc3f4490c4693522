"""Who is given which rows at which step: the one thing in which plans differ; and their ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require

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
