"""The settings of LoRA adapters."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.errors import require


@dataclass(frozen=True, slots=True)
class Lora:
    """The settings of LoRA adapters.

    Attributes:
        rank: Rank of each adapter.
        alpha: Adapters are scaled by ``alpha / rank``.
        dropout: Rate at which an adapter's inputs are dropped while it is trained.
        modules: Last parts of the names of the dense layers to adapt, such as ``q_proj``.
    """

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    modules: tuple[str, ...] = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        faults = []
        if isinstance(self.rank, bool) or not isinstance(self.rank, int) or self.rank < 1:
            faults.append(f"rank={self.rank!r} is not a whole number of at least 1")
        if not isinstance(self.alpha, int | float) or not self.alpha > 0:
            faults.append(f"alpha={self.alpha!r} is not a number above 0")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            faults.append(f"dropout={self.dropout!r} is not a rate from 0 to below 1")
        if not isinstance(self.modules, tuple) or not self.modules:
            faults.append(f"modules={self.modules!r} are no names of layers")
        require(faults)
