"""One walk over all directions, block by block: what PSMI holds in memory, and in which precision.

Projections of float32 samples are made in float32. Where that would not do (numbers that cannot be
squared, a direction along which hardly anything varies), the walk gives up and is done again in
float64, on samples scaled by the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput
from remnant.measures.hidden_states import HiddenStates
from remnant.measures.psmi_kernel import (
    ClassLaws,
    add_log_excess,
    class_variances,
    positive_deviations,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Work = NDArray[Any]

# Projections held at once; between the fewest and the most directions of a block.
HELD, FEWEST, MOST = 6_000_000, 32, 512
# float32 has seven digits: where a direction shows so little of the variance, they are too few.
FAINT = 1e-8
# Between these limits float32 numbers can be squared and added up.
SMALL, LARGE = 1e-12, 1e12
# A sample so many times further out than the fitted ones has no projection that can be squared.
FAR = 1e100
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What is known before a walk.

    Attributes:
        shares: Each class's share, shape ``(classes,)``.
        centres: Each class's mean, shape ``(classes, d)``.
        directions: Unit vectors, shape ``(K, d)``.
        ddof: Of the variances.
    """

    shares: Floats
    centres: Floats
    directions: Floats
    ddof: int


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What a walk over the fitted samples finds.

    Attributes:
        deviations: Of each class along each direction, shape ``(classes, K)``.
        reach: The largest distance of a feature from its class's mean, or of that from the mean of
            all.
        precision: The type of the projections.
    """

    deviations: Floats
    reach: float
    precision: np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LogExcess:
    """Sums over directions for each sample, sorted by class: see ``add_log_excess``."""

    total: Floats
    squares: Floats
    precision: np.dtype[Any]

    def add(self, projected: Work, edges: Ints, laws: ClassLaws) -> None:
        """Add a block of directions."""
        add_log_excess(projected, edges, laws, total=self.total, squares=self.squares)


def fit_walk(given: HiddenStates, basis: Basis, *, scored: bool) -> tuple[Spread, LogExcess]:
    """The spread of these samples' classes, and how the samples themselves stand in it.

    Raises:
        InvalidInput: Nothing varies, at all or along a direction.
    """
    if given.hidden.dtype == np.float32:
        found = _fit(given, basis, np.dtype(np.float32), scored)
        if found is not None:
            return found
    found = _fit(given, basis, np.dtype(np.float64), scored)
    if found is None:
        raise InvalidInput("hidden cannot be projected: its features are not numbers of any use.")
    return found


def evaluation_walk(given: HiddenStates, basis: Basis, spread: Spread) -> LogExcess:
    """How samples stand in a spread that was fitted to others.

    Raises:
        InvalidInput: A feature too far out to be squared.
    """
    work = np.promote_types(spread.precision, given.hidden.dtype)
    residuals = given.residuals(basis.centres, work)
    out = _farthest(residuals)
    if work == np.float32 and not out < LARGE:
        work = np.dtype(np.float64)
        residuals = given.residuals(basis.centres, work)
        out = _farthest(residuals)
    if not out <= FAR * spread.reach:
        raise InvalidInput(
            "hidden holds features more than 1e100 times further from their class's mean than any "
            "that was fitted."
        )
    scale = 1.0 if work == np.float32 else spread.reach
    residuals /= work.type(scale)
    sums = LogExcess(np.zeros(residuals.shape[0]), np.zeros(residuals.shape[0]), work)
    means = _means(basis, scale)
    for rows, projected in _projections(residuals, basis.directions):
        laws = ClassLaws(np.log(basis.shares), means[:, rows], spread.deviations[:, rows] / scale)
        sums.add(projected, given.edges, laws)
    return sums


def _fit(
    given: HiddenStates, basis: Basis, work: np.dtype[Any], scored: bool
) -> tuple[Spread, LogExcess] | None:
    """None where ``work`` does not do."""
    narrow = work == np.float32
    residuals = given.residuals(basis.centres, work)
    middle = basis.shares @ basis.centres
    reach = max(_farthest(residuals), float(np.abs(basis.centres - middle).max()))
    if narrow and not SMALL < reach < LARGE:
        return None
    if reach == 0.0:
        raise InvalidInput("hidden is the same for all samples: nothing varies.")
    scale = 1.0 if narrow else reach
    residuals /= work.type(scale)
    means = _means(basis, scale)
    noise = None if narrow else _rounding(given.hidden, basis.directions) / scale
    spread = np.empty(means.shape)
    sums = LogExcess(np.zeros(residuals.shape[0]), np.zeros(residuals.shape[0]), work)
    for rows, projected in _projections(residuals, basis.directions):
        variances = class_variances(projected, given.edges, basis.ddof)
        within = basis.shares @ variances
        if noise is None:
            if not within.min() > max(FAINT * within.max(), SMALL**2):
                return None
        else:
            _check_sight(within, means[:, rows], noise[rows], rows.start)
        spread[:, rows] = positive_deviations(variances, basis.shares, means[:, rows])
        if scored:
            laws = ClassLaws(np.log(basis.shares), means[:, rows], spread[:, rows])
            sums.add(projected, given.edges, laws)
    return Spread(spread * scale, reach, work), sums


def _projections(residuals: Work, directions: Floats) -> Iterator[tuple[slice, Work]]:
    """Blocks of projections ``(directions, samples)``, all in the same place in memory."""
    samples, number = residuals.shape[0], directions.shape[0]
    size = min(max(HELD // samples, FEWEST), MOST, number)
    room = np.empty((size, samples), dtype=residuals.dtype)
    for first in range(0, number, size):
        rows = slice(first, min(first + size, number))
        block = directions[rows].astype(residuals.dtype)
        yield rows, np.matmul(block, residuals.T, out=room[: rows.stop - first])


def _means(basis: Basis, scale: float) -> Floats:
    """Where the classes' means lie along the directions, counted from the mean of all."""
    apart = (basis.centres - basis.shares @ basis.centres) / scale
    return np.asarray(apart @ basis.directions.T)


def _farthest(residuals: Work) -> float:
    return max(float(residuals.max()), -float(residuals.min()))


def _rounding(hidden: Work, directions: Floats) -> Floats:
    """How far a projection may be off because features are rounded, for each direction."""
    return np.asarray(ROUNDING * (np.abs(directions) @ np.abs(hidden).max(axis=0)))


def _check_sight(within: Floats, means: Floats, noise: Floats, first: int) -> None:
    blind = np.flatnonzero(np.sqrt(within + np.ptp(means, axis=0) ** 2) <= noise)
    if blind.size:
        raise InvalidInput(
            f"hidden does not vary at all along {blind.size} direction(s), the first of them "
            f"number {first + int(blind[0])}."
        )
