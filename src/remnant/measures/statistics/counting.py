"""How many references are at or under each canary, without sorting the references."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Up to this many canaries, comparing each with all references is fastest.
FEW_CANARIES = 4
# Under this many references a sort takes no longer than laying out the grid.
FEW_REFERENCES = 1 << 14
# References are binned in pieces that stay in the cache, with cells few enough to stay there too.
PIECE = 1 << 16
CELLS = 1 << 16
CELLS_PER_CANARY = 64


def at_or_under(canaries: Floats, references: Floats) -> Counts:
    """The number of references ``<=`` each canary, in the order of the canaries.

    A grid of equal cells is laid between the cheapest and the dearest canary. A reference in an
    earlier cell than a canary is cheaper, one in a later cell dearer, whatever rounding did, since
    the map to cells never falls; only references that share a cell with a canary are compared one
    by one. Where the costs are so uneven that most references share the canaries' cells, the time
    is that of sorting them; otherwise a fraction of it.

    Args:
        canaries, references: 1-D, without NaN and ``-inf``; ``+inf`` is at or under itself.
    """
    ranked, order = np.unique(canaries, return_inverse=True)
    if ranked.size <= FEW_CANARIES:
        return np.array([np.count_nonzero(references <= canary) for canary in ranked])[order]
    finite = ranked[np.isfinite(ranked)]
    cells = min(CELLS_PER_CANARY * finite.size, CELLS)
    with np.errstate(over="ignore"):
        span = float(finite[-1] - finite[0])
    # Outside these limits the width of a cell is no longer a number.
    countable = cells * float(np.finfo(np.float64).tiny) < span < np.inf
    if references.size < FEW_REFERENCES or not countable:
        return np.searchsorted(np.sort(references), canaries, side="right").astype(np.int64)
    counts = np.full(ranked.size, references.size, dtype=np.int64)
    counts[: finite.size] = _by_cells(finite, references, cells=cells, scale=cells / span)
    return counts[order]


def _by_cells(canaries: Floats, references: Floats, *, cells: int, scale: float) -> Counts:
    """The counts of rising, finite canaries."""
    with np.errstate(over="ignore"):
        origin = canaries[0] - 1.0 / scale
    room = np.empty(max(PIECE, canaries.size))

    def cell(losses: Floats) -> NDArray[np.intp]:
        """0 for what is far cheaper than every canary, and so on; never falls with the loss."""
        with np.errstate(over="ignore"):
            place = np.subtract(losses, origin, out=room[: losses.size])
            place *= scale
        np.clip(place, 0.0, cells + 1.0, out=place)
        return np.asarray(place.astype(np.intp))

    held = cell(canaries)
    shared = np.zeros(cells + 2, dtype=np.bool_)
    shared[held] = True
    tally = np.zeros(cells + 2, dtype=np.int64)
    close: list[Floats] = []
    for first in range(0, references.size, PIECE):
        piece = references[first : first + PIECE]
        its_cell = cell(piece)
        tally += np.bincount(its_cell, minlength=cells + 2)
        close.append(piece[shared[its_cell]])
    tally[shared] = 0
    near = np.sort(np.concatenate(close))
    return np.asarray(np.cumsum(tally)[held] + np.searchsorted(near, canaries, side="right"))
