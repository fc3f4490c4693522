"""The machine a study runs on: what it is called, and how long a step takes on it."""

from __future__ import annotations

import itertools
import statistics
import time

import torch


class StepClock:
    """Notes when each step was done, also on a GPU, which is asked to finish it first."""

    def __init__(self, device: str) -> None:
        self.times: list[float] = []
        self._waits = device.startswith("cuda")

    def __call__(self, _: int) -> None:
        """Note that one more step is done."""
        if self._waits:
            torch.cuda.synchronize()
        self.times.append(time.perf_counter())

    @property
    def typical(self) -> float:
        """Seconds of a step: the median of those between two notes."""
        return statistics.median(b - a for a, b in itertools.pairwise(self.times))


def device_name(device: str) -> str:
    """Return the device with the name of its GPU, where it is one."""
    if device.startswith("cuda") and torch.cuda.is_available():
        return f"{device} ({torch.cuda.get_device_name()})"
    return device
