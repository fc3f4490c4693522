"""SGD with momentum as one pass over memory, for GPUs.

Plain torch operations with one setting per member read and write every tensor twice, and do not
vectorise. This kernel does the same arithmetic in one pass; ``optimizers`` is its slow twin.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

_BLOCK = 2048


@cache
def _kernel() -> Any:
    """Build the kernel on first use, or return ``None`` where Triton is not installed."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    # Triton reads the source, so the arguments carry no annotations but its own.
    @triton.jit  # type: ignore[untyped-decorator]
    def kernel(param, buffer, grad, rate, momentum, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
        member = tl.program_id(1)
        place = tl.program_id(0) * block + tl.arange(0, block)
        inside = place < size
        place += member.to(tl.int64) * size
        moved = tl.load(grad + place, mask=inside)
        moved += tl.load(buffer + place, mask=inside) * tl.load(momentum + member)
        tl.store(buffer + place, moved, mask=inside)
        weight = tl.load(param + place, mask=inside) + moved * tl.load(rate + member)
        tl.store(param + place, weight, mask=inside)

    return kernel


def usable(*tensors: Tensor) -> bool:
    """Whether the kernel can take these: float32 on a GPU, dense, all in one order of storage."""
    first = tensors[0]
    if not all(t.is_cuda and t.dtype == torch.float32 for t in tensors):
        return False
    if any(t.stride() != first.stride() for t in tensors):
        return False
    row = first[0]
    reach = 1 + sum((n - 1) * s for n, s in zip(row.shape, row.stride(), strict=True))
    return first.stride(0) == row.numel() == reach and _kernel() is not None


def sgd_momentum(
    param: Tensor, buffer: Tensor, grad: Tensor, rate: Tensor, momentum: Tensor
) -> None:
    """Do ``buffer = momentum * buffer + grad; param += rate * buffer`` in place, per member."""
    members = len(param)
    size = param[0].numel()
    grid = ((size + _BLOCK - 1) // _BLOCK, members)
    _kernel()[grid](param, buffer, grad, rate, momentum, size, block=_BLOCK)
