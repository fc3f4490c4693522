"""The arithmetic of PSMI on one block of directions: moments of the classes, then log ratios.

Arrays here are tensors ``(samples, directions)`` with the samples sorted by class, so that what
belongs to a class is a slice and what belongs to a direction stands under it. They are worked
through in pieces that stay in the cache. Only projections are large; laws are float64 whatever
they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from remnant.measures.prediction import psmi_fused
from remnant.measures.prediction.psmi_laws import ClassLaws, Terms

# A piece of so many projections stays in the cache.
PIECE = {"cpu": 1 << 18, "cuda": 1 << 22}
# A class narrower than this share of the common spread along a direction counts as a point.
POINT = 1e-6
# Beyond this log(1 + exp(x)) is x to the last digit.
STRAIGHT = 60.0


class Rooms:
    """Memory to work on pieces in, the same all along a walk."""

    def __init__(self, samples: int, directions: int, like: Tensor) -> None:
        """Make room for pieces of projections ``(samples, directions)`` of ``like``'s kind."""
        self.rows = max(1, min(PIECE[like.device.type] // directions, samples))
        self._flat = empty((2, self.rows * directions), like).unbind()

    def pieces(
        self, projected: Tensor, start: int, stop: int
    ) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """The samples from ``start`` to ``stop`` in as few equal pieces as fit.

        Yields:
            Where they are, the piece, and two rooms of its shape.
        """
        pieces = math.ceil((stop - start) / self.rows)
        size = math.ceil((stop - start) / max(pieces, 1))
        for first in range(start, stop, max(size, 1)):
            rows = slice(first, min(first + size, stop))
            piece = projected[rows]
            first_room, second_room = (
                room[: piece.numel()].view(piece.shape) for room in self._flat
            )
            yield rows, piece, first_room, second_room


def empty(shape: tuple[int, int], like: Tensor) -> Tensor:
    """Memory not yet written, of the kind and on the device of ``like``."""
    if like.device.type == "cpu":  # NumPy asks the system for large pages, torch does not
        kind = np.float32 if like.dtype == torch.float32 else np.float64
        return torch.from_numpy(np.empty(shape, dtype=kind))
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def class_variances(
    projected: Tensor, edges: list[int], rooms: Rooms, *, apart: Tensor, ddof: int
) -> Tensor:
    """The variance of each class along each direction, shape ``(classes, directions)``.

    Args:
        projected: Samples less the origin of their class, projected.
        edges: Where each class begins among the samples, and the end; no class is empty.
        rooms: To work in.
        apart: Each class's mean less its origin along each direction, in float64.
        ddof: 0 divides by the number of samples, 1 by one less.
    """
    counts = torch.tensor(np.diff(edges), dtype=torch.float64)[:, None].to(apart.device)
    sums = -counts * apart**2
    if psmi_fused.usable(projected):
        psmi_fused.add_squares(projected, edges, sums)
        return sums.clamp_(min=0.0).div_(counts - ddof)
    for own, (start, stop) in enumerate(pairwise(edges)):
        # A long float32 sum stalls: short ones are added up in float64.
        for _, piece, room, _ in rooms.pieces(projected, start, stop):
            sums[own].add_(torch.mul(piece, piece, out=room).sum(dim=0))
    return sums.clamp_(min=0.0).div_(counts - ddof)


def positive_deviations(variances: Tensor, shares: Tensor, means: Tensor) -> Tensor:
    """Standard deviations of which none is zero.

    A class without spread along a direction is a point. Its law has no density, so it is given the
    spread ``POINT`` times the common one within classes (between them, where all are points): wide
    enough for finite numbers, too narrow to reach any sample that is not at the point.
    """
    within = shares @ variances
    between = shares @ (means - shares @ means) ** 2
    common = torch.sqrt(torch.where(within > 0.0, within, between))
    return torch.maximum(torch.sqrt(variances), POINT * common)


def add_log_excess(
    projected: Tensor, edges: list[int], laws: ClassLaws, rooms: Rooms, *, sums: Tensor
) -> None:
    r"""Add to ``sums`` the sums over directions of ``v`` and ``v²``.

    For a sample of class y, v = log(1 + Σ_{c≠y} f_c N_c / (f_y N_y)) ≥ 0, so that its PSMI along
    the direction is -log f_y - v. All in logs, so that nothing overflows but squares.

    Args:
        projected: Samples less the origin of their class, projected.
        edges: Where each class begins among the samples, and the end.
        laws: Of the classes along these directions.
        rooms: To work in.
        sums: Shape ``(2, samples)``, float64; grows.
    """
    if psmi_fused.usable(projected):
        psmi_fused.add_log_excess(projected, edges, laws, sums)
        return
    here = projected.new_empty((2, projected.shape[0]))
    for own, (start, stop) in enumerate(pairwise(edges)):
        terms = laws.around(own, projected.dtype)
        for rows, piece, room, other in rooms.pieces(projected, start, stop):
            excess = _excess(piece, terms, room, other)
            torch.sum(excess, dim=1, out=here[0, rows])
            torch.linalg.vector_norm(excess, dim=1, out=here[1, rows])
    total, length = here.to(torch.float64)
    sums[0].add_(total)
    sums[1].addcmul_(length, length)


def _excess(piece: Tensor, terms: list[Terms], room: Tensor, total: Tensor) -> Tensor:
    """v of a piece: log(1 + exp(own² + log Σ exp(level - other²)))."""
    (first, *rest), own = terms[:-1], terms[-1]
    _log_weight(piece, first, total)
    for other in rest:
        torch.logaddexp(total, _log_weight(piece, other, room), out=total)
    torch.addcmul(own[1], piece, own[0], out=room)
    torch.addcmul(total, room, room, out=total)
    return functional.softplus(total, threshold=STRAIGHT)


def _log_weight(piece: Tensor, terms: Terms, out: Tensor) -> Tensor:
    """level - (scale p + shift)²."""
    scale, shift, level = terms
    torch.addcmul(shift, piece, scale, out=out)
    return torch.addcmul(level, out, out, value=-1.0, out=out)
