r"""The interval of a mean of few, skewed and bounded numbers: a bootstrap that knows its limits.

What one image adds to a score is skewed, since a divergence is rarely large and never negative. So
resamples are studentised: each has its own deviation, and

    (mean* - mean) / deviation*

takes the place of Student's t. Either end is the farther out of this bootstrap's and Student's: the
first follows skewness, the second does not fall short where the resamples do.

Where a handful of numbers make up the whole spread, no resampling can know how large the next such
number is. That is seen in the *effective number* behind the spread,

    (Σ (x - mean)²)² / Σ (x - mean)⁴,

about n/3 for a normal law and 1 where one number makes up everything. Under five, the mean may owe
anything to numbers beyond those seen. Their share is, with the confidence of one side, at most
1 - a^(1/n), and each is within the bound; so each end is moved out by that share of the bound. This
also gives numbers that are all alike an interval with a width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

# Under so many numbers' worth of spread the bound is called for.
FEW = 5.0
# Numbers drawn at once: some tens of megabytes.
BLOCK = 1 << 21


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """An interval of a mean.

    Attributes:
        low, high: Its ends; the mean lies between.
        carried_by_few: Whether the bound was called for.
    """

    low: float
    high: float
    carried_by_few: bool


def mean_interval(
    values: Floats, *, bound: float, confidence: float, draws: int, rng: np.random.Generator
) -> MeanInterval:
    """The interval of the mean of the law that ``values`` were drawn from, one by one.

    Args:
        values: At least two numbers, shape ``(n,)``.
        bound: No number of that law is farther from zero.
        confidence: Of the interval.
        draws: Resamples.
        rng: Draws them.
    """
    n = values.size
    mean = float(values.mean())
    apart = values - mean
    largest = float(np.abs(apart).max())
    tail = (1.0 - confidence) / 2.0
    if largest <= 1e-12 * max(float(np.abs(values).max()), np.finfo(np.float64).tiny):
        below = above = worth = 0.0
    else:
        scaled = apart / largest
        worth = float((scaled**2).sum() ** 2 / (scaled**4).sum())
        deviation = largest * float(scaled.std(ddof=1))
        student = float(stats.t.isf(tail, n - 1)) / np.sqrt(n)
        least, most = _studentised(scaled, tail, draws, rng)
        below, above = deviation * max(most, student), deviation * max(-least, student)
    few = worth < FEW
    unseen = bound * (1.0 - tail ** (1.0 / n)) if few else 0.0
    low, high = mean - below - unseen, mean + above + unseen
    return MeanInterval(float(max(low, -bound)), float(min(high, bound)), few)


def _studentised(
    apart: Floats, tail: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The ``tail`` quantiles of (mean* - mean) / deviation*, both ends; the mean being zero."""
    n = apart.size
    ratios = np.zeros(draws)
    step = max(1, BLOCK // n)
    for first in range(0, draws, step):
        rows = min(step, draws - first)
        drawn = apart[rng.integers(0, n, size=(rows, n))]
        means = drawn.mean(axis=1)
        spread = np.sqrt(((drawn - means[:, None]) ** 2).sum(axis=1) / (n - 1))
        # A resample of one number over and over says nothing. It is rare, or few carry the spread.
        np.divide(means, spread, out=ratios[first : first + rows], where=spread > 1e-9)
    ratios.sort()
    place = max(int(tail * (draws + 1)), 1)
    return float(ratios[place - 1]), float(ratios[draws - place])
