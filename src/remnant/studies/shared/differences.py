"""A study's curve beside its variants', and how far they lie from it, as a record keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import ExposureCurve, ForgettingCurve
from remnant.measures.forgetting.curve_difference import TrialCurve, curve_difference
from remnant.measures.statistics.holm import holm
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.shared.compared_study import ComparedStudy
from remnant.studies.shared.curves import Comparison, Difference, NoDifference
from remnant.studies.shared.measured_curves import series_of

C = TypeVar("C", ForgettingCurve, ExposureCurve)


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
