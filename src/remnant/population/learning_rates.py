"""How a member's learning rate moves with the updates it has taken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remnant.errors import PlanError, require

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("constant", "step", "cosine")


@dataclass(frozen=True, kw_only=True)
class LearningRate:
    """A factor on the learning rate, as a function of the member's own clock.

    The clock counts the updates that the member took: a skipped update does not move it.

    Attributes:
        kind: ``constant``; ``step``: times ``gamma`` at each milestone; ``cosine``: from 1 down to
            ``floor`` over ``total`` updates.
        warmup: Updates over which the factor first rises linearly, from ``1 / warmup``.
        milestones: Clock readings from which another factor ``gamma`` holds.
        total: Length of the cosine, warm-up included; afterwards the factor stays at ``floor``.

    Example:
        >>> LearningRate(kind="step", milestones=(2,), gamma=0.1).table(4).tolist()
        [1.0, 1.0, 0.1, 0.1]
    """

    kind: str = "constant"
    warmup: int = 0
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    total: int | None = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        whole = [self.warmup, *([] if self.total is None else [self.total])]
        whole += self.milestones if isinstance(self.milestones, list | tuple) else ["?"]
        if any(isinstance(v, bool) or not isinstance(v, int) for v in whole):
            raise PlanError(
                f"warmup={self.warmup!r}, milestones={self.milestones!r}, total={self.total!r}: "
                "not whole numbers.",
                hint="Fix the learning-rate schedule.",
            )
        object.__setattr__(self, "milestones", tuple(self.milestones))
        faults = []
        if self.kind not in KINDS:
            faults.append(f"kind={self.kind!r} is not one of {', '.join(KINDS)}")
        if self.warmup < 0:
            faults.append(f"warmup={self.warmup} is negative")
        if self.kind == "step" and not self.milestones:
            faults.append("a step schedule needs milestones")
        if self.kind == "cosine" and (self.total is None or self.total <= self.warmup):
            faults.append(f"a cosine needs total above warmup={self.warmup}, not {self.total}")
        if not 0 < self.gamma <= 1 or not 0 <= self.floor <= 1:
            faults.append(f"gamma={self.gamma} or floor={self.floor} is outside 0 to 1")
        require(faults, error=PlanError, hint="Fix the learning-rate schedule.")

    def factor(self, clock: int) -> float:
        """Return the factor for the update after ``clock`` updates."""
        if clock < self.warmup:
            return (clock + 1) / self.warmup
        if self.kind == "step":
            return self.gamma ** sum(1 for m in self.milestones if m <= clock)
        if self.kind == "cosine" and self.total is not None:
            done = min((clock - self.warmup) / (self.total - self.warmup), 1.0)
            return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2
        return 1.0

    def table(self, updates: int) -> Tensor:
        """Return the factors for clocks 0 to ``updates - 1``."""
        import torch  # which a recipe is checked without

        return torch.tensor([self.factor(c) for c in range(updates)], dtype=torch.float64)
