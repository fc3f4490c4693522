"""The positive control: did the attack find the canaries at a lag at which it could have failed?

An attack that sees nothing finds nothing at any lag, which looks like perfect forgetting. So no lag
is called safe, and no gate passes, unless the same attack found the same canaries at some lag.

Right after INJECT the unplanted twin still equals its checkpoint. Scores calibrated by that
checkpoint are then exactly 0 on the unplanted side, and the attack succeeds by construction. Lag 0
is therefore no control there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.measures.statistics.intervals import beta_ends
from remnant.measures.statistics.skewed_trials import upper_quantile

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
    per_trial: Floats,
    most: float = 1.0,
    number: str = "{:.3f}",
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
        per_trial: Success at each lag, shape ``(lags, trials)``.
        most: What no success can pass.
        number: The format of a success.
    """
    usable = np.flatnonzero(lags >= 0 if at_zero else lags > 0)
    if usable.size == 0:
        return Control(
            None,
            "No lag after 0 was measured, so nothing shows that this attack can find the canaries.",
        )
    first, later = usable[:1], usable[1:]
    shares = ((first, ERROR * (_FIRST if later.size else 1.0)), (later, ERROR * (1.0 - _FIRST)))
    value = per_trial.mean(axis=1)
    missed: list[tuple[float, int, float, float]] = []
    for which, share in shares:
        if which.size:
            tail = share / which.size
            bounds = lower(1.0 - tail)
            above = which[bounds[which] > chance]
            if above.size:
                lag = float(lags[above[0]])
                return Control(lag, f"The attack found the canaries at lag {lag:g}.")
            reach = np.maximum(value - bounds, np.finfo(np.float64).tiny)
            nearest = int(which[np.argmax((value - chance)[which] / reach[which])])
            near = float((value[nearest] - chance) / reach[nearest])
            missed.append((near, nearest, float(bounds[nearest]), tail))
    reason = (
        f"The attack did not find the canaries at any lag {'from' if at_zero else 'after'} 0, so "
        "not finding them later says nothing."
    )
    return Control(None, f"{reason}{_nearest(max(missed), lags, per_trial, chance, most, number)}")


def _nearest(
    missed: tuple[float, int, float, float],
    lags: Floats,
    per_trial: Floats,
    chance: float,
    most: float,
    number: str,
) -> str:
    """The lag that was nearest to being the control, and how many trainings would make it so."""
    _, lag, bound, tail = missed
    value, trials = float(per_trial[lag].mean()), per_trial.shape[1]
    if not value > chance:
        return ""
    said = (
        f" Nearest is lag {lags[lag]:g}: {number.format(value)}, at least {number.format(bound)} "
        f"({100.0 * (1.0 - tail):.4g}% bound), and chance is {number.format(chance)}."
    )
    needed = _trainings_needed(per_trial[lag], chance=chance, most=most, tail=tail)
    if needed is None:
        return said
    return f"{said} About {needed} trainings (here {trials}) would show it if the value holds."


def _trainings_needed(row: Floats, *, chance: float, most: float, tail: float) -> int | None:
    """How many trainings that differ as these do would bring the lower bound above chance.

    None for one training, for trainings that do not differ, and beyond a thousand.
    """
    spread = float(row.var(ddof=1)) / most**2 if row.size > 1 else 0.0
    share = float(row.mean()) / most
    if spread <= 1e-16 or not 0.0 < share < 1.0:
        return None
    wanted = row.size + 1
    while wanted <= 1000:
        inflation = upper_quantile(wanted, tail, "moderate") / float(stats.norm.isf(tail))
        size = np.array([share * (1.0 - share) * wanted / (spread * inflation**2)])
        if beta_ends(share * size, size, 1.0 - 2.0 * tail)[0][0] * most > chance:
            return wanted
        wanted = max(wanted + 1, math.ceil(1.02 * wanted))
    return None
