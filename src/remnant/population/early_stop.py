"""Early stopping, member by member: each keeps its best weights and stops on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.population.state import State

_KEPT = ("params", "frozen", "buffers", "clocks")


@dataclass(frozen=True, slots=True, eq=False)
class EarlyStop:
    """When a member stops.

    Attributes:
        inputs, labels: The validation examples.
        every: A member's own updates between two looks (an epoch's steps, usually); there is one
            more look at the end.
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
        self.looked = np.zeros(members, np.int64)  # each member's updates at its last look

    def due(self, taken: NDArray[np.int64], *, last: bool) -> NDArray[np.bool_]:
        """Return who is to be looked at: by their own updates, and everyone once at the end."""
        fresh = taken > self.looked
        return fresh if last else fresh & (taken % self.rule.every == 0)

    def look(
        self,
        step: int,
        work: State,
        members: Tensor,
        due: Tensor,
        losses: Callable[[State], Tensor],
    ) -> Tensor:
        """Score the rows that are due after ``step`` steps; return which rows have stopped."""
        now = losses(work).to(torch.float64)
        best, misses, stopped = (self.tally[k] for k in ("loss", "misses", "stopped_at"))
        running = due & (stopped[members] < 0)
        better = running & (now < best[members] - self.rule.min_delta)
        rows = torch.nonzero(better).flatten()
        kept = State({g: dict(work[g]) for g in _KEPT})
        self.best.put(members[rows], kept.take(rows))
        best[members[rows]] = now[rows]
        misses[members] = torch.where(better, 0, misses[members] + running.long())
        over = running & (misses[members] >= self.rule.patience)
        stopped[members[over]] = step
        return stopped[members] >= 0
