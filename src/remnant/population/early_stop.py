"""Early stopping, member by member: each keeps its best weights and stops on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.population.state import State

_KEPT = ("params", "frozen", "buffers")


@dataclass(frozen=True, slots=True, eq=False)
class EarlyStop:
    """When a member stops.

    Attributes:
        inputs, labels: The validation examples.
        every: Updates between two looks (an epoch's steps, usually).
        patience: Looks without improvement after which a member stops.
        min_delta: By how much the validation loss must fall to count.
    """

    inputs: Any
    labels: Any
    every: int
    patience: int = 10
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.every < 1 or self.patience < 1 or self.min_delta < 0:
            raise InvalidInput(
                f"every={self.every}, patience={self.patience}, min_delta={self.min_delta}: "
                "the first two must be at least 1, the last at least 0."
            )


class Watch:
    """The best weights of every member so far, and who has stopped."""

    def __init__(self, rule: EarlyStop, home: State) -> None:
        self.rule = rule
        members, device = len(home), home["clocks"]["lifetime"].device
        self.best = State({g: dict(home[g]) for g in _KEPT}).clone()
        self.tally = {
            "loss": torch.full((members,), torch.inf, dtype=torch.float64, device=device),
            "misses": torch.zeros(members, dtype=torch.int64, device=device),
            "stopped_at": torch.full((members,), -1, dtype=torch.int64, device=device),
        }

    def look(
        self, step: int, work: State, members: Tensor, losses: Callable[[State], Tensor]
    ) -> Tensor:
        """Score the working rows after ``step`` updates; return which of their members stopped."""
        now = losses(work).to(torch.float64)
        best, misses, stopped = (self.tally[k] for k in ("loss", "misses", "stopped_at"))
        running = stopped[members] < 0
        better = running & (now < best[members] - self.rule.min_delta)
        rows = torch.nonzero(better).flatten()
        kept = State({g: dict(work[g]) for g in _KEPT})
        self.best.put(members[rows], kept.take(rows))
        best[members[rows]] = now[rows]
        misses[members] = torch.where(better, 0, misses[members] + running.long())
        over = running & (misses[members] >= self.rule.patience)
        stopped[members[over]] = step
        return stopped[members] >= 0
