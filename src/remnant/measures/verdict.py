"""PASS, FAIL or INCONCLUSIVE: one limit, held against one operating point named beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from remnant.errors import InvalidInput
from remnant.measures.forgetting import ForgettingCurve
from remnant.measures.success import check_limit

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the interval says about a limit.

    Attributes:
        outcome: "PASS", "FAIL" or "INCONCLUSIVE".
        sentence: The same in plain words, with the numbers.
        limit: The success that may not be passed.
        lag: The lag that was judged.
    """

    outcome: Outcome
    sentence: str
    limit: float
    lag: float


def forgetting_verdict(curve: ForgettingCurve, limit: float) -> Verdict:
    """Judge the last lag of a curve, and no other.

    PASS when the whole interval is at or under ``limit``, FAIL when it is above, otherwise
    INCONCLUSIVE, with a rough number of trials that would settle it (widths shrink like one over
    the square root of their number). No lag is searched for: the first lag that looks safe is wrong
    far more often than the interval's confidence says.

    Raises:
        InvalidInput: ``limit`` is at or under chance (nothing can be shown to lie there), not under
            1, or the curve ends before planting.
    """
    check_limit(limit, chance=curve.chance, success=curve.success)
    lag = float(curve.lags[-1])
    if lag < 0:
        raise InvalidInput(f"the last lag, {lag:g}, lies before planting; there is no forgetting.")
    value, low, high = (float(ends[-1]) for ends in (curve.value, curve.low, curve.high))
    at = "" if curve.fpr is None else f" at FPR {curve.fpr:g}"
    found = (
        f"{lag:g} steps after the canaries were last seen, attack {curve.success}{at} is "
        f"{value:.3f} ({curve.confidence:.0%} interval {low:.3f} to {high:.3f})"
    )
    if high <= limit:
        return Verdict("PASS", f"{found}: all of it within the limit {limit:g}.", limit, lag)
    if low > limit:
        return Verdict("FAIL", f"{found}: all of it above the limit {limit:g}.", limit, lag)
    advice = _advice(curve, value=value, reach=(value - low, high - value), limit=limit)
    sentence = f"{found}: the limit {limit:g} lies inside it. {advice}"
    return Verdict("INCONCLUSIVE", sentence, limit, lag)


def _advice(
    curve: ForgettingCurve, *, value: float, reach: tuple[float, float], limit: float
) -> str:
    """How much more evidence would bring the nearer end of the interval to the limit."""
    gap = abs(value - limit)
    half = reach[0] if value > limit else reach[1]
    factor = math.inf if gap == 0.0 else (half / gap) ** 2
    end = "FAIL" if value > limit else "PASS"
    if factor > 1e4:
        return "The value is too near the limit for more trials to settle it; choose another limit."
    if curve.trials == 1:
        canaries = math.ceil(factor * min(curve.n_seen, curve.n_unseen) - 1e-9)
        more = f"About {canaries} canaries a side (here {min(curve.n_seen, curve.n_unseen)})"
        extra = "; one trial shows no error between models, so run several trials as well"
    else:
        needed = max(math.ceil(factor * curve.trials - 1e-9), curve.trials + 1)
        more = f"About {needed} trials (here {curve.trials})"
        extra = ""
    if end == "FAIL":
        return f"The value itself is above the limit. {more} would most likely make it FAIL{extra}."
    return f"{more} would make it PASS if the value holds{extra}."
