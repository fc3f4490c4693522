"""Gone or only hidden? Attack success before and after a model was disturbed.

What an attack no longer finds may still be in the weights. So planted models and their unplanted
twins are disturbed alike (weight noise, a few steps on similar examples), and attacked again. The
reference is the twin *under the same disturbance*: what the disturbance itself does to scores, such
as learning from the similar examples, moves both sides and is not counted as memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.forgetting.curve import ForgettingCurve, forgetting_curve
from remnant.measures.statistics.checks import Success, read_floats
from remnant.measures.statistics.holm import holm

Floats = NDArray[np.float64]
Reading = Literal["comes back", "hidden", "still found", "not found"]
READINGS: tuple[Reading, ...] = ("comes back", "hidden", "still found", "not found")
_LEAST = 1e-9  # no p-value is given as smaller than this


@dataclass(frozen=True, slots=True, eq=False)
class HiddenTest:
    """What each disturbance brought to light; arrays have the shape ``(disturbances,)``.

    Attributes:
        before, before_low, before_high: Success on the undisturbed models.
        pvalue_before: That it is above chance; one-sided.
        after, after_low, after_high: Success on the disturbed ones, each interval for itself.
        rise, rise_low, rise_high: After less before, paired by trial.
        pvalues_after: That success after is above chance; one-sided, Holm over the disturbances.
        pvalues_rise: That it rose; one-sided, Holm over the disturbances.
        readings: "comes back": it rose, and is above chance. "hidden": above chance, and was not
            before; a rise as such is not shown. "still found": above chance before and after.
            "not found": not shown to be above chance after.
        success, fpr, chance, confidence: As in the curve; a p-value counts at 1 - ``confidence``.
        trials: Behind the tests.
        method: In words.
    """

    before: float
    before_low: float
    before_high: float
    pvalue_before: float
    after: Floats
    after_low: Floats
    after_high: Floats
    rise: Floats
    rise_low: Floats
    rise_high: Floats
    pvalues_after: Floats
    pvalues_rise: Floats
    readings: tuple[Reading, ...]
    success: Success
    fpr: float | None
    chance: float
    confidence: float
    trials: int
    method: str


def hidden_test(
    *,
    seen_before: ArrayLike,
    unseen_before: ArrayLike,
    seen_after: ArrayLike,
    unseen_after: ArrayLike,
    success: Success = "precision",
    fpr: float = 0.1,
    confidence: float = 0.95,
    rng: np.random.Generator,
    draws: int = 400,
    groups: Any = None,
) -> HiddenTest:
    """Compare attack success before and after each of several disturbances.

    Success and its intervals are those of ``forgetting_curve``, with canaries resampled alike
    before and after. Success above chance is tested by inverting that interval. The rise is tested
    by Student's t over the trials' own differences, so each trial is its own control; differences
    that agree to less than half a canary are taken to spread by that much.

    Args:
        seen_before, unseen_before: Shape ``(trials, canaries)``, higher = more likely seen.
        seen_after, unseen_after: Shape ``(disturbances, trials, canaries)``: under the same
            disturbance, planted models and their twins, or planted and never-planted examples.
        success, fpr, confidence, rng, draws, groups: As in ``forgetting_curve``.

    Guarantees:
        * Where nothing is to be found, any claim ("hidden", "comes back") is made with at most
          1 - ``confidence``, however many disturbances there are.
        * A strictly increasing map of all scores of one disturbance changes nothing.

    Raises:
        InvalidInput: Faults in arrays or settings.
        NotEnoughEvidence: Fewer than two trials, or too few unseen scores for the threshold.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> shift = np.array([0.0, 1.5])[:, None, None]
        >>> test = hidden_test(
        ...     seen_before=rng.normal(size=(8, 50)), unseen_before=rng.normal(size=(8, 50)),
        ...     seen_after=shift + rng.normal(size=(2, 8, 50)),
        ...     unseen_after=rng.normal(size=(2, 8, 50)), success="auc", rng=rng)
        >>> test.readings
        ('not found', 'comes back')
    """
    sides = [_stacked("seen", seen_before, seen_after)]
    sides.append(_stacked("unseen", unseen_before, unseen_after))
    if sides[0].shape[1] < 2:
        raise NotEnoughEvidence(
            "one trial cannot distinguish a rise from chance.", hint="Run at least two trials."
        )
    curve = forgetting_curve(
        seen_scores=sides[0],
        unseen_scores=sides[1],
        lags=np.arange(len(sides[0])),  # the slots: before, then each disturbance
        success=success,
        fpr=fpr,
        confidence=confidence,
        rng=rng,
        draws=draws,
        groups=groups,
    )
    above = above_chance(curve)
    differences = curve.per_trial[1:] - curve.per_trial[0]
    rise, reach, raw = _paired(differences, canaries=curve.n_seen, confidence=curve.confidence)
    after, rose = holm(above[1:]), holm(raw)
    alpha = 1.0 - curve.confidence + 1e-12
    return HiddenTest(
        before=float(curve.value[0]),
        before_low=float(curve.low[0]),
        before_high=float(curve.high[0]),
        pvalue_before=float(above[0]),
        after=curve.value[1:],
        after_low=curve.low[1:],
        after_high=curve.high[1:],
        rise=rise,
        rise_low=np.maximum(rise - reach, -1.0),
        rise_high=np.minimum(rise + reach, 1.0),
        pvalues_after=after,
        pvalues_rise=rose,
        readings=tuple(
            _reading(found=above[0] <= alpha, finds=now <= alpha, rises=up <= alpha)
            for now, up in zip(after, rose, strict=True)
        ),
        success=curve.success,
        fpr=curve.fpr,
        chance=curve.chance,
        confidence=curve.confidence,
        trials=curve.trials,
        method=f"{curve.method}; rises by paired Student t over trials; Holm over disturbances",
    )


def above_chance(curve: ForgettingCurve) -> Floats:
    """The one-sided p-value of "success is above chance" at each lag, from the interval itself.

    It is the smallest tail at which the interval's low end still clears chance; 1 where the value
    does not, and never under 1e-9.
    """

    def clears(tail: float) -> NDArray[np.bool_]:
        return np.asarray(curve.evidence.ends(1.0 - 2.0 * tail)[0] > curve.chance)

    p_values = np.where(clears(0.49), 0.49, 1.0)
    for lag in np.flatnonzero(p_values < 1.0):
        low, high = np.log(_LEAST), np.log(0.49)  # rejected at high, perhaps not at low
        while high - low > 0.01:
            middle = (low + high) / 2.0
            if clears(float(np.exp(middle)))[lag]:
                high = middle
            else:
                low = middle
        p_values[lag] = np.exp(high)
    return p_values


def _paired(
    differences: Floats, *, canaries: int, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Mean, half-width and one-sided p-value of differences of shape ``(tests, trials)``."""
    trials = differences.shape[1]
    mean = differences.mean(axis=1)
    spread = np.maximum(differences.std(axis=1, ddof=1), 0.5 / canaries)
    error = spread / np.sqrt(trials)
    half = stats.t.isf((1.0 - confidence) / 2.0, trials - 1) * error
    return mean, np.asarray(half), np.asarray(stats.t.sf(mean / error, trials - 1))


def _reading(*, found: bool, finds: bool, rises: bool) -> Reading:
    if not finds:
        return "not found"
    if rises:
        return "comes back"
    return "still found" if found else "hidden"


def _stacked(side: str, before: ArrayLike, after: ArrayLike) -> Floats:
    faults: list[str] = []
    first = read_floats(f"{side}_before", before, 2, faults)
    later = read_floats(f"{side}_after", after, 3, faults)
    if first is not None and later is not None and first.shape != later.shape[1:]:
        faults.append(
            f"{side}_after has {later.shape[1]} trials of {later.shape[2]} canaries, "
            f"{side}_before {first.shape[0]} of {first.shape[1]}"
        )
    require(faults)
    if first is None or later is None:
        raise InvalidInput(f"{side}_before and {side}_after must be arrays of numbers.")
    return np.concatenate([first[None], later])
