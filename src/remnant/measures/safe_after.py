"""From which lag on is it safe? A fixed sequence of tests, backward from the last lag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.checks import check_share
from remnant.measures.success import check_limit

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SafeAfter:
    """The claim "from this lag on, success is at or under the limit".

    Attributes:
        lag: The smallest lag that holds; None where not even the last one does.
        reason: In one sentence, what was shown and what stopped the test.
        limit: The success that may not be passed.
        confidence: That the claim is true of every lag from ``lag`` on that was measured.
        tested: How many lags were tested, the one that failed included.
    """

    lag: float | None
    reason: str
    limit: float
    confidence: float
    tested: int


def safe_after(
    *,
    lags: Floats,
    upper: Callable[[float], Floats],
    limit: float,
    chance: float,
    success: str,
    confidence: float,
    most: float = 1.0,
) -> SafeAfter:
    """Test the lags from the last backward until one fails.

    Args:
        lags: Strictly increasing; those before planting are not tested.
        upper: Gives the one-sided upper bound of success at each lag, for a confidence.
        limit: The success that may not be passed, above ``chance``.
        chance: What an attack without knowledge reaches.
        success: Its name, for the sentence.
        confidence: Of the claim, between one half and 1.
        most: What no value can pass.

    Raises:
        InvalidInput: As in ``ForgettingCurve.safe_after``.
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    if not faults and confidence <= 0.5:
        faults.append(f"confidence={confidence:g} is not above one half")
    require(faults, hint="Pass a share, such as confidence=0.95.")
    check_limit(limit, chance=chance, success=success, most=most)
    after = np.flatnonzero(lags >= 0)
    if after.size == 0:
        raise InvalidInput(f"the last lag, {lags[-1]:g}, lies before planting.")
    bounds = upper(float(confidence))
    fails = after[bounds[after] > limit]
    level = f"upper {confidence:.4g} bound of {success}"
    if fails.size == 0:
        first = int(after[0])
        reason = f"At every lag from {lags[first]:g} on the {level} is at or under {limit:g}."
        return SafeAfter(float(lags[first]), reason, limit, confidence, after.size)
    stop = int(fails[-1])
    stopped = f"at lag {lags[stop]:g} the {level} is {bounds[stop]:.3f}"
    tested = after.size - int(np.flatnonzero(after == stop)[0])
    if stop == after[-1]:
        reason = f"Not even the last lag holds: {stopped}, above {limit:g}."
        return SafeAfter(None, reason, limit, confidence, tested)
    reason = f"From lag {lags[stop + 1]:g} on every bound is at or under {limit:g}; {stopped}."
    return SafeAfter(float(lags[stop + 1]), reason, limit, confidence, tested)
