"""A curve between its lags: where it last crosses a level, and a moving average to look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence

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


def moving_average(lags: Floats, values: Floats, points: int) -> Floats:
    """Average each value with those around it, as far to the left as to the right.

    The window of a lag reaches to its neighbours on the side where they are nearer, and equally far
    on the other; it is read at ``points`` evenly spaced places, on straight lines between the
    values. So it stays centred where lags are not evenly spaced, and a steep start is not drawn
    down by what follows it. Near an end it shrinks; the first and the last value are their own.

    Args:
        lags: Strictly increasing, shape ``(n,)``.
        values: Shape ``(n,)``.
        points: Values in a whole window, an odd number.

    Guarantees:
        * At evenly spaced lags it is the mean of the value and its neighbours.
        * ``points=1`` changes nothing; values on a line stay where they are, whatever the lags.
        * No result lies outside the values it was made of.

    Raises:
        InvalidInput: ``points`` is not an odd whole number from 1.

    Example:
        >>> moving_average(np.arange(4.0), np.array([9.0, 6.0, 6.0, 3.0]), 3).tolist()
        [9.0, 7.0, 5.0, 3.0]
    """
    whole = isinstance(points, int | np.integer) and not isinstance(points, bool)
    if not whole or points < 1 or points % 2 == 0:
        raise InvalidInput(
            f"points={points!r} is not an odd whole number from 1.",
            hint="Pass how many neighbouring lags to average, such as 5.",
        )
    made = np.empty(values.size)
    for place, lag in enumerate(lags):
        side = min(int(points) // 2, place, values.size - 1 - place)
        reach = min(lag - lags[place - side], lags[place + side] - lag)
        window = np.linspace(lag - reach, lag + reach, 2 * side + 1)
        made[place] = np.interp(window, lags, values).mean()
    return made
