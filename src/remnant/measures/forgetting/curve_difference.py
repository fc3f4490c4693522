"""Two forgetting curves whose trials are pairs: how far one lies above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share
from remnant.measures.statistics.sign_flips import no_difference_p_value

Floats = NDArray[np.float64]


class TrialCurve(Protocol):
    """A curve that was measured in several trials: of attack success, or of exposure."""

    @property
    def lags(self) -> Floats:
        """Steps since the canaries were last seen, rising."""
        ...

    @property
    def per_trial(self) -> Floats:
        """Shape ``(lags, trials)``."""
        ...

    @property
    def trials(self) -> int:
        """How many."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class CurveDifference:
    """One curve less another, trial by trial.

    Attributes:
        lags: Those that both curves have.
        value, low, high: The difference at each lag, with an interval for that lag alone.
        mean, mean_low, mean_high: Of the differences at all lags after lag 0, each lag counted
            once: on a grid that is finer at the near end this is nearly a mean over log lags.
        p_value: Of no difference in law between the two, two-sided; None under six trials.
        confidence: Of each interval.
        trials: Pairs.
        method: The interval's construction, in words.
    """

    lags: Floats
    value: Floats
    low: Floats
    high: Floats
    mean: float
    mean_low: float
    mean_high: float
    p_value: float | None
    confidence: float
    trials: int
    method: str


def curve_difference(
    curve: TrialCurve, base: TrialCurve, *, confidence: float = 0.95
) -> CurveDifference:
    r"""Compare two curves whose trial *i* has the same start and batch order.

    Each trial gives one difference; their mean has a Student t interval. Pairing takes out what the
    two trials of a pair have in common (the model they started from), so that the interval is often
    narrower than the curves' own would suggest. A mean is compared, not a speed: a curve that
    starts higher and one that falls more slowly both lie above.

    Differences that are all equal, such as those of curves that are saturated in every trial, show
    no spread. Student's t would then give an interval without a width and a p-value of 0. Instead,
    T trials that all agree leave room for a share of 1 - ((1 - confidence) / 2)^(1/T) of trials
    that do not, with differences as large as the curves' range allows: each end moves out by that
    share of the distance to the range's end.

    The p-value is that of an exact sign-flip test of the trials' mean differences, which holds for
    any law. It says that the curves differ, not that their means do: one training in ten that
    remembers, against none, is a difference too.

    Where the *difference* itself is skewed, Student's t covers less: 88 to 90 % of exponential
    differences, 82 to 84 % of lognormal ones, with 3 to 8 trials.

    Args:
        curve, base: Of the same kind of success, in the same units, with as many trials.
        confidence: Of the intervals.

    Guarantees:
        * Exchanging the curves changes the sign of the difference and nothing else.
        * A curve less itself is zero, with a p-value of one from six trials on.
        * No interval has a width of 0; no p-value is under 2^(1-trials).

    Raises:
        InvalidInput: Curves of another success, rate or number of trials, or without common lags.
        NotEnoughEvidence: Fewer than two trials.

    Example:
        >>> from remnant.measures import forgetting_curve
        >>> rng = np.random.default_rng(0)
        >>> seen = rng.normal(size=(3, 8, 50)) + np.array([3.0, 1.0, 0.5])[:, None, None]
        >>> unseen = rng.normal(size=(3, 8, 50))
        >>> made = {"lags": [0, 10, 20], "success": "auc", "rng": rng}
        >>> more = forgetting_curve(seen_scores=seen + 1.0, unseen_scores=unseen, **made)
        >>> base = forgetting_curve(seen_scores=seen, unseen_scores=unseen, **made)
        >>> gap = curve_difference(more, base)
        >>> round(gap.mean, 2), gap.mean_low > 0
        (0.18, True)
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    for name in ("success", "fpr", "trials"):
        own, other = getattr(curve, name, None), getattr(base, name, None)
        if own != other:
            faults.append(f"the curves have {name} {own} and {other}")
    lags = np.intersect1d(curve.lags, base.lags)
    if not np.any(lags >= 0):
        faults.append("the curves have no lag in common")
    require(faults, error=InvalidInput)
    if curve.trials < 2:
        raise NotEnoughEvidence(
            "one trial a curve shows no error between trials.", hint="Run two or more."
        )
    gaps = curve.per_trial[np.isin(curve.lags, lags)] - base.per_trial[np.isin(base.lags, lags)]
    later = lags > 0 if np.any(lags > 0) else lags >= 0
    # Rates have no ceiling of their own: they end at 1.
    ends = -float(getattr(base, "ceiling", 1.0)), float(getattr(curve, "ceiling", 1.0))
    value, low, high, alike = _student(gaps, ends, confidence)
    means = gaps[later].mean(axis=0)
    mean, mean_low, mean_high, same = _student(means[None], ends, confidence)
    method = f"paired Student t over {curve.trials} trials"
    if alike.any() or same.any():
        method += "; where all differences are equal, what so many trials exclude"
    return CurveDifference(
        lags=lags,
        value=value,
        low=low,
        high=high,
        mean=float(mean[0]),
        mean_low=float(mean_low[0]),
        mean_high=float(mean_high[0]),
        p_value=no_difference_p_value(means),
        confidence=float(confidence),
        trials=curve.trials,
        method=method,
    )


def _student(
    gaps: Floats, ends: tuple[float, float], confidence: float
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Mean and ends of rows of paired differences; rows that are all equal.

    Args:
        gaps: Shape ``(rows, trials)``.
        ends: The least and the most that a difference can be.
        confidence: Of the interval.
    """
    trials = gaps.shape[1]
    mean = gaps.mean(axis=1)
    error = gaps.std(axis=1, ddof=1) / np.sqrt(trials)
    alike = error <= 1e-12 * np.maximum(np.abs(gaps).max(axis=1), 1.0)
    tail = (1.0 - confidence) / 2.0
    reach = float(stats.t.isf(tail, trials - 1)) * error
    unseen = 1.0 - tail ** (1.0 / trials)
    least, most = np.minimum(ends[0], mean), np.maximum(ends[1], mean)
    low = np.where(alike, mean - unseen * (mean - least), mean - reach)
    high = np.where(alike, mean + unseen * (most - mean), mean + reach)
    return mean, low, high, alike
