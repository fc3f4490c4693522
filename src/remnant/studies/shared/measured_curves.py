"""From a measured curve to what a record keeps of it."""

from __future__ import annotations

from remnant.errors import InvalidInput
from remnant.measures import ExposureCurve, ForgettingCurve
from remnant.measures.epsilon.heuristic import heuristic_epsilon
from remnant.studies.shared.curves import CurveResult, EpsilonColumns, Series, Unmeasured

_LEVELS = (0.1, 0.2, 0.4)  # of the way from chance to 1


def curve_result(curve: ForgettingCurve) -> CurveResult:
    """A measured curve in its stored form."""
    chance, control = curve.chance, curve.positive_control()
    alphas = sorted({round(chance + (1 - chance) * share, 3) for share in _LEVELS})
    return CurveResult(
        success=curve.success,
        fpr=curve.fpr,
        confidence=curve.confidence,
        chance=chance,
        method=curve.method,
        trials=curve.trials,
        n_seen=curve.n_seen,
        n_unseen=curve.n_unseen,
        lags=tuple(curve.lags.tolist()),
        value=tuple(curve.value.tolist()),
        low=tuple(curve.low.tolist()),
        high=tuple(curve.high.tolist()),
        per_trial=tuple(tuple(row) for row in curve.per_trial.tolist()),
        steps_to={str(alpha): curve.steps_to(alpha) for alpha in alphas},
        smoothed=tuple(curve.smoothed().tolist()),
        epsilon=_epsilon(curve),
        found=control.found,
        found_at=control.lag,
    )


def series_of(label: str, curve: ForgettingCurve | ExposureCurve) -> Series:
    """A measured curve beside others, under its label."""
    return Series(
        label=label,
        lags=tuple(curve.lags.tolist()),
        value=tuple(curve.value.tolist()),
        low=tuple(curve.low.tolist()),
        high=tuple(curve.high.tolist()),
    )


def _epsilon(curve: ForgettingCurve) -> EpsilonColumns | Unmeasured:
    try:
        epsilon = heuristic_epsilon(curve)
    except InvalidInput as fault:
        return Unmeasured(absent=str(fault))
    return EpsilonColumns(value=epsilon.value, low=epsilon.low, high=epsilon.high)
