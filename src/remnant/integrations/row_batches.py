"""How many rows go through a model at once, so that a step never runs out of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput
from remnant.population.memory import free_bytes

_MOST = 4096  # more rows at once gain nothing
_SHARE = 0.25  # of what is free: the answers of all rows, and the caller's states, need room too
_IN_FLIGHT = 6  # outputs as wide as the widest that a layer holds at the same time
_LOGITS = 3  # the logits, their log-softmax, and what it needs on the way


def widest_output(model: nn.Module, run: Callable[[], Any], *, tokens: int, head: Any) -> int:
    """Run a pass and return the bytes a token of the widest output of any layer but the head."""
    widest = 0

    def look(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal widest
        if isinstance(output, Tensor) and module is not head:
            widest = max(widest, output.nbytes // tokens)

    leaves = [module for module in model.modules() if not any(module.children())]
    hooks = [module.register_forward_hook(look) for module in leaves]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return widest


def fitting_rows(
    *, widest: int, tokens: int, state_bytes: int, logit_bytes: int, device: torch.device
) -> int:
    """Return how many rows fit: a power of two, at most 4 096, at least one.

    Args:
        widest: Bytes of the widest layer output, per token read.
        tokens: Tokens read per row.
        state_bytes: Bytes of one row's state.
        logit_bytes: Bytes of one row's logits.
        device: Where there must be room.
    """
    free = free_bytes(device)
    if device.type == "cuda":  # what the allocator keeps for later is free to us
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    each = _IN_FLIGHT * widest * tokens + state_bytes + _LOGITS * logit_bytes
    fitting = max(1, min(_MOST, int(_SHARE * free // max(each, 1))))
    return 1 << (fitting.bit_length() - 1)


def checked_rows_at_once(rows_at_once: int | None) -> int | None:
    """Return the argument if it is a number of rows, or ``None``."""
    if rows_at_once is not None and rows_at_once < 1:
        raise InvalidInput(
            f"rows_at_once={rows_at_once} is not at least 1.",
            hint="Leave it out to let free memory decide.",
        )
    return rows_at_once


def slices(rows: int, at_once: int) -> Iterator[slice]:
    """Yield neighbouring slices that cover all rows.

    Example:
        >>> list(slices(5, 2))
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


def joined(parts: list[list[Tensor]]) -> list[Tensor]:
    """Join the tensors of all parts, place by place, and let each go once it is joined."""
    if len(parts) == 1:
        return parts[0]
    whole = []
    for _ in range(len(parts[0])):
        whole.append(torch.cat([part.pop(0) for part in parts]))
    return whole
