"""From measured curves, and how they differ, to what a record keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import ExposureCurve, ForgettingCurve
from remnant.measures.epsilon.heuristic import heuristic_epsilon
from remnant.measures.forgetting.curve_difference import TrialCurve, curve_difference
from remnant.measures.statistics.holm import holm
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.shared.curves import (
    Comparison,
    CurveResult,
    Difference,
    EpsilonColumns,
    NoDifference,
    Series,
    Unmeasured,
)
from remnant.studies.shared.variants import ComparedStudy

_LEVELS = (0.1, 0.2, 0.4)  # of the way from chance to 1
C = TypeVar("C", ForgettingCurve, ExposureCurve)


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


def put_comparison(
    record: Record,
    study: ComparedStudy,
    primary: C,
    variants: Iterable[tuple[str, C, Any]],
    **measure: Any,
) -> None:
    """Put each variant's curve into the record, and all of them beside the study's own.

    Args:
        record: Gets ``curve_NAME`` for each variant, and ``compare``.
        study: Whose variants they are.
        primary: The study's own curve.
        variants: Name, curve and stored curve of each variant, in the study's order.
        measure: ``success`` and ``chance`` of the comparison, where the curves lack them.
    """
    if not study.compare:
        put_parts(record, compare=Absent("the recipe compares nothing"))
        return
    curves: dict[str, C] = {}
    for variant, (name, curve, stored) in zip(study.compare, variants, strict=True):
        put_parts(record, **{f"curve_{name}": replace(stored, label=variant.label)})
        curves[variant.label] = curve
    series = {study.label: primary, **curves}
    put_parts(
        record,
        compare=Comparison(
            title=study.title,
            series=tuple(series_of(label, curve) for label, curve in series.items()),
            differences=curve_differences(curves, primary, confidence=study.attack.confidence),
            **measure,
        ),
    )


def curve_differences(
    variants: Mapping[str, TrialCurve], base: TrialCurve, *, confidence: float
) -> tuple[NoDifference | Difference, ...]:
    """How far each variant's curve lies above the study's own, p-values corrected for their number.

    Args:
        variants: Curves by label.
        base: The study's own.
        confidence: Of the intervals.
    """
    measured = [_difference(label, curve, base, confidence) for label, curve in variants.items()]
    p_values = {row.label: row.p_value for row in measured if isinstance(row, Difference)}
    known = {label: p_value for label, p_value in p_values.items() if p_value is not None}
    corrected = holm(list(known.values())) if known else ()
    adjusted = dict(zip(known, map(float, corrected), strict=True))
    return tuple(
        replace(row, adjusted_p_value=adjusted[row.label])
        if isinstance(row, Difference) and row.label in adjusted
        else row
        for row in measured
    )


def _difference(
    label: str, curve: TrialCurve, base: TrialCurve, confidence: float
) -> NoDifference | Difference:
    try:
        measured = curve_difference(curve, base, confidence=confidence)
    except (InvalidInput, NotEnoughEvidence) as fault:
        return NoDifference(label=label, absent=str(fault))
    return Difference(
        label=label,
        mean=measured.mean,
        mean_low=measured.mean_low,
        mean_high=measured.mean_high,
        p_value=measured.p_value,
        confidence=measured.confidence,
        method=measured.method,
    )
