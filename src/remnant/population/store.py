"""The example store on the device, and the schedule's rows brought there ahead of their step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, PlanError, require
from remnant.plans import ArraySchedule, Schedule
from remnant.population.optimizers import whole_numbers


def as_tensor(values: Any, *, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    """Bring an array to the device; floating-point values take ``dtype``."""
    if isinstance(values, Tensor):
        tensor = values
    else:
        try:
            tensor = torch.from_numpy(np.ascontiguousarray(values))
        except (TypeError, ValueError) as fault:
            raise InvalidInput(
                f"A {type(values).__name__} cannot be read as an array of numbers.",
                hint="Pass a NumPy array or a tensor.",
            ) from fault
    tensor = tensor.detach().to(device)
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def as_array(values: Any) -> NDArray[Any]:
    """Return a tensor, or anything array-like, as a NumPy array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


class ExampleStore:
    """Inputs and labels, checked once.

    Raises:
        InvalidInput: Lengths differ, there is nothing, or a value is not finite.
    """

    def __init__(
        self, inputs: Any, labels: Any, *, device: torch.device, dtype: torch.dtype | None
    ) -> None:
        self.inputs = as_tensor(inputs, device=device, dtype=dtype)
        self.labels = as_tensor(labels, device=device, dtype=dtype)
        if not self.labels.is_floating_point():
            self.labels = self.labels.long()
        faults = []
        if self.inputs.ndim < 1 or self.labels.ndim < 1 or len(self.inputs) != len(self.labels):
            faults.append(
                f"inputs of shape {tuple(self.inputs.shape)} and labels of shape "
                f"{tuple(self.labels.shape)} differ in length"
            )
        elif len(self.inputs) == 0:
            faults.append("inputs is empty")
        for name, tensor in (("inputs", self.inputs), ("labels", self.labels)):
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                bad = int((~torch.isfinite(tensor.reshape(len(tensor), -1))).any(1).sum())
                faults.append(f"{name} has NaN or infinity in {bad} of {len(tensor)} examples")
        require(faults, hint="Fix the data before training on them.")

    def __len__(self) -> int:
        return len(self.inputs)

    def check_labels(self, outputs: torch.Size) -> None:
        """Refuse labels that cross-entropy cannot hold against outputs of this shape an example."""
        inner = self.labels.shape[1:]
        if self.labels.is_floating_point():
            raise InvalidInput(
                f"labels have type {self.labels.dtype}; cross-entropy needs whole numbers.",
                hint="Pass int64 labels, or a loss of your own.",
            )
        if inner == outputs[:-1]:
            classes = outputs[-1]
        elif len(outputs) > 1 and inner == outputs[1:]:
            classes = outputs[0]
        else:
            raise InvalidInput(
                f"labels of shape {tuple(inner)} an example do not fit outputs {tuple(outputs)}.",
                hint="Give one label per output position, or a loss of your own.",
            )
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= classes:
            raise InvalidInput(
                f"labels run from {low} to {high}, but the model has {classes} classes.",
                hint=f"Labels must be 0 to {classes - 1}.",
            )

    def check_rows(self, low: int, high: int, *, padded: bool = False) -> None:
        """Refuse rows that the store does not hold.

        Args:
            low, high: The smallest and the largest row.
            padded: Whether -1, an empty place, is allowed.
        """
        if low == -1 and not padded:
            raise InvalidInput(
                "the schedule has empty places (-1), on which only private optimizers can train.",
                hint="Choose dp-sgd, dp-rmsprop or dp-adam, or a schedule without empty places.",
            )
        low = max(low, 0) if low == -1 else low
        if low < 0 or high >= len(self):
            raise InvalidInput(
                f"the schedule asks for rows {low} to {high}, but the store holds {len(self)}.",
                hint="Put clean examples first, then the canaries, into inputs and labels.",
            )


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
