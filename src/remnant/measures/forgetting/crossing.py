"""Where a curve comes down to a level for the last time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence

Floats = NDArray[np.float64]


def last_crossing(*, lags: Floats, value: Floats, level: float) -> float | None:
    """The lag at which ``value`` comes down to ``level`` for the last time.

    Between lags the value is a straight line. Lags before planting do not count.

    Returns:
        The lag; the first one (at or after 0) where no value is above the level; None where the
        last value still is: it was not reached within the curve.

    Raises:
        NotEnoughEvidence: No lag is 0 or more.

    Example:
        >>> last_crossing(lags=np.array([0.0, 10.0]), value=np.array([3.0, 1.0]), level=2.0)
        5.0
    """
    after = lags >= 0
    if not after.any():
        raise NotEnoughEvidence(
            f"all lags lie before planting (the last is {lags[-1]:g}).",
            hint="Score the canaries after they were seen, too.",
        )
    lags, value = lags[after], value[after]
    above = np.flatnonzero(value > level)
    if above.size == 0:
        return float(lags[0])
    last = int(above[-1])
    if last == value.size - 1:
        return None
    share = (value[last] - level) / (value[last] - value[last + 1])
    return float(lags[last] + share * (lags[last + 1] - lags[last]))
