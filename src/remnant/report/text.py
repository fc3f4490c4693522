"""The report in a few lines, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remnant.report.bars import BAR, columns, interval_table, ruler
from remnant.report.control_words import held_against, level_pvalue
from remnant.report.curve import SPACE, Curve, lag_text, require_curve
from remnant.report.decision_words import decision_line
from remnant.report.exposure_view import ExposureView
from remnant.report.exposure_words import exposure_text, extracted_text, mean_number
from remnant.report.feature_audit_view import FeatureAuditView
from remnant.report.feature_audit_words import audit_lines
from remnant.report.features_text import features_lines, features_table
from remnant.report.features_view import FeaturesView
from remnant.report.forgetting_view import Comparison, ForgettingView, Gap
from remnant.report.hidden_words import hidden_line
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    pvalue_text,
    times_text,
)
from remnant.report.one_run_text import one_run_lines, one_run_table
from remnant.report.one_run_view import OneRunView
from remnant.report.prediction_text import prediction_lines, prediction_table
from remnant.report.prediction_view import PredictionView
from remnant.report.run_view import NotMeasured
from remnant.report.text_forgetting_view import TextForgettingView
from remnant.report.training_text import training_lines, training_table
from remnant.report.training_view import TrainingView
from remnant.report.view import View
from remnant.report.words import gap_text, question, useless_line, verdict_lines


def summary_text(view: View | Sequence[View], *, report: str | Path | None = None) -> str:
    """The verdict, what it rests on, and where the report lies.

    Args:
        view: The run, or several; each of several says which it is.
        report: The HTML report's path, named in the last line.
    """
    views = view if isinstance(view, Sequence) else [view]
    blocks = ["\n".join(_summary(one, named=len(views) > 1)) for one in views]
    text = ("\n\n" if len(views) > 1 else "\n").join(
        [*blocks, *([] if report is None else [f"report: {report}"])]
    )
    return text.replace(SPACE, " ")


def detail_text(view: View) -> str:
    """The run's main numbers as a small table; empty where they were not measured."""
    if isinstance(view, ExposureView):
        return "" if isinstance(view.repeats, NotMeasured) else repeats_text(view)
    if isinstance(view, OneRunView):
        found = view.one_run
        text = "" if isinstance(found, NotMeasured) else one_run_table(found)
        return text.replace(SPACE, " ")
    if isinstance(view, TextForgettingView):
        shown = view.exposure
        return "" if isinstance(shown, NotMeasured) else _curve_table(shown.curve)
    if isinstance(view, PredictionView):
        return prediction_table(view.prediction).replace(SPACE, " ")
    if isinstance(view, FeaturesView):
        return features_table(view.features).replace(SPACE, " ")
    if isinstance(view, TrainingView):
        return training_table(view.training).replace(SPACE, " ")
    if isinstance(view, FeatureAuditView):
        return ""
    return "" if isinstance(view.curve, NotMeasured) else _curve_table(view.curve)


