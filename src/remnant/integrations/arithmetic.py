"""Runs a library's model in its own precision, never in a coarser one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class KeepFloat64(TorchFunctionMode):
    """A context in which casts to float32 keep float64.

    Many transformers cast to float32 for normalisation, rotation and softmax, assuming coarser
    inputs. A model with float64 weights would then have the errors of float32.

    Example:
        >>> third = torch.tensor(1 / 3, dtype=torch.float64)
        >>> with KeepFloat64():
        ...     (third.float().dtype, third.to(torch.float32).dtype, third.softmax(0).dtype)
        (torch.float64, torch.float64, torch.float64)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call ``func`` with float64 in place of float32."""
        if func is Tensor.float:
            func = Tensor.double
        named = {name: _wide(value) for name, value in (kwargs or {}).items()}
        return func(*map(_wide, args), **named)


def _wide(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


@contextmanager
def full_precision(model: torch.nn.Module) -> Iterator[None]:
    """Switch dropout, gradients, autocast and TF32 off; restore the settings on leaving."""
    parameter = next(model.parameters())
    wide = parameter.dtype == torch.float64
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, convolution.allow_tf32)
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    matmul.allow_tf32, convolution.allow_tf32 = False, False
    try:
        with (
            torch.no_grad(),
            torch.autocast(parameter.device.type, enabled=False),
            KeepFloat64() if wide else nullcontext(),
        ):
            yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before
        for module in training:
            module.training = True
