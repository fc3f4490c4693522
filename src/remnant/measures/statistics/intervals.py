"""Interval arithmetic that the measures share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import check_share, read_floats

Floats = NDArray[np.float64]


def clopper_pearson(
    hits: ArrayLike, n: ArrayLike, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """The exact two-sided interval of a proportion of which ``hits`` in ``n`` were observed.

    Both may be fractional: an *effective* size of a clustered sample (Korn and Graubard) is used
    like a count. ``hits`` and ``n`` broadcast.

    Guarantees:
        * Covers the true proportion with at least ``confidence``, for whole ``hits``.
        * No hit has the low end 0, nothing but hits the high end 1; ``hits / n`` lies inside.

    Raises:
        InvalidInput: ``hits`` outside 0..n, ``n`` not positive, ``confidence`` outside (0, 1).

    Example:
        >>> low, high = clopper_pearson(0, 299)
        >>> round(float(high), 4)
        0.0123
    """
    faults: list[str] = []
    counted = read_floats("hits", np.atleast_1d(hits), None, faults)
    sizes = read_floats("n", np.atleast_1d(n), None, faults)
    check_share("confidence", confidence, faults)
    require(faults)
    if counted is None or sizes is None:
        raise InvalidInput("hits and n must be numbers.")
    if np.any(sizes <= 0) or np.any(counted < 0) or np.any(counted > sizes):
        raise InvalidInput("hits must lie between 0 and n, and n must be positive.")
    shape = np.broadcast_shapes(np.shape(hits), np.shape(n))
    low, high = beta_ends(counted, sizes, confidence)
    return low.reshape(shape), high.reshape(shape)


def beta_ends(hits: Floats, n: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The quantiles behind ``clopper_pearson``, without its checks."""
    tail = (1.0 - confidence) / 2.0
    misses = n - hits
    # A mean of trials that are all 1 may come out an ulp below it: that is still saturation.
    edge = 1e-12 * n
    floor = np.finfo(np.float64).tiny
    low = stats.beta.ppf(tail, np.maximum(hits, floor), misses + 1.0)
    high = stats.beta.isf(tail, hits + 1.0, np.maximum(misses, floor))
    return (
        np.asarray(np.where(hits <= edge, 0.0, low)),
        np.asarray(np.where(misses <= edge, 1.0, high)),
    )


def student_inflation(trials: int, confidence: float) -> float:
    """How much wider a mean of ``trials`` has to be for its variance being estimated too: t/z."""
    tail = (1.0 - confidence) / 2.0
    return float(stats.t.isf(tail, trials - 1) / stats.norm.isf(tail))


def controls_needed(*, fpr: float, confidence: float = 0.95) -> int:
    """The number of controls whose maximum certifies a false-positive rate.

    A threshold at the largest of n controls has a rate above ``fpr`` with probability
    ``(1 - fpr) ** n``; this is the smallest n that brings it to ``1 - confidence`` or less.

    Raises:
        InvalidInput: ``fpr`` or ``confidence`` outside (0, 1).

    Example:
        >>> controls_needed(fpr=0.01), controls_needed(fpr=0.001)
        (299, 2995)
    """
    faults: list[str] = []
    check_share("fpr", fpr, faults)
    check_share("confidence", confidence, faults)
    require(faults)
    needed = math.log1p(-confidence) / math.log1p(-fpr)
    return max(1, math.ceil(needed - 1e-9))
