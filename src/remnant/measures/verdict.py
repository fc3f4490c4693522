"""PASS, FAIL or INCONCLUSIVE: one limit, held against one operating point named beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.exposure import FOUND
from remnant.measures.exposure_curve import SUCCESS, ExposureCurve
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
    advice = _advice(
        trials=curve.trials,
        canaries=min(curve.n_seen, curve.n_unseen),
        value=value,
        reach=(value - low, high - value),
        limit=limit,
    )
    sentence = f"{found}: the limit {limit:g} lies inside it. {advice}"
    return Verdict("INCONCLUSIVE", sentence, limit, lag)


def exposure_curve_verdict(curve: ExposureCurve, limit: float) -> Verdict:
    """Judge the mean exposure at the last lag of a curve, and at no other.

    PASS when the whole interval is at or under ``limit``, FAIL when it is above, otherwise
    INCONCLUSIVE. A canary that no reference was as cheap as counts with the ceiling, though it may
    have any more bits: where there are more of these than chance explains at 1 %, the mean is a
    lower bound and there is no PASS.

    Raises:
        InvalidInput: ``limit`` is at or under the null, not under the ceiling, or the curve ends
            before planting.
    """
    check_limit(limit, chance=curve.null, success=SUCCESS, most=curve.ceiling)
    lag = float(curve.lags[-1])
    if lag < 0:
        raise InvalidInput(f"the last lag, {lag:g}, lies before planting; there is no forgetting.")
    value, low, high = (float(ends[-1]) for ends in (curve.value, curve.low, curve.high))
    found = (
        f"{lag:g} steps after the canaries were last seen, their mean exposure is {value:.2f} bits "
        f"({curve.confidence:.0%} interval {low:.2f} to {high:.2f}; chance gives {curve.null:.2f})"
    )
    if low > limit:
        return Verdict("FAIL", f"{found}: all of it above the limit {limit:g}.", limit, lag)
    if high <= limit and more_saturated_than_chance(curve):
        sentence = (
            f"{found}: within the limit {limit:g}, but {curve.saturated[-1]:.1%} of the canaries "
            f"are cheaper than all {curve.n_references} references and may have any exposure from "
            f"{curve.ceiling:.1f} bits on. Draw more references."
        )
        return Verdict("INCONCLUSIVE", sentence, limit, lag)
    if high <= limit:
        return Verdict("PASS", f"{found}: all of it within the limit {limit:g}.", limit, lag)
    advice = _advice(
        trials=curve.trials,
        canaries=curve.n_canaries,
        value=value,
        reach=(value - low, high - value),
        limit=limit,
    )
    sentence = f"{found}: the limit {limit:g} lies inside it. {advice}"
    return Verdict("INCONCLUSIVE", sentence, limit, lag)


def more_saturated_than_chance(curve: ExposureCurve) -> bool:
    """Whether more canaries rank first at the last lag than chance explains at 1 %.

    How many of m canaries are cheaper than all of n references drawn alike has a tail under that of
    a geometric variable with ratio m/(n+m); trials add up to a negative binomial one.
    """
    count = round(float(curve.saturated[-1]) * curve.trials * curve.n_canaries)
    stays = curve.n_references / (curve.n_references + curve.n_canaries)
    return bool(stats.nbinom.sf(count - 1, curve.trials, stays) <= FOUND)


def _advice(
    *, trials: int, canaries: int, value: float, reach: tuple[float, float], limit: float
) -> str:
    """How much more evidence would bring the nearer end of the interval to the limit."""
    gap = abs(value - limit)
    half = reach[0] if value > limit else reach[1]
    factor = math.inf if gap == 0.0 else (half / gap) ** 2
    end = "FAIL" if value > limit else "PASS"
    if factor > 1e4:
        return "The value is too near the limit for more trials to settle it; choose another limit."
    if trials == 1:
        wanted = math.ceil(factor * canaries - 1e-9)
        more = f"About {wanted} canaries a side (here {canaries})"
        extra = "; one trial shows no error between models, so run several trials as well"
    else:
        needed = max(math.ceil(factor * trials - 1e-9), trials + 1)
        more = f"About {needed} trials (here {trials})"
        extra = ""
    if end == "FAIL":
        return f"The value itself is above the limit. {more} would most likely make it FAIL{extra}."
    return f"{more} would make it PASS if the value holds{extra}."