def repeats_text(view: ExposureView) -> str:
    """Mean exposure by how often canaries were planted, with a bar.

    ``●`` is the mean, ``┊`` chance.
    """
    levels = () if isinstance(view.repeats, NotMeasured) else view.repeats
    chance = None if isinstance(view.exposure, NotMeasured) else view.exposure.null_mean
    known = [0.0, *(v for v in (chance, *(row.told for row in levels)) if v is not None)]
    place = ruler(min(known), max(known))
    against = held_against(levels)
    head = ("planted", "n", "mean", "twin", "p-value")
    rows = [
        (
            "never" if level.repeats == 0 else count_text(level.repeats),
            count_text(level.n),
            mean_number(level),
            bits_number(level.twin_mean_bits),
            pvalue_text(level_pvalue(level, against)),
        )
        for level in levels
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    low, high = bits_number(min(known)), bits_number(max(known))
    lines = ["Exposure in bits", f"{columns(head, widths)}  {low}{high:>{BAR - len(low)}}"]
    for level, row in zip(levels, rows, strict=True):
        bar = [" "] * BAR
        if chance is not None:
            bar[place(chance)] = "┊"
        if level.told is not None:
            bar[place(level.told)] = "●"
        lines.append(f"{columns(row, widths)}  {''.join(bar)}".rstrip())
    if chance is not None:
        lines.append(f"┊ chance, {bits_text(chance)}")
    if against == "controls":
        lines.append("the controls have more than chance: p-values of canaries are against them")
    return "\n".join(lines).replace(SPACE, " ")


def curve_text(curve: Mapping[str, Any]) -> str:
    """A curve as a small table with a bar per lag.

    The bar runs from the lowest to the highest value shown: ``─`` is the interval, ``●`` the
    value, ``┊`` chance.

    Args:
        curve: The JSON form of a curve: ``lags``, ``value``, ``low``, ``high``, ``success``, ….

    Raises:
        InvalidInput: The curve is absent or malformed.
    """
    return _curve_table(require_curve(curve))


def _curve_table(found: Curve) -> str:
    rows = [((lag_text(point.lag),), point) for point in found.chosen(20)]
    return "\n".join(interval_table(found, ("lag",), rows)).replace(SPACE, " ")


def _summary(view: View, *, named: bool) -> list[str]:
    lines = verdict_lines(view)
    if named:
        lines.append(f"  run {view.name}, {question(view).lower()}")
    if isinstance(view, OneRunView):
        return lines + one_run_lines(view)
    if isinstance(view, TextForgettingView):
        return lines + _text_forgetting(view)
    if isinstance(view, PredictionView):
        return lines + prediction_lines(view)
    if isinstance(view, FeaturesView):
        return lines + features_lines(view)
    if isinstance(view, TrainingView):
        return lines + training_lines(view)
    if isinstance(view, FeatureAuditView):
        return lines + audit_lines(view)
    return lines + (_exposure(view) if isinstance(view, ExposureView) else _forgetting(view))


def _forgetting(view: ForgettingView) -> list[str]:
    if isinstance(view.curve, NotMeasured):
        lines = [f"  forgetting curve  not measured: {view.curve.reason}"]
    else:
        lines = _ends(view.curve)
    if isinstance(view.control, NotMeasured):
        lines.append(f"  A/A twins  not measured: {view.control.reason}")
    else:
        lines.append(f"  A/A twins, {_end(view.control)} (neither saw the canaries)")
    if not isinstance(view.never_planted, NotMeasured):
        lines.append(f"  never-planted canaries, {_end(view.never_planted)}")
    lines += _compared(view.comparison)
    lines.append(f"  {decision_line(view.decision)}")
    return [*lines, f"  {hidden_line(view.hidden, view.scan)}"]


def _compared(found: Comparison | NotMeasured) -> list[str]:
    """The variants of a run, each in a line."""
    if isinstance(found, NotMeasured):
        return []
    base = found.curves[0]
    lines = [f"  {found.title}; at the end, and above {base[0]!r} on average"]
    width = max(len(label) for label, _ in found.curves)
    gaps = {gap.label: gap for gap in found.gaps if isinstance(gap, Gap)}
    for label, curve in found.curves:
        line = f"    {label:<{width}}  {_at_end(curve)}"
        if label in gaps:
            gap = gaps[label]
            shown = pvalue_text(gap.p_value)
            line += (
                f"  {gap_text(gap, curve)}, p {shown if shown.startswith('<') else f'= {shown}'}"
            )
        lines.append(line)
    return lines


def _text_forgetting(view: TextForgettingView) -> list[str]:
    found, control = view.exposure, view.control
    if isinstance(found, NotMeasured):
        return [f"  exposure  not measured: {found.reason}"]
    lines = _ends(found.curve)
    if found.peak.lag not in (found.curve.start.lag, found.curve.end.lag):
        at, height = lag_text(found.peak.lag), found.curve.show(found.peak.value)
        lines.insert(2, f"    lag {at:>7}  {height}  the highest")
    if not isinstance(view.by_uses, NotMeasured):
        ends = "; ".join(f"{name} {_at_end(curve)}" for name, curve in view.by_uses.curves)
        lines.append(f"  at the end, by how often: {ends}")
    lines += _compared(view.comparison)
    if isinstance(control, NotMeasured):
        return [*lines, f"  A/A twins  not measured: {control.reason}"]
    return [*lines, f"  A/A twins, {_end(control.curve)} (neither saw the canaries)"]


def _at_end(curve: Curve) -> str:
    return curve.show(curve.end.value)


def _exposure(view: ExposureView) -> list[str]:
    useless = useless_line(view.task)
    return [*_exposed(view), *([f"  warning: {useless}"] if useless else [])]


def _exposed(view: ExposureView) -> list[str]:
    found = view.exposure
    if isinstance(found, NotMeasured):
        lines = [f"  exposure  not measured: {found.reason}"]
    else:
        lines = []
        highest, mean = found.highest, found.controls_mean
        if highest is not None:
            lines.append(
                f"  highest exposure of {counted(len(found.canaries), 'canary', 'canaries')}: "
                f"{exposure_text(highest)} of {bits_number(found.ceiling)} "
                f"({highest.name}, planted {times_text(highest.repeats)})"
            )
        if mean is not None:
            lines.append(
                f"  {counted(len(found.controls), 'control')}, mean: "
                f"{'at least ' if found.controls_at_least else ''}{bits_text(mean)} "
                f"(never planted; chance gives {bits_number(found.null_mean)})"
            )
    if isinstance(view.extraction, NotMeasured):
        return [*lines, f"  extraction  not measured: {view.extraction.reason}"]
    return [*lines, f"  {extracted_text(view)}"]


def _ends(curve: Curve) -> list[str]:
    chance = "" if curve.chance is None else f" (chance {curve.show(curve.chance)})"
    lines = [f"  {curve.label}{chance}"]
    for point in (curve.start, curve.end):
        interval = curve.show_interval(point)
        shown = f"  [{interval}]" if interval else ""
        lines.append(f"    lag {lag_text(point.lag):>7}  {curve.show(point.value)}{shown}")
    if curve.constructed is not None:
        lines.append(f"    lag       0  {curve.show(curve.constructed.value)}  by construction")
    return lines


def _end(curve: Curve) -> str:
    interval = curve.show_interval(curve.end)
    shown = f" [{interval}]" if interval else ""
    return f"lag {lag_text(curve.end.lag)}: {curve.show(curve.end.value)}{shown}"
