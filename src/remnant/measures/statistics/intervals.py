"""Intervals of shares that the measures share, also for thousands of counts at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray
from scipy import fft, special, stats

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


# From here on a beta law is near enough to a normal one for the expansion to start from.
LARGE = 300
# From so many different counts on, the ends are interpolated between those of so many.
MANY, NODES = 64, 32


def count_ends(counts: NDArray[np.int64], n: int, confidence: float) -> tuple[Floats, Floats]:
    """The ends of ``clopper_pearson(counts, n)``, each different count worked out once.

    Where hits and misses are both many, SciPy's inverse takes most of the time of a measure, and at
    a count of 1000 in 3·10⁸ it was seen to be wrong by a factor of two. There the quantile is found
    from its Cornish-Fisher expansion by Halley's method; elsewhere it is SciPy's. Of many counts
    32 are worked out so: in standard deviations from the mean the end is a smooth function of the
    log-odds of the count, and a Chebyshev series through those 32 gives the rest.

    Guarantees:
        * Agrees with ``clopper_pearson``, relative error under 1e-9, for ``n`` up to 10⁷.
    """
    some, place = np.unique(counts, return_inverse=True)
    hits = some.astype(np.float64)
    tail = (1.0 - confidence) / 2.0
    large = (hits >= LARGE) & (n - hits >= LARGE)
    low, high = np.empty((2, hits.size))
    small = hits[~large]
    low[~large], high[~large] = beta_ends(small, np.full(small.size, float(n)), confidence)
    hits = hits[large]
    end = _interpolated if hits.size > MANY else _end
    low[large] = end(hits, n, tail, upper=False)
    high[large] = end(hits, n, tail, upper=True)
    return low[place], high[place]


def _end(hits: Floats, n: int, tail: float, *, upper: bool) -> Floats:
    """One end of the interval of each count, both hits and misses being many."""
    a, b = (hits + 1.0, n - hits) if upper else (hits, n - hits + 1.0)
    return _quantile(a, b, tail, upper=upper)


def _interpolated(hits: Floats, n: int, tail: float, *, upper: bool) -> Floats:
    """The same, from the ends of a few counts between the least and the greatest."""
    odds = np.log(hits / (n - hits))
    middle, half = (odds.max() + odds.min()) / 2.0, (odds.max() - odds.min()) / 2.0
    nodes = n * special.expit(middle + half * chebyshev.chebpts1(NODES))
    mean, spread = _mean_and_spread(nodes, n, upper=upper)
    heights = (_end(nodes, n, tail, upper=upper) - mean) / spread
    series = fft.dct(heights[::-1], type=2) / NODES
    series[0] /= 2.0
    mean, spread = _mean_and_spread(hits, n, upper=upper)
    return np.asarray(mean + spread * chebyshev.chebval((odds - middle) / half, series))


def _mean_and_spread(hits: Floats, n: int, *, upper: bool) -> tuple[Floats, Floats]:
    """Of the beta law whose quantile the end is."""
    a, b = (hits + 1.0, n - hits) if upper else (hits, n - hits + 1.0)
    total = a + b
    return a / total, np.sqrt(a * b / (total + 1.0)) / total


def _quantile(a: Floats, b: Floats, tail: float, *, upper: bool) -> Floats:
    """Where Beta(a, b), both large, leaves ``tail`` above (``upper``) or below."""
    towards = -1.0 if upper else 1.0
    total, z = a + b, float(special.ndtri(tail)) * towards
    spread = np.sqrt(a * b / (total + 1.0)) / total
    skew = 2.0 * (b - a) * np.sqrt(total + 1.0) / ((total + 2.0) * np.sqrt(a * b))
    peak = (a - b) ** 2 * (total + 1.0) - a * b * (total + 2.0)
    peaked = 6.0 * peak / (a * b * (total + 2.0) * (total + 3.0))
    bend = (z**2 - 1.0) * skew / 6.0 + (z**3 - 3.0 * z) * peaked / 24.0
    x = a / total + spread * (z + bend - (2.0 * z**3 - 5.0 * z) * skew**2 / 36.0)
    for _ in range(20):
        log_density = (a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) - special.betaln(a, b)
        # The small side of the law: a difference from nearly 1 would lose the digits. SciPy's own
        # ``betaincc`` is several times slower than this mirror image.
        side = (b, a, 1.0 - x) if upper else (a, b, x)
        excess = (special.betainc(*side) - tail) * towards
        step = excess * np.exp(-log_density)
        step /= 1.0 - 0.5 * step * ((a - 1.0) / x - (b - 1.0) / (1.0 - x))
        x = x - step
        # Each round cubes the error, counted in standard deviations.
        if np.all(np.abs(step) <= 1e-3 * spread):
            break
    return np.asarray(x)
