"""A centred moving average, to look at a curve: what is measured stays the raw one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput

Floats = NDArray[np.float64]


def moving_average(values: Floats, points: int) -> Floats:
    """Average each entry with its neighbours, as many on the left as on the right.

    Near an end the window shrinks to what there is on both sides, so that it stays centred and a
    steep start is not drawn down by what follows it; the first and the last entry are their own.

    Args:
        values: Shape ``(n,)``.
        points: Entries in a whole window, an odd number.

    Guarantees:
        * ``points=1`` changes nothing; equally spaced entries on a line stay where they are.
        * No result lies outside the entries it was made of.

    Raises:
        InvalidInput: ``points`` is not an odd whole number from 1.

    Example:
        >>> moving_average(np.array([9.0, 6.0, 6.0, 3.0]), 3).tolist()
        [9.0, 7.0, 5.0, 3.0]
    """
    whole = isinstance(points, int | np.integer) and not isinstance(points, bool)
    if not whole or points < 1 or points % 2 == 0:
        raise InvalidInput(
            f"points={points!r} is not an odd whole number from 1.",
            hint="Pass how many neighbouring lags to average, such as 5.",
        )
    places = np.arange(values.size)
    reach = np.minimum(int(points) // 2, np.minimum(places, values.size - 1 - places))
    return np.array(
        [values[at - wide : at + wide + 1].mean() for at, wide in zip(places, reach, strict=True)],
        dtype=np.float64,
    )
