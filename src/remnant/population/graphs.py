"""One training step as a CUDA graph: captured once, replayed without the cost of launching it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remnant.population.state import State

_WARM_UP = 3
_streams: dict[torch.device, list[torch.cuda.Stream]] = {}


def side_streams(device: torch.device, count: int) -> list[torch.cuda.Stream]:
    """Return streams beside the current one, always the same: each one costs a workspace."""
    made = _streams.setdefault(device, [])
    while len(made) < count:
        made.append(torch.cuda.Stream(device))
    return made[:count]


class CaptureFailed(Exception):
    """A step waits for the host and cannot be captured; the state is as it was."""


class GraphedStep:
    """Replays ``step(indices)`` on a state whose storage does not move.

    Guarantees:
        * Capturing leaves the state as it was: the warm-up's updates are taken back.

    Raises:
        CaptureFailed: The step, such as its loss, waits for the host.
    """

    def __init__(self, step: Callable[[Tensor], None], state: State, indices: Tensor) -> None:
        self._indices = indices.clone()
        kept = state.clone()
        side = side_streams(indices.device, 1)[0]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                step(self._indices)
        torch.cuda.current_stream().wait_stream(side)
        state.copy_(kept)
        self._graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self._graph, stream=side):
                step(self._indices)
        except RuntimeError as fault:
            state.copy_(kept)
            if "captur" not in str(fault):
                raise
            raise CaptureFailed from fault
        state.copy_(kept)

    def __call__(self, indices: Tensor) -> None:
        """Take one step on these rows."""
        self._indices.copy_(indices)
        self._graph.replay()
