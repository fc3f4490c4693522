"""Do two scores rise together? Pearson's correlation, with an interval that few outliers widen."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.checks import check_share, read_floats
from remnant.measures.rank_agreement import LEAST, RankAgreement


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
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    one = read_floats("first", first, 1, faults)
    other = read_floats("second", second, 1, faults)
    if one is not None and other is not None and one.size != other.size:
        faults.append(f"first has {one.size} entries and second {other.size}")
    for name, given in (("first", one), ("second", other)):
        if given is not None and given.size > 1 and given.min() == given.max():
            faults.append(f"{name} is the same for all samples")
    require(faults)
    if one is None or other is None:
        raise InvalidInput("first and second must be arrays of numbers.")
    n = one.size
    if n < LEAST:
        raise NotEnoughEvidence(
            f"{n} samples are too few for an interval of a correlation; it takes {LEAST}."
        )
    # Divided by the largest first, so that squares of very small or large scores stay finite.
    u, v = (each / np.abs(each).max() for each in (one - one.mean(), other - other.mean()))
    u, v = u / u.std(), v / v.std()
    value = min(max(float(np.mean(u * v)), -1.0), 1.0)
    edge = 1.0 - 1e-9
    inner = min(max(value, -edge), edge)
    influence = u * v - inner / 2.0 * (u * u + v * v)
    spread = float(np.std(influence, ddof=1)) / math.sqrt(n) / (1.0 - inner**2)
    quantile = float(stats.t.isf((1.0 - confidence) / 2.0, n - 2))
    reach = quantile * max(spread, 1.0 / math.sqrt(n - 3.0))
    middle = math.atanh(inner)
    return RankAgreement(
        value=value,
        low=min(math.tanh(middle - reach), value),
        high=max(math.tanh(middle + reach), value),
        n=n,
        confidence=float(confidence),
        method="Fisher's transform; the larger of the influence and the normal errors",
    )
