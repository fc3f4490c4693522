"""A prediction report in a few lines, for a terminal."""

from __future__ import annotations

from remnant.report.bars import interval_table
from remnant.report.curve import Curve, Point, percent, short_percent
from remnant.report.numerals import count_text, counted
from remnant.report.prediction_numerals import (
    NAMES,
    ends_text,
    epoch_text,
    epochs_text,
    held_text,
    rate_ends,
)
from remnant.report.prediction_view import Prediction, PredictionView, Protect, Truth
from remnant.report.run_view import NotMeasured

_CHANCE = 0.5


def prediction_lines(view: PredictionView) -> list[str]:
    """The stop, what was memorised, every predictor at the stop, and the list."""
    return [
        *_predicted(view.prediction, view.truth),
        *_protected(view.protect),
    ]


def prediction_table(found: Prediction | NotMeasured) -> str:
    """AUC of every predictor at the stop with a bar; empty where it was not measured."""
    if isinstance(found, NotMeasured) or not found.quality:
        return ""
    rows = [
        ((NAMES[row.predictor],), Point(0.0, row.auc.value, row.auc.low, row.auc.high))
        for row in found.quality
    ]
    first = found.quality[0]
    curve = Curve(
        success="auc",
        points=tuple(point for _, point in rows),
        chance=_CHANCE,
        fpr=None,
        confidence=found.confidence,
        trials=None,
        n_seen=first.n_memorised,
        n_unseen=first.n_others,
        method=None,
        steps_to=(),
    )
    return "\n".join(interval_table(curve, ("predictor",), rows))


def _predicted(found: Prediction | NotMeasured, truth: Truth | NotMeasured) -> list[str]:
    memorised = [] if isinstance(truth, NotMeasured) else _memorised(truth)
    if isinstance(found, NotMeasured):
        return [f"  prediction  not measured: {found.reason}", *memorised]
    stop = found.stop
    never = "" if stop.reached else f"; {short_percent(stop.drop)} was never reached"
    lines = [
        f"  look after {epoch_text(stop.epoch)} of {epochs_text(stop.epochs)}: median loss down by "
        f"{percent(stop.dropped)}{never}",
        *memorised,
    ]
    if not found.quality:
        return lines
    lines.append(f"  AUC at the stop (guessing {_CHANCE:g}), FPR at TPR {short_percent(found.tpr)}")
    width = max(len(NAMES[row.predictor]) for row in found.quality)
    return lines + [
        f"    {NAMES[row.predictor]:<{width}}  {row.auc.value:.3f}  [{ends_text(row.auc)}]  "
        f"{percent(row.fpr_at_tpr.value):>6}  [{rate_ends(row.fpr_at_tpr)}]"
        for row in found.quality
    ]


def _memorised(truth: Truth) -> list[str]:
    return [
        f"  memorised in the end: {percent(truth.memorised_share)}; two of "
        f"{counted(truth.models, 'model')} disagree on {percent(truth.flip_rate.value)} "
        f"[{rate_ends(truth.flip_rate)}]"
    ]


def _protected(found: Protect | NotMeasured) -> list[str]:
    if isinstance(found, NotMeasured):
        return [f"  protect list  not measured: {found.reason}"]
    check = found.check
    lines = [
        f"  protect {count_text(found.listed)} of {counted(found.n, 'sample')} "
        f"({percent(found.share)}): stated to miss at most {percent(found.stated)} of what is "
        f"memorised, at {short_percent(found.confidence)} confidence"
    ]
    if check is None:
        return [*lines, "    no run was left to check it on"]
    return [
        *lines,
        f"    {held_text(check)} on another run: {count_text(check.missed)} of "
        f"{count_text(check.memorised)} missed, {percent(check.rate.value)} "
        f"[{rate_ends(check.rate)}]",
    ]
