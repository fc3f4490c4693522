"""The arithmetic of PSMI on one block of directions: moments of the classes, then log ratios.

Arrays here are tensors ``(samples, directions)`` with the samples sorted by class, so that what
belongs to a class is a slice and what belongs to a direction stands under it. They are worked
through in pieces that stay in the cache. Only projections are large; laws are float64 whatever
they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

# A piece of so many projections stays in the cache: of a core, of a GPU. So small a piece is worked
# on by the thread that asks: on a busy machine, threads that meet after every operation wait.
PIECE = {"cpu": 1 << 15, "cuda": 1 << 22}
# So many pieces of a class are worked on by one thread in a go.
STRETCH = 8
# A class narrower than this share of the common spread along a direction counts as a point.
POINT = 1e-6
# Beyond this log(1 + exp(x)) is x to the last digit.
STRAIGHT = 60.0

Terms = tuple[Tensor, Tensor, Tensor]
Each = Callable[[Callable[["Stretch"], Any], Iterable["Stretch"]], Iterable[Any]]


@contextmanager
def workers(device: torch.device) -> Iterator[Each]:
    """Something like ``map``, by as many threads as torch would take; on a GPU by this one."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map


@dataclass(frozen=True, slots=True, eq=False)
class ClassLaws:
    """The normal law of every class along every direction of a block.

    Attributes:
        log_shares: Log of each class's share of the samples, shape ``(classes,)``.
        means, deviations: Shape ``(classes, directions)``.
        origins: Where the projections of each class's samples are counted from; a mean rounded to
            the type of the samples.
    """

    log_shares: Tensor
    means: Tensor
    deviations: Tensor
    origins: Tensor

    def at(self, rows: slice) -> ClassLaws:
        """The laws along some of the directions."""
        cut = (self.means[:, rows], self.deviations[:, rows], self.origins[:, rows])
        return ClassLaws(self.log_shares, *cut)

    def around(self, own: int, work: torch.dtype) -> list[Terms]:
        """What a projection p of class ``own`` is turned into under each class.

        Returns:
            Scale, shift and level of each class, the own one last, such that the log of the ratio
            of class c to the own one is (scale p + shift)²_own - (scale p + shift)²_c + level_c.
        """
        scale = math.sqrt(0.5) / self.deviations
        shift = (self.origins[own] - self.means) * scale
        level = (self.log_shares - self.log_shares[own])[:, None] + torch.log(
            self.deviations[own] / self.deviations
        )
        found = torch.stack([scale, shift, level], dim=1).to(work)
        terms = [(one[0], one[1], one[2]) for one in (each.unbind() for each in found.unbind())]
        return [*terms[:own], *terms[own + 1 :], terms[own]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Samples of one class, in pieces.

    Attributes:
        own: The class.
        start, stop: The samples.
        size: How many to a piece.
    """

    own: int
    start: int
    stop: int
    size: int

    def pieces(self, projected: Tensor) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Pieces of ``projected``, where in the stretch they are, and two rooms to work in."""
        rooms = projected.new_empty((2, self.size, projected.shape[1]))
        room, other = rooms.unbind()
        for first, piece in enumerate(projected[self.start : self.stop].split(self.size)):
            if len(piece) < self.size:
                room, other = room[: len(piece)], other[: len(piece)]
            yield slice(first * self.size, first * self.size + len(piece)), piece, room, other


def stretches(edges: list[int], projected: Tensor) -> Iterator[Stretch]:
    """All samples, each class in as few equal pieces as fit."""
    most = max(1, PIECE[projected.device.type] // projected.shape[1])
    for own, (start, stop) in enumerate(pairwise(edges)):
        if start == stop:
            continue
        size = math.ceil((stop - start) / math.ceil((stop - start) / most))
        for first in range(start, stop, STRETCH * size):
            yield Stretch(own, first, min(first + STRETCH * size, stop), size)


def empty(shape: tuple[int, int], like: Tensor) -> Tensor:
    """Memory not yet written, of the kind and on the device of ``like``."""
    if like.device.type == "cpu":  # NumPy asks the system for large pages, torch does not
        kind = np.float32 if like.dtype == torch.float32 else np.float64
        return torch.from_numpy(np.empty(shape, dtype=kind))
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def class_variances(
    projected: Tensor, edges: list[int], each: Each, *, apart: Tensor, ddof: int
) -> Tensor:
    """The variance of each class along each direction, shape ``(classes, directions)``.

    Args:
        projected: Samples less the origin of their class, projected.
        edges: Where each class begins among the samples, and the end; no class is empty.
        each: Of ``workers``.
        apart: Each class's mean less its origin along each direction, in float64.
        ddof: 0 divides by the number of samples, 1 by one less.
    """

    def squares(stretch: Stretch) -> tuple[int, Tensor]:
        # A long float32 sum stalls: short ones are added up in float64.
        total = torch.zeros_like(apart[0])
        for _, piece, room, _ in stretch.pieces(projected):
            total.add_(torch.mul(piece, piece, out=room).sum(dim=0))
        return stretch.own, total

    counts = torch.tensor(np.diff(edges), dtype=torch.float64)[:, None].to(apart.device)
    found = -counts * apart**2
    for own, total in each(squares, stretches(edges, projected)):
        found[own].add_(total)
    return found.clamp_(min=0.0).div_(counts - ddof)


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
    projected: Tensor, edges: list[int], laws: ClassLaws, each: Each, *, sums: Tensor
) -> None:
    r"""Add to ``sums`` the sums over directions of ``v`` and ``v²``.

    For a sample of class y, v = log(1 + Σ_{c≠y} f_c N_c / (f_y N_y)) ≥ 0, so that its PSMI along
    the direction is -log f_y - v. All in logs, so that nothing overflows but squares.

    Args:
        projected: Samples less the origin of their class, projected.
        edges: Where each class begins among the samples, and the end.
        laws: Of the classes along these directions.
        each: Of ``workers``.
        sums: Shape ``(2, samples)``, float64; grows.
    """

    def score(stretch: Stretch) -> None:
        terms = laws.around(stretch.own, projected.dtype)
        found = projected.new_empty((2, stretch.stop - stretch.start))
        for rows, piece, room, other in stretch.pieces(projected):
            excess = _excess(piece, terms, room, other)
            torch.sum(excess, dim=1, out=found[0, rows])
            torch.linalg.vector_norm(excess, dim=1, out=found[1, rows])
        total, length = found.to(torch.float64)
        sums[0, stretch.start : stretch.stop].add_(total)
        sums[1, stretch.start : stretch.stop].addcmul_(length, length)

    for _ in each(score, stretches(edges, projected)):
        pass


def _excess(piece: Tensor, terms: list[Terms], room: Tensor, total: Tensor) -> Tensor:
    """v of a piece: log(1 + exp(own² + log Σ exp(level - other²)))."""
    (first, *rest), own = terms[:-1], terms[-1]
    _log_weight(piece, first, total)
    for one in rest:
        torch.logaddexp(total, _log_weight(piece, one, room), out=total)
    torch.addcmul(own[1], piece, own[0], out=room)
    torch.addcmul(total, room, room, out=total)
    return functional.softplus(total, threshold=STRAIGHT)


def _log_weight(piece: Tensor, terms: Terms, out: Tensor) -> Tensor:
    """level - (scale p + shift)²."""
    scale, shift, level = terms
    torch.addcmul(shift, piece, scale, out=out)
    return torch.addcmul(level, out, out, value=-1.0, out=out)
