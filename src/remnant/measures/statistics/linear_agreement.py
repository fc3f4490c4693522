"""Pearson's correlation of two scores, with an interval that a few outliers widen."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from remnant.measures.statistics.rank_agreement import RankAgreement, fisher_interval, read_scores


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
