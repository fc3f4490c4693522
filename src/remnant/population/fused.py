"""SGD with momentum, and Adam, each as one pass over memory, for GPUs.

Plain torch operations with one setting per member read and write every tensor again and again, and
do not vectorise. These kernels do the same arithmetic in one pass; ``optimizers`` has their slow
twins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

_BLOCK = 2048


@cache
def _kernels() -> Any:
    """Build the kernels on first use, or return ``None`` where Triton is not installed."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    # Triton reads the source, so the arguments carry no annotations but its own.
    @triton.jit  # type: ignore[untyped-decorator]
    def sgd(param, buffer, grad, rate, momentum, size, block: tl.constexpr):  # type: ignore[no-untyped-def]
        member = tl.program_id(1)
        place = tl.program_id(0) * block + tl.arange(0, block)
        inside = place < size
        place += member.to(tl.int64) * size
        moved = tl.load(grad + place, mask=inside)
        moved += tl.load(buffer + place, mask=inside) * tl.load(momentum + member)
        tl.store(buffer + place, moved, mask=inside)
        weight = tl.load(param + place, mask=inside) + moved * tl.load(rate + member)
        tl.store(param + place, weight, mask=inside)

    @triton.jit  # type: ignore[untyped-decorator]
    def adam(  # type: ignore[no-untyped-def]
        param, mean, square, grad, settings, members, size, block: tl.constexpr
    ):
        member = tl.program_id(1)
        place = tl.program_id(0) * block + tl.arange(0, block)
        inside = place < size
        place += member.to(tl.int64) * size
        settings += member
        fresh = tl.load(grad + place, mask=inside)
        moved = tl.load(mean + place, mask=inside)
        moved += (fresh - moved) * tl.load(settings)
        tl.store(mean + place, moved, mask=inside)
        spread = tl.load(square + place, mask=inside) * tl.load(settings + members)
        spread += fresh * fresh * tl.load(settings + 2 * members)
        tl.store(square + place, spread, mask=inside)
        scale = tl.sqrt(spread) / tl.load(settings + 3 * members)
        scale += tl.load(settings + 4 * members)
        weight = tl.load(param + place, mask=inside) * tl.load(settings + 6 * members)
        weight += moved / scale * tl.load(settings + 5 * members)
        tl.store(param + place, weight, mask=inside)

    return {"sgd": sgd, "adam": adam}


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels can take these: float32 on a GPU, dense, all in one order of storage."""
    first = tensors[0]
    if not all(t.is_cuda and t.dtype == torch.float32 for t in tensors):
        return False
    if any(t.stride() != first.stride() for t in tensors):
        return False
    row = first[0]
    reach = 1 + sum((n - 1) * s for n, s in zip(row.shape, row.stride(), strict=True))
    return first.stride(0) == row.numel() == reach and _kernels() is not None


def sgd_momentum(
    param: Tensor, buffer: Tensor, grad: Tensor, rate: Tensor, momentum: Tensor
) -> None:
    """Do ``buffer = momentum * buffer + grad; param += rate * buffer`` in place, per member."""
    grid, size = _grid(param)
    _kernels()["sgd"][grid](param, buffer, grad, rate, momentum, size, block=_BLOCK)


@dataclass(frozen=True, slots=True)
class AdamSettings:
    """What one update takes, a number a member each, float32.

    Attributes:
        fresh: Share of the gradient in the mean.
        kept: Share of the old square in the new.
        added: Share of the gradient's square in it.
        root: The square's correction, by which its root is divided.
        eps: Added to that.
        step: By which the mean over it is multiplied; below 0.
        shrunk: By which parameters are multiplied before.
    """

    fresh: Tensor
    kept: Tensor
    added: Tensor
    root: Tensor
    eps: Tensor
    step: Tensor
    shrunk: Tensor

    def table(self) -> Tensor:
        """All of them, one row each, in the order that the kernel reads."""
        rows = (self.fresh, self.kept, self.added, self.root, self.eps, self.step, self.shrunk)
        return torch.stack([row.to(torch.float32) for row in rows])


def adam(param: Tensor, mean: Tensor, square: Tensor, grad: Tensor, table: Tensor) -> None:
    """Move mean and square, then the parameters, in place; ``table`` is ``AdamSettings``'."""
    grid, size = _grid(param)
    _kernels()["adam"][grid](param, mean, square, grad, table, table.shape[1], size, block=_BLOCK)


def _grid(param: Tensor) -> tuple[tuple[int, int], int]:
    size = param[0].numel()
    return ((size + _BLOCK - 1) // _BLOCK, len(param)), size
