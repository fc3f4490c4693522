r"""The interval of a mean or a share over members that share canaries and seeds.

Every canary is planted once in a training of every seed, so that members make a table of seeds by
canaries. Members of one seed start alike and meet the same batches: a seed that memorises, does so
for many canaries. Members of one canary hold the same image. What is asked for is the mean over
other seeds *and* other canaries. With s² the variance of the seeds' means, c² that of the canaries'
means and r² that of what is left when both are taken away,

    V = s²/S + c²/C - r²/(SC)

is an unbiased estimate of the variance of the overall mean (two crossed random effects). The
interval reaches as far as √(t² s²/S + u² (c²/C - r²/(SC))), with Student's quantiles t of S - 1 and
u of C - 1 degrees of freedom, or as the same with the roles exchanged, whichever is farther; no
term counts for less than zero. One quantile for V as a whole (Satterthwaite's) would fall short
with three seeds.

A share h with this reach is worth so many independent members: h(1-h) z²/reach², z being the normal
quantile; at most S·C (z/t)². Clopper-Pearson with this number makes the interval (Korn and Graubard
1998), which is honest at 0 and 1 too.

Where there is one column only, members are independent: Student's t, and Clopper-Pearson.

What it does not cover, at a nominal 95 % with 3 to 8 seeds (``benchmarks/trial_intervals.py``). A
mean whose seeds have skewed effects: 89 to 92 % where these are exponential, 80 to 87 % where they
are lognormal. A kind of seed that is not among those trained: where one seed in five or ten behaves
differently, the interval holds in 67 to 87 % of cases for a mean, and from 5 seeds on in 73 to 86 %
for a share. S seeds that all behave the same do not exclude that a share of 1 - 0.05^(1/S) of seeds
behaves otherwise: 63 % for 3 seeds, 45 % for 5, 31 % for 8. Shares whose seeds differ by a beta or
a lognormal law are covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share, read_floats
from remnant.measures.statistics.intervals import beta_ends, clopper_pearson

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CrossedInterval:
    """A mean, or a share, and its interval over other seeds and other canaries.

    Attributes:
        value: Over all members.
        low, high: The ends; ``value`` lies between.
    """

    value: float
    low: float
    high: float


def crossed_mean(values: ArrayLike, *, confidence: float = 0.95) -> CrossedInterval:
    """The mean of a number that each member has.

    Args:
        values: Shape ``(seeds, canaries)``, or ``(members,)`` where members are independent.
        confidence: Of the interval.

    Raises:
        InvalidInput: Faulty numbers.
        NotEnoughEvidence: One seed.

    Example:
        >>> interval = crossed_mean([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]])
        >>> round(interval.value, 2), round(interval.low, 2), round(interval.high, 2)
        (2.5, -4.32, 9.32)
    """
    table = _table(values, confidence)
    value, reach = float(table.mean()), _reach(table, confidence)
    return CrossedInterval(value, value - reach, value + reach)


def crossed_share(hits: ArrayLike, *, confidence: float = 0.95) -> CrossedInterval:
    """The share of members for which a condition holds.

    Args:
        hits: Truth values, as ``values`` of ``crossed_mean``.
        confidence: Of the interval.

    Raises:
        InvalidInput: Faulty values.
        NotEnoughEvidence: One seed.

    Example:
        >>> interval = crossed_share([True] * 11)
        >>> round(interval.low, 3), interval.high
        (0.715, 1.0)
    """
    table = _table(np.asarray(hits, dtype=np.float64), confidence)
    value = float(table.mean())
    if table.shape[1] == 1:
        low, high = clopper_pearson(table.sum(), table.size, confidence=confidence)
        return CrossedInterval(value, float(low), float(high))
    tail = (1.0 - confidence) / 2.0
    normal = float(stats.norm.isf(tail))
    shorter = float(stats.t.isf(tail, min(table.shape) - 1))
    worth, reach = table.size * (normal / shorter) ** 2, _reach(table, confidence)
    if reach > 1e-8:
        worth = min(worth, value * (1.0 - value) * (normal / reach) ** 2)
    low, high = beta_ends(np.array(value * worth), np.array(worth), confidence)
    return CrossedInterval(value, min(float(low), value), max(float(high), value))


def crossed_difference(first: CrossedInterval, second: CrossedInterval) -> CrossedInterval:
    """How far ``one`` lies above ``other``: distances to the ends add up in square (Newcombe).

    The two are taken to be independent. Where they rise and fall together, as a planted member and
    its twin may, the interval is too wide rather than too narrow.

    Example:
        >>> crossed_difference(CrossedInterval(0.75, 0.5, 1.0), CrossedInterval(0.0, 0.0, 0.0))
        CrossedInterval(value=0.75, low=0.5, high=1.0)
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return CrossedInterval(value, value - below, value + above)


def _table(values: ArrayLike, confidence: float) -> Floats:
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    given = np.asarray(values)
    table = read_floats("values", given[:, None] if given.ndim == 1 else given, 2, faults)
    require(faults)
    if table is None or table.size == 0:
        raise InvalidInput("values must be an array of numbers, (seeds, canaries).")
    if len(table) < 2:
        raise NotEnoughEvidence(
            "one seed shows nothing of how seeds differ.", hint="Train with two seeds or more."
        )
    return table


def _reach(table: Floats, confidence: float) -> float:
    """How far the interval of the overall mean reaches to either side."""
    seeds, canaries = table.shape
    tail = (1.0 - confidence) / 2.0
    t = float(stats.t.isf(tail, seeds - 1))
    by_seed = float(table.mean(axis=1).var(ddof=1)) / seeds
    if canaries == 1:
        return t * math.sqrt(by_seed)
    u = float(stats.t.isf(tail, canaries - 1))
    by_canary = float(table.mean(axis=0).var(ddof=1)) / canaries
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    left = float((rest**2).sum()) / ((seeds - 1.0) * (canaries - 1.0)) / table.size
    seeds_first = t**2 * by_seed + u**2 * max(by_canary - left, 0.0)
    canaries_first = u**2 * by_canary + t**2 * max(by_seed - left, 0.0)
    return math.sqrt(max(seeds_first, canaries_first))
