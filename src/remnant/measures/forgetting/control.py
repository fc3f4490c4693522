"""The positive control: did the attack find the canaries at a lag at which it could have failed?

An attack that sees nothing finds nothing at any lag, which looks like perfect forgetting. So no lag
is called safe, and no gate passes, unless the same attack found the same canaries at some lag.

Right after INJECT the unplanted twin still equals its checkpoint. Scores calibrated by that
checkpoint are then exactly 0 on the unplanted side, and the attack succeeds by construction. Lag 0
is therefore no control there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ERROR = 0.025  # how often an attack that sees nothing may be taken to have found the canaries
_FIRST = 0.8  # of the error


@dataclass(frozen=True, slots=True)
class Control:
    """Whether the attack found the canaries.

    Attributes:
        lag: The first lag at which the lower bound of success exceeds chance; None where there is
            none.
        reason: The same in a sentence.
    """

    lag: float | None
    reason: str

    @property
    def found(self) -> bool:
        """Whether there is such a lag."""
        return self.lag is not None


def positive_control(
    *,
    lags: Floats,
    lower: Callable[[float], Floats],
    chance: float,
    at_zero: bool,
) -> Control:
    """Look for a lag at which success is shown to be above chance, corrected for their number.

    An attack that sees nothing is taken to have found the canaries with a probability of 2.5 % at
    most, whatever the confidence of the curve.

    Four fifths of the error go to the first lag, where canaries are most likely to be found (with
    two trials Student's quantile grows very fast as the error shrinks); the rest is divided among
    the later lags.

    Args:
        lags: Strictly increasing.
        lower: Gives the one-sided lower bound of success at each lag, for a confidence. It should
            hold for skewed trials.
        chance: What an attack without knowledge reaches.
        at_zero: Whether the attack could have failed at lag 0.
    """
    usable = np.flatnonzero(lags >= 0 if at_zero else lags > 0)
    if usable.size == 0:
        return Control(
            None,
            "No lag after 0 was measured, so nothing shows that this attack can find the canaries.",
        )
    first, later = usable[:1], usable[1:]
    shares = ((first, ERROR * (_FIRST if later.size else 1.0)), (later, ERROR * (1.0 - _FIRST)))
    for which, share in shares:
        if which.size:
            above = which[lower(1.0 - share / which.size)[which] > chance]
            if above.size:
                lag = float(lags[above[0]])
                return Control(lag, f"The attack found the canaries at lag {lag:g}.")
    return Control(
        None,
        f"The attack did not find the canaries at any lag {'from' if at_zero else 'after'} 0, so "
        "not finding them later says nothing.",
    )
