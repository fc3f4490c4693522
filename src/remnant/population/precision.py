"""The arithmetic of a population; global switches are restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from remnant.errors import InvalidInput
from remnant.plans.plan import PRECISIONS


def dtype_of(precision: str | None) -> torch.dtype | None:
    """Return the type in which parameters are kept; ``None`` keeps the model's own."""
    if precision is None:
        return None
    if precision not in PRECISIONS:
        raise InvalidInput(
            f"precision={precision!r} is not one of {', '.join(PRECISIONS)}.",
            hint="Choose one of these, or None to keep the model's own type.",
        )
    return torch.float64 if precision == "float64" else torch.float32


@contextmanager
def arithmetic(precision: str | None, device: torch.device) -> Iterator[None]:
    """Allow TF32 only where it was asked for; put the switches back on leaving."""
    if device.type != "cuda":
        yield
        return
    tf32 = precision == "tf32"
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, convolution.allow_tf32, convolution.benchmark)
    matmul.allow_tf32, convolution.allow_tf32, convolution.benchmark = tf32, tf32, True
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32, convolution.benchmark = before


def training_cast(precision: str | None, device: torch.device) -> Any:
    """Return the context of a training forward pass: autocast for bf16, nothing otherwise.

    Scores are never computed under it: they take the parameters' own type.
    """
    if precision == "bf16":  # the cast cache would outlive a captured graph
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
    return nullcontext()
