r"""Epsilon as the forgetting paper reads it off an attack: a heuristic, not a bound.

A mechanism that is (ε, 0)-differentially private keeps every attack's TPR under e^ε FPR, so an
attack shows ε >= ln(TPR / FPR). The paper (after Zanella-Béguelin et al.) reports this ratio of the
measured rates as "the" ε of a lag: ln(p / (1 - p)) for a precision p at balanced classes. It is one
attack at one threshold, the mean over trials, with δ = 0: a way to compare curves in a known unit.
It is neither an upper bound (a better attack shows more) nor, at the estimate, a lower one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput
from remnant.measures.forgetting.curve import ForgettingCurve

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeuristicEpsilon:
    """The heuristic ε of every lag, in nats.

    Attributes:
        value: Read off the curve's value; None where the ratio is infinite or undefined (a
            precision of 1 or 0, a TPR of 0). Negative where the attack does worse than guessing,
            which is noise and is not hidden.
        low, high: Read off the ends of its interval, None likewise. The map is increasing, so the
            interval holds with the curve's own confidence.
    """

    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


def heuristic_epsilon(curve: ForgettingCurve) -> HeuristicEpsilon:
    """Read ln(TPR / FPR) off a curve of precision or of TPR.

    Guarantees:
        * Chance is 0; an increasing map, so that ``low <= value <= high`` where all are there.
        * Nothing infinite or undefined is given as a number.

    Raises:
        InvalidInput: The curve is one of accuracy or AUC, which have no TPR and FPR.

    Example:
        >>> from remnant.measures import forgetting_curve
        >>> rng = np.random.default_rng(0)
        >>> curve = forgetting_curve(
        ...     seen_scores=1.0 + rng.normal(size=(1, 5, 100)),
        ...     unseen_scores=rng.normal(size=(1, 5, 100)), lags=[0], rng=rng)
        >>> curve.value.round(3).tolist(), round(heuristic_epsilon(curve).value[0], 2)
        ([0.811], 1.46)
    """
    if curve.success not in ("precision", "tpr"):
        raise InvalidInput(
            f"a curve of {curve.success} has no TPR and FPR to take the ratio of.",
            hint="Measure precision or tpr.",
        )
    fpr = 0.0 if curve.success == "precision" or curve.fpr is None else curve.fpr

    def read(rates: Floats) -> tuple[float | None, ...]:
        return tuple(_log_ratio(float(rate), fpr) for rate in rates)

    return HeuristicEpsilon(read(curve.value), read(curve.low), read(curve.high))


def _log_ratio(rate: float, fpr: float) -> float | None:
    """``ln(rate / fpr)``, or of a precision's odds where there is no ``fpr``."""
    against = fpr if fpr > 0.0 else 1.0 - rate
    return math.log(rate / against) if rate > 0.0 and against > 0.0 else None
