"""Spearman's and Pearson's correlation of two scores, each with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share, read_floats

Floats = NDArray[np.float64]

LEAST = 10


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Spearman's correlation of two scores of the same samples.

    Attributes:
        value: From -1 to 1.
        low, high: The interval; it always holds ``value``.
        n: Samples.
        confidence: Of the interval.
        method: Its construction, in words.
    """

    value: float
    low: float
    high: float
    n: int
    confidence: float
    method: str


def rank_agreement(
    *, first: ArrayLike, second: ArrayLike, confidence: float = 0.95
) -> RankAgreement:
    """Spearman's rank correlation, with an interval that does not assume normal scores.

    The standard error is the larger of two: that of the influence of each sample on the
    correlation, which holds for any joint law, and Bonett and Wright's, √((1 + ρ²/2)/(n - 3)) after
    Fisher's transform, which is steadier with few samples. The interval is symmetric after Fisher's
    transform. A sample correlation of ±1 is read as one exchange of neighbours less.

    The interval is over samples, taken to be independent. Samples scored by the same models share
    those models' luck, of which it knows nothing.

    Args:
        first, second: Shape ``(n,)``, of the same samples in the same order; ties share ranks.
        confidence: Of the interval.

    Guarantees:
        * Any strictly increasing map of either score changes nothing.
        * Exchanging the scores changes nothing; reversing one changes the sign and the ends'.

    Raises:
        InvalidInput: Faulty or unequal arrays, a score that is the same for all samples.
        NotEnoughEvidence: Fewer than ten samples.

    Example:
        >>> found = rank_agreement(first=np.arange(20.0), second=np.arange(20.0)[::-1] ** 3)
        >>> found.value, found.low, round(found.high, 3)
        (-1.0, -1.0, -0.995)
    """
    x, y = read_scores(first, second, confidence, constant=" and ranks none")
    n = x.size
    u, v = _centred_ranks(x), _centred_ranks(y)
    value = float(u @ v / math.sqrt(float(u @ u) * float(v @ v)))
    value = min(max(value, -1.0), 1.0)
    edge = 1.0 - 12.0 / (n * (n * n - 1.0))
    inner = min(max(value, -edge), edge)
    spread = float(np.std(_influence(u, v, inner), ddof=1)) / math.sqrt(n) / (1.0 - inner**2)
    steady = math.sqrt((1.0 + inner**2 / 2.0) / (n - 3.0))
    return fisher_interval(
        value,
        inner,
        max(spread, steady),
        n=n,
        confidence=confidence,
        method="Fisher's transform; the larger of the influence and Bonett-Wright errors",
    )


def read_scores(
    first: ArrayLike, second: ArrayLike, confidence: float, *, constant: str = ""
) -> tuple[Floats, Floats]:
    """Read two scores of the same samples.

    Args:
        first, second: Shape ``(n,)``.
        confidence: Checked with them.
        constant: What else to say of a score that is the same for all samples.

    Raises:
        InvalidInput: Faulty or unequal arrays, a score that is the same for all samples.
        NotEnoughEvidence: Fewer than ten samples.
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    x = read_floats("first", first, 1, faults)
    y = read_floats("second", second, 1, faults)
    if x is not None and y is not None and x.size != y.size:
        faults.append(f"first has {x.size} entries and second {y.size}")
    for name, given in (("first", x), ("second", y)):
        if given is not None and given.size > 1 and given.min() == given.max():
            faults.append(f"{name} is the same for all samples{constant}")
    require(faults)
    if x is None or y is None:
        raise InvalidInput("first and second must be arrays of numbers.")
    if x.size < LEAST:
        raise NotEnoughEvidence(
            f"{x.size} samples are too few for an interval of a correlation; it takes {LEAST}."
        )
    return x, y


def fisher_interval(
    value: float, inner: float, error: float, *, n: int, confidence: float, method: str
) -> RankAgreement:
    """The interval that is symmetric after Fisher's transform.

    Args:
        value: The correlation.
        inner: The same, kept off ±1.
        error: Its standard error after the transform.
        n, confidence, method: As the result has them.
    """
    reach = float(stats.t.isf((1.0 - confidence) / 2.0, n - 2)) * error
    middle = math.atanh(inner)
    return RankAgreement(
        value=value,
        low=min(math.tanh(middle - reach), value),
        high=max(math.tanh(middle + reach), value),
        n=n,
        confidence=float(confidence),
        method=method,
    )


def _centred_ranks(scores: Floats) -> Floats:
    """Ranks as shares of n, counted from their mean; ties share theirs."""
    n = scores.size
    return np.asarray((stats.rankdata(scores) - (n + 1.0) / 2.0) / n)


def _influence(u: Floats, v: Floats, rho: float) -> Floats:
    """How far each sample moves the correlation: by its own ranks, and by moving others'."""
    moved = u * v + _carried(u, v) + _carried(v, u)
    a, b = float(np.mean(u * u)), float(np.mean(v * v))
    own_a, own_b = u * u + 2.0 * _carried(u, u), v * v + 2.0 * _carried(v, v)
    return np.asarray((moved / math.sqrt(a * b)) - rho / 2.0 * (own_a / a + own_b / b))


def _carried(ranks: Floats, values: Floats) -> Floats:
    """For each sample the mean over j of values_j where j ranks above it (half where level)."""
    order = np.argsort(ranks, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    above = sums[-1] - sums[np.searchsorted(ranks[order], ranks, side="right")]
    not_under = sums[-1] - sums[np.searchsorted(ranks[order], ranks, side="left")]
    return np.asarray((above + not_under) / 2.0 / ranks.size)


def linear_agreement(
    *, first: ArrayLike, second: ArrayLike, confidence: float = 0.95
) -> RankAgreement:
    """Pearson's correlation, with an interval that does not assume normal scores.

    As for ``rank_agreement``, the standard error after Fisher's transform is the larger of two:
    that of the influence of each sample on the correlation, which holds for any joint law with
    enough samples, and the normal law's, 1/√(n - 3). With few samples of very skewed scores a
    correlation may owe everything to one of them, and no interval knows of the next such sample:
    read ``rank_agreement`` there.

    Args:
        first, second: Shape ``(n,)``, of the same samples in the same order.
        confidence: Of the interval.

    Guarantees:
        * Adding to a score, or multiplying it by something positive, changes nothing.

    Raises:
        InvalidInput: Faulty or unequal arrays, a score that is the same for all samples.
        NotEnoughEvidence: Fewer than ten samples.

    Example:
        >>> found = linear_agreement(first=np.arange(20.0), second=5.0 - 3.0 * np.arange(20.0))
        >>> round(found.value, 6)
        -1.0
    """
    x, y = read_scores(first, second, confidence)
    # Divided by the largest first, so that squares of very small or large scores stay finite.
    u, v = (each / np.abs(each).max() for each in (x - x.mean(), y - y.mean()))
    u, v = u / u.std(), v / v.std()
    value = min(max(float(np.mean(u * v)), -1.0), 1.0)
    edge = 1.0 - 1e-9
    inner = min(max(value, -edge), edge)
    influence = u * v - inner / 2.0 * (u * u + v * v)
    spread = float(np.std(influence, ddof=1)) / math.sqrt(x.size) / (1.0 - inner**2)
    return fisher_interval(
        value,
        inner,
        max(spread, 1.0 / math.sqrt(x.size - 3.0)),
        n=x.size,
        confidence=confidence,
        method="Fisher's transform; the larger of the influence and the normal errors",
    )
