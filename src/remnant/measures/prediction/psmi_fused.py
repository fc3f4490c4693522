"""PSMI's arithmetic on a block of directions in two passes over memory, for GPUs.

Plain torch operations read and write every projection some twenty times. These kernels read them
once for the variances and once for the log ratios; ``psmi_kernel`` is their slow twin.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remnant.measures.prediction.psmi_laws import ClassLaws

# Samples and directions of a tile, and the tiles that add up before they are written.
_ROWS, _COLUMNS, _DEEP = 16, 128, 16


@cache
def _kernels() -> tuple[Any, Any] | None:
    """Build the kernels on first use, or return ``None`` where Triton is not installed."""
    try:
        import triton
        import triton.language as tl
        from triton.language.extra import libdevice
    except ImportError:
        return None

    # Triton reads the source, so the arguments carry no annotations but its own.
    @triton.jit  # type: ignore[untyped-decorator]
    def squares(projected, parts, sums, width, rows: tl.constexpr, columns: tl.constexpr, deep: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip # noqa: E501
        own = tl.load(parts + 3 * tl.program_id(0))
        start = tl.load(parts + 3 * tl.program_id(0) + 1)
        stop = tl.load(parts + 3 * tl.program_id(0) + 2)
        column = tl.program_id(1) * columns + tl.arange(0, columns)
        known = column < width
        total = tl.zeros([columns], tl.float64)
        for tile in range(deep):
            row = start + tile * rows + tl.arange(0, rows)
            place = row[:, None].to(tl.int64) * width + column[None, :]
            value = tl.load(
                projected + place, mask=(row < stop)[:, None] & known[None, :], other=0.0
            )
            total += tl.sum(value * value, 0).to(tl.float64)
        tl.atomic_add(sums + own * width + column, total, mask=known)

    @triton.jit  # type: ignore[untyped-decorator]
    def excess(projected, parts, means, origins, scales, levels, sums, width, samples, classes, rows: tl.constexpr, columns: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip # noqa: E501
        own = tl.load(parts + 3 * tl.program_id(0))
        start = tl.load(parts + 3 * tl.program_id(0) + 1)
        stop = tl.load(parts + 3 * tl.program_id(0) + 2)
        row = start + tl.arange(0, rows)
        total = tl.zeros([rows], tl.float64)
        square = tl.zeros([rows], tl.float64)
        for first in range(0, width, columns):
            column = first + tl.arange(0, columns)
            known = column < width
            inside = (row < stop)[:, None] & known[None, :]
            place = row[:, None].to(tl.int64) * width + column[None, :]
            value = tl.load(projected + place, mask=inside, other=0.0)
            here = own * width + column
            origin = tl.load(origins + here, mask=known, other=0.0)
            level = tl.load(levels + here, mask=known, other=0.0)
            scale = tl.load(scales + here, mask=known, other=0.0)
            shift = (origin - tl.load(means + here, mask=known, other=0.0)) * scale
            near = value * scale.to(tl.float32)[None, :] + shift.to(tl.float32)[None, :]
            most = tl.full([rows, columns], float("-inf"), tl.float32)
            rest = tl.zeros([rows, columns], tl.float32)
            for other in range(classes):
                if other != own:
                    there = other * width + column
                    scale = tl.load(scales + there, mask=known, other=0.0)
                    shift = (origin - tl.load(means + there, mask=known, other=0.0)) * scale
                    above = tl.load(levels + there, mask=known, other=0.0) - level
                    far = value * scale.to(tl.float32)[None, :] + shift.to(tl.float32)[None, :]
                    weight = above.to(tl.float32)[None, :] - far * far
                    top = tl.maximum(most, weight)
                    base = tl.where(top == float("-inf"), 0.0, top)
                    rest = rest * tl.exp(most - base) + tl.exp(weight - base)
                    most = top
            ratio = near * near + (most + tl.log(rest))
            value = tl.maximum(ratio, 0.0) + libdevice.log1p(tl.exp(-tl.abs(ratio)))
            # A ratio that is no number must stay one: maximum leaves it out.
            value = tl.where(ratio == ratio, value, float("nan"))
            exact = tl.where(inside, value, 0.0).to(tl.float64)
            total += tl.sum(exact, 1)
            square += tl.sum(exact * exact, 1)
        there = row < stop
        tl.store(sums + row, tl.load(sums + row, mask=there) + total, mask=there)
        row += samples
        tl.store(sums + row, tl.load(sums + row, mask=there) + square, mask=there)

    return squares, excess


def usable(projected: Tensor) -> bool:
    """Whether the kernels can take these projections: float32 on a GPU, row by row."""
    fits = projected.is_cuda and projected.dtype == torch.float32 and projected.is_contiguous()
    return fits and _kernels() is not None


def add_squares(projected: Tensor, edges: list[int], sums: Tensor) -> None:
    """Add to ``sums``, float64 ``(classes, directions)``, each class's sums of squares."""
    width = projected.shape[1]
    parts = _parts(tuple(edges), _ROWS * _DEEP, projected.device)
    grid = (len(parts), math.ceil(width / _COLUMNS))
    if (kernels := _kernels()) is not None:
        kernels[0][grid](projected, parts, sums, width, rows=_ROWS, columns=_COLUMNS, deep=_DEEP)


def add_log_excess(projected: Tensor, edges: list[int], laws: ClassLaws, sums: Tensor) -> None:
    """Add to ``sums``, float64 ``(2, samples)``, what ``psmi_kernel.add_log_excess`` adds."""
    parts = _parts(tuple(edges), _ROWS, projected.device)
    tables = [laws.means, laws.origins, math.sqrt(0.5) / laws.deviations]
    tables.append(laws.log_shares[:, None] - torch.log(laws.deviations))
    means, origins, scales, levels = (table.contiguous() for table in tables)
    samples, width = projected.shape
    if (kernels := _kernels()) is not None:
        kernels[1][(len(parts),)](
            *(projected, parts, means, origins, scales, levels, sums),
            *(width, samples, len(means)),
            rows=_ROWS,
            columns=_COLUMNS,
        )


@lru_cache(maxsize=8)
def _parts(edges: tuple[int, ...], rows: int, device: torch.device) -> Tensor:
    """The class, start and stop of pieces of at most so many samples, none of two classes."""
    bounds = np.array(edges)
    pieces = -(-np.diff(bounds) // rows)
    own = np.repeat(np.arange(pieces.size), pieces)
    among = np.arange(own.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = bounds[own] + rows * among
    stop = np.minimum(start + rows, bounds[own + 1])
    return torch.from_numpy(np.stack([own, start, stop], axis=1).astype(np.int64)).to(device)
