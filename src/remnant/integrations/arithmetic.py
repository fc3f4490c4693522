"""Runs a library's model in its own precision, never in a coarser one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_COARSER = (torch.float32, torch.bfloat16, torch.float16)
# Functions that move or copy a tensor: it keeps its type, unless they are given another.
_MOVING = {
    *(Tensor.to, Tensor.cpu, Tensor.cuda, Tensor.detach, Tensor.clone, Tensor.contiguous),
    *(Tensor.copy_, Tensor.requires_grad_, Tensor.numel, Tensor.element_size, Tensor.size),
    *(Tensor.dim, Tensor.stride, Tensor.is_contiguous, Tensor.data_ptr, Tensor.is_floating_point),
    *(Tensor.untyped_storage, Tensor.__deepcopy__, Tensor.__len__, Tensor.nelement),
}


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


class Widened(TorchFunctionMode):
    """A context in which numbers of lower precision take part in computations as float64.

    A model with weights in bfloat16, float16 or float32 answers as a copy of it in float64 would,
    without the copy: each weight is cast when it is used, and the cast is dropped after it. Weights
    that are moved between devices keep their type.

    Example:
        >>> weight = torch.tensor([1.0, 3.0], dtype=torch.bfloat16)
        >>> with Widened():
        ...     (weight / 3).dtype, weight.dtype, weight.to("cpu").nbytes
        (torch.float64, torch.float64, 4)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call ``func`` with float64 in place of coarser tensors and types."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "__get__":
            found = func(*args, **kwargs)
            return torch.float64 if found in _COARSER else found
        if func in (Tensor.float, Tensor.bfloat16, Tensor.half):
            func = Tensor.double
        if func in _MOVING:
            return func(*map(_all_wide, args), **{n: _all_wide(v) for n, v in kwargs.items()})
        named = {name: _all_wide(_widened(value)) for name, value in kwargs.items()}
        return func(*(_all_wide(_widened(value)) for value in args), **named)


def _wide(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


def _all_wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _COARSER else value


def _widened(value: Any) -> Any:
    if isinstance(value, Tensor):
        with torch._C.DisableTorchFunction():
            return value.double() if value.dtype in _COARSER else value
    if type(value) in (list, tuple):
        return type(value)(map(_widened, value))
    return value


def computing_device(model: torch.nn.Module) -> torch.device:
    """Return where a model reads its inputs; its weights may be offloaded or on several devices."""
    embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    parameter = next((embeddings if embeddings is not None else model).parameters())
    if parameter.device.type != "meta":
        return parameter.device
    hook = getattr(embeddings, "_hf_hook", None)
    device = getattr(hook, "execution_device", None)
    if device is None or device == "disk":
        device = "cpu"
    return torch.device(f"cuda:{device}" if isinstance(device, int) else device)


@contextmanager
def _loading_as_stored(model: torch.nn.Module) -> Iterator[None]:
    """Let Accelerate's hooks fetch offloaded weights in the type in which they are stored."""
    hooks = [hook for m in model.modules() if (hook := getattr(m, "_hf_hook", None)) is not None]

    def plainly(fetch: Callable[..., Any]) -> Callable[..., Any]:
        def fetched(*args: Any, **named: Any) -> Any:
            with torch._C.DisableTorchFunction():
                return fetch(*args, **named)

        return fetched

    names = ("pre_forward", "post_forward")
    for hook in hooks:
        vars(hook).update({name: plainly(getattr(hook, name)) for name in names})
    try:
        yield
    finally:
        for hook in hooks:
            for name in names:
                vars(hook).pop(name, None)


@contextmanager
def full_precision(model: torch.nn.Module, *, widen: bool = False) -> Iterator[None]:
    """Switch dropout, gradients, autocast and TF32 off; restore the settings on leaving.

    Args:
        model: The model that will be called.
        widen: Compute in float64, whatever the type of the weights.
    """
    device = computing_device(model)
    modes: list[Any] = [Widened()] if widen else []
    if not widen and next(model.parameters()).dtype == torch.float64:
        modes = [KeepFloat64()]
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, convolution.allow_tf32)
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    matmul.allow_tf32, convolution.allow_tf32 = False, False
    try:
        with (
            torch.no_grad(),
            torch.autocast(device.type, enabled=False),
            _loading_as_stored(model) if widen else nullcontext(),
            modes[0] if modes else nullcontext(),
        ):
            yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before
        for module in training:
            module.training = True
