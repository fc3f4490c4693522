"""The result of a fit, beside the trained members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes:
        steps: Steps walked (fewer than asked for when every member stopped early).
        backend, reason: Which backend ran and the rule that chose it.
        split: Members per pass.
        precision: The arithmetic, ``None`` for the model's own.
        memory: Bytes that the population needs at its peak, estimated from one member.
        probe_steps: Updates done whenever a probe was called.
        probes: What each probe returned, stacked: ``(its probe steps, ...)``.
        stopped_at: Updates after which each member stopped early, -1 where it did not, or ``None``
            without early stopping.
    """

    steps: int
    backend: str
    reason: str
    split: int
    precision: str | None
    memory: int
    probe_steps: tuple[int, ...]
    probes: dict[str, NDArray[Any]]
    stopped_at: NDArray[np.int64] | None
