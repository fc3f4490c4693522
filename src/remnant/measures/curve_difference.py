"""Two forgetting curves whose trials are pairs: how far one lies above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.checks import check_share

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
        p_value: That the mean is this far from zero or farther, two-sided.
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
    p_value: float
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

    Args:
        curve, base: Of the same kind of success, in the same units, with as many trials.
        confidence: Of the intervals.

    Guarantees:
        * Exchanging the curves changes the sign of the difference and nothing else.
        * A curve less itself is zero, with a p-value of one.

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
        >>> found = curve_difference(more, base)
        >>> round(found.mean, 2), found.mean_low > 0
        (0.18, True)
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    for name in ("success", "fpr", "trials"):
        one, other = getattr(curve, name, None), getattr(base, name, None)
        if one != other:
            faults.append(f"the curves have {name} {one} and {other}")
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
    value, low, high, _ = _student(gaps, confidence)
    mean, mean_low, mean_high, p_value = _student(gaps[later].mean(axis=0)[None], confidence)
    return CurveDifference(
        lags=lags,
        value=value,
        low=low,
        high=high,
        mean=float(mean[0]),
        mean_low=float(mean_low[0]),
        mean_high=float(mean_high[0]),
        p_value=float(p_value[0]),
        confidence=float(confidence),
        trials=curve.trials,
        method=f"paired Student t over {curve.trials} trials",
    )


def _student(gaps: Floats, confidence: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, ends and two-sided p-value of rows of paired differences."""
    trials = gaps.shape[1]
    mean = gaps.mean(axis=1)
    error = gaps.std(axis=1, ddof=1) / np.sqrt(trials)
    reach = float(stats.t.ppf(0.5 + confidence / 2.0, trials - 1)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0.0, np.abs(mean) / error, np.where(mean == 0.0, 0.0, np.inf))
    return mean, mean - reach, mean + reach, np.asarray(2.0 * stats.t.sf(ratio, trials - 1))
