"""Reads the schedule and brings its rows to the device ahead of the step that needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, PlanError
from remnant.plans import ArraySchedule, Schedule
from remnant.population.per_member import whole_numbers
from remnant.population.store import ExampleStore, as_array

_BLOCK = 16  # steps sent to a GPU at once


def as_schedule(indices: Any, active: Any, *, members: int) -> Schedule:
    """Return what was given as a schedule for this many members."""
    if isinstance(indices, Schedule):
        if active is not None:
            raise InvalidInput("active goes with an array of indices; a Schedule has its own.")
        schedule: Schedule = indices
    else:
        mask = None if active is None else as_array(active)
        schedule = ArraySchedule(as_array(indices), active=mask)
    if schedule.members != members:
        raise InvalidInput(
            f"the schedule has {schedule.members} members, the population {members}.",
            hint="Give one seed per member of the schedule.",
        )
    return schedule


def walked_steps(steps: int | None, schedule: Schedule) -> int:
    """Return how many steps to walk: all, or as many as asked for."""
    wanted = schedule.steps if steps is None else whole_numbers("steps", [steps])[0]
    if not 0 <= wanted <= schedule.steps:
        raise InvalidInput(
            f"steps={wanted} is beyond the schedule's {schedule.steps}.",
            hint="Ask for fewer steps or give a longer schedule.",
        )
    return wanted


def probe_times(
    probes: Iterable[str], steps: Sequence[int] | Mapping[str, Sequence[int]], *, last: int
) -> dict[str, list[int]]:
    """Return after which numbers of updates each probe is called, in order."""

    def checked(some: Sequence[int]) -> list[int]:
        times = sorted(set(whole_numbers("probe_steps", some)))
        if times and not 0 <= times[0] <= times[-1] <= last:
            raise InvalidInput(f"probe_steps={times} are not all within 0 to {last}.")
        return times

    if not isinstance(steps, Mapping):
        return dict.fromkeys(probes, checked(steps))
    if unknown := sorted(set(steps) - set(probes)):
        raise InvalidInput(f"probe_steps are given for {unknown}, which is no probe.")
    return {name: checked(some) for name, some in steps.items()}


def feed(
    schedule: Schedule,
    store: ExampleStore,
    *,
    start: int,
    stop: int,
    device: torch.device,
    padded: bool = False,
) -> Iterator[tuple[int, Tensor, NDArray[np.bool_]]]:
    """Yield ``(step, indices[members, batch] on the device, active[members])`` for each step.

    Where ``padded``, an index may be -1: an empty place.
    """
    if device.type == "cpu":
        for step in range(start, stop):
            indices, active = _checked(schedule, store, step, padded=padded)
            yield step, torch.from_numpy(indices), active
        return
    pinned = [_Pinned(schedule) for _ in range(2)]
    for turn, first in enumerate(range(start, stop, _BLOCK)):
        steps = range(first, min(first + _BLOCK, stop))
        batches = [_checked(schedule, store, step, padded=padded) for step in steps]
        sent = pinned[turn % 2].send([indices for indices, _ in batches], device)
        for step, indices, (_, active) in zip(steps, sent, batches, strict=True):
            yield step, indices, active


class _Pinned:
    """A page-locked buffer, so that sending it does not wait for the device."""

    def __init__(self, schedule: Schedule) -> None:
        shape = (_BLOCK, schedule.members, schedule.batch_size)
        self._buffer = torch.empty(shape, dtype=torch.int64, pin_memory=True)
        self._sent = torch.cuda.Event()

    def send(self, rows: list[NDArray[np.int64]], device: torch.device) -> Tensor:
        self._sent.synchronize()
        for place, indices in zip(self._buffer, rows, strict=False):
            place.copy_(torch.from_numpy(indices))
        out = self._buffer[: len(rows)].to(device, non_blocking=True)
        self._sent.record()
        return out


def _checked(
    schedule: Schedule, store: ExampleStore, step: int, *, padded: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    indices, active = schedule.batch(step)
    expected = (schedule.members, schedule.batch_size)
    if indices.shape != expected or active.shape != expected[:1]:
        raise PlanError(
            f"the schedule's batch({step}) has shapes {indices.shape} and {active.shape}, "
            f"not {expected} and {expected[:1]}."
        )
    store.check_rows(int(indices.min()), int(indices.max()), padded=padded)
    return indices, active
