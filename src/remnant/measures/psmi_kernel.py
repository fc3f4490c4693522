"""The arithmetic of PSMI on one block of directions: moments of the classes, then log ratios.

Arrays here are laid out ``(directions, samples)`` with the samples sorted by class, so that what
belongs to a class is a slice, what belongs to a direction is one number a row, and pieces stay in
the cache. Only the projections are large; laws are float64 whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Work = NDArray[Any]  # float32 or float64
Ints = NDArray[np.int64]

# Pieces of so many directions and samples stay in the cache; longer float32 sums lose digits.
PIECE_DIRECTIONS, PIECE_SAMPLES = 32, 4096
# A class narrower than this share of the common spread along a direction counts as a point.
POINT = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class ClassLaws:
    """The normal law of every class along every direction of a block.

    Attributes:
        log_shares: Log of each class's share of the samples, shape ``(classes,)``.
        means, deviations: Shape ``(classes, directions)``.
    """

    log_shares: Floats
    means: Floats
    deviations: Floats


def class_variances(projected: Work, edges: Ints, ddof: int) -> Floats:
    """The variance of each class along each direction, shape ``(classes, directions)``.

    Args:
        projected: Samples less the mean of their class, projected.
        edges: Where each class begins among the samples, and the end.
        ddof: 0 divides by the number of samples, 1 by one less.
    """
    squares = np.zeros((edges.size - 1, projected.shape[0]))
    for one, (start, stop) in enumerate(pairwise(edges.tolist())):
        # A long float32 sum stalls: short ones are added up in float64.
        for first in range(start, stop, PIECE_SAMPLES):
            piece = projected[:, first : min(first + PIECE_SAMPLES, stop)]
            squares[one] += np.einsum("ks,ks->k", piece, piece)
    return np.asarray(squares / (np.diff(edges) - ddof)[:, None])


def positive_deviations(variances: Floats, shares: Floats, means: Floats) -> Floats:
    """Standard deviations of which none is zero.

    A class without spread along a direction is a point. Its law has no density, so it is given the
    spread ``POINT`` times the common one within classes (between them, where all are points): wide
    enough for finite numbers, too narrow to reach any sample that is not at the point.
    """
    within = shares @ variances
    between = shares @ (means - shares @ means) ** 2
    common = np.sqrt(np.where(within > 0.0, within, between))
    return np.maximum(np.sqrt(variances), POINT * common)


def add_log_excess(
    projected: Work,
    edges: Ints,
    laws: ClassLaws,
    *,
    total: Floats,
    squares: Floats,
) -> None:
    r"""Add to ``total`` and ``squares`` the sums over directions of ``v`` and ``v²``.

    For a sample of class y, v = log(1 + Σ_{c≠y} f_c N_c / (f_y N_y)) ≥ 0, so that its PSMI along
    the direction is -log f_y - v. Sums are taken of ratios as they are, which is fast; a sample
    for which one passes the range of the numbers is worked out again with the largest taken out.

    Args:
        projected: Samples less the mean of their class, projected.
        edges: Where each class begins among the samples, and the end.
        laws: Of the classes along these directions.
        total, squares: Shape ``(samples,)``; grow.
    """
    rooms = np.empty((3, PIECE_DIRECTIONS * PIECE_SAMPLES), dtype=projected.dtype)
    for own, (start, stop) in enumerate(pairwise(edges.tolist())):
        if start == stop:
            continue
        exact = _terms(laws, own)
        terms = exact.astype(projected.dtype)
        for low in range(0, projected.shape[0], PIECE_DIRECTIONS):
            rows = slice(low, low + PIECE_DIRECTIONS)
            for first in range(start, stop, PIECE_SAMPLES):
                columns = slice(first, min(first + PIECE_SAMPLES, stop))
                piece = projected[rows, columns]
                sums = _sums(piece, terms.at(rows), own, rooms)
                wild = np.flatnonzero(~np.isfinite(sums[1]))
                if wild.size:
                    sums[:, wild] = _careful_sums(piece[:, wild], exact.at(rows), own)
                total[columns] += sums[0]
                squares[columns] += sums[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """What turns a projection p into log(f_c N_c / f_y N_y) = own² - (scale p + shift)² + level.

    Attributes:
        scale, shift, level: Shape ``(classes, directions, 1)``.
    """

    scale: Work
    shift: Work
    level: Work

    def at(self, rows: slice) -> _Terms:
        return _Terms(self.scale[:, rows], self.shift[:, rows], self.level[:, rows])

    def astype(self, kind: np.dtype[Any]) -> _Terms:
        return _Terms(self.scale.astype(kind), self.shift.astype(kind), self.level.astype(kind))


def _terms(laws: ClassLaws, own: int) -> _Terms:
    deviation, mean = laws.deviations[:, :, None], laws.means[:, :, None]
    scale = np.sqrt(0.5) / deviation
    return _Terms(
        scale=scale,
        shift=(mean[own] - mean) * scale,
        level=(laws.log_shares - laws.log_shares[own])[:, None, None]
        + np.log(deviation[own])
        - np.log(deviation),
    )


def _sums(piece: Work, terms: _Terms, own: int, rooms: Work) -> Floats:
    """The sums of v and v² over the directions of a piece; not finite where a ratio is not."""
    mine, other, excess = (room[: piece.size].reshape(piece.shape) for room in rooms)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        np.multiply(piece, terms.scale[own], out=mine)
        np.multiply(mine, mine, out=mine)
        so_far: Work | float = 1.0
        for one in (one for one in range(terms.scale.shape[0]) if one != own):
            np.multiply(piece, terms.scale[one], out=other)
            np.add(other, terms.shift[one], out=other)
            np.multiply(other, other, out=other)
            np.subtract(mine, other, out=other)
            np.add(other, terms.level[one], out=other)
            np.exp(other, out=other)
            so_far = np.add(other, so_far, out=excess)
        np.log(excess, out=excess)
        # Not as a product with ones: for so little that would wake the product's threads.
        first = np.add.reduce(excess, axis=0)
        np.multiply(excess, excess, out=excess)
        return np.stack([first, np.add.reduce(excess, axis=0)]).astype(np.float64)


def _careful_sums(piece: Work, terms: _Terms, own: int) -> Floats:
    """The same for a few samples, in float64 and with the largest ratio taken out."""
    exact = piece.astype(np.float64)
    logs = (exact * terms.scale[own]) ** 2 - (exact * terms.scale + terms.shift) ** 2 + terms.level
    most = np.maximum(logs.max(axis=0), 0.0)
    logs[own] = 0.0
    excess = most + np.log(np.exp(logs - most).sum(axis=0))
    return np.stack([excess.sum(axis=0), (excess**2).sum(axis=0)])
