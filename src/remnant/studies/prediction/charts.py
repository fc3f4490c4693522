"""The charts of a prediction page: operating points, time, layers, thresholds, the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remnant.report.charts.figure import TONES
from remnant.report.charts.scale import lag_scale_kind
from remnant.report.charts.shapes import Chart, Dot, Dots, Flag, Line, Rule, Stroke
from remnant.report.numerals import (
    count_text,
    counted,
    epoch_text,
    epochs_text,
    percent,
    short_percent,
)
from remnant.studies.prediction.result import (
    PREDICTORS,
    EarlyStop,
    Memorisation,
    Predictor,
    PredictorComparison,
    PredictorQuality,
    by_predictor,
)
from remnant.studies.prediction.sentences import NAMES, NEEDS_MORE, signed_text, threshold_text
from remnant.studies.shared.estimates import estimate_text, rate_text

CHANCE = 0.5
_LOW_FPRS = (0.01, 0.001)
_EPOCHS = "Epochs of training"
_LAYERS_IN_A_TABLE = 3


def roc_chart(comparison: PredictorComparison) -> Chart | None:
    """Memorised samples found against others flagged, at every threshold of each predictor."""
    rows = comparison.at_stop
    drawn = [(row, row.curve) for row in rows if row.curve is not None]
    if not drawn:
        return None
    lines = [
        Line(
            NAMES[row.predictor],
            tone_of(row.predictor),
            curve.fpr,
            curve.tpr,
            places="none",
            stroke=stroke_of(row.predictor),
        )
        for row, curve in drawn
    ]
    at = drawn[0][1].fpr
    lines.append(Line("Guessing", "chance", at, at, places="none", stroke="dotted"))
    dots = [mine for row, _ in drawn if (mine := _default_dots(row)) is not None]
    first = drawn[0][0]
    return Chart(
        title="Memorised samples found against others flagged",
        description=f"{' '.join(_quality_sentence(comparison, row) for row in rows)} "
        f"{low_fpr_sentence(first)}",
        x_label="Others flagged (FPR), log scale",
        y_label="Memorised found (TPR), log scale",
        lines=tuple(lines),
        rules=(Rule(f"TPR {short_percent(comparison.tpr)}", "ceiling", comparison.tpr),),
        dots=tuple(dots),
        flags=tuple(
            Flag(fpr, f"FPR {short_percent(fpr)}", "control", _found_sentence(first, fpr))
            for fpr in _LOW_FPRS
            if first.n_others * fpr >= 1
        ),
        shares=True,
        y_kind="log",
        x_kind="log",
        x_form="share",
        x_word="FPR",
    )


def low_fpr_sentence(row: PredictorQuality) -> str:
    """What a predictor finds at FPR 1 % and 0.1 %, or why that is not known."""
    return " ".join(_found_sentence(row, fpr) for fpr in _LOW_FPRS)


def _found_sentence(row: PredictorQuality, fpr: float) -> str:
    if row.curve is None or row.n_others * fpr < 1:
        return (
            f"FPR {short_percent(fpr)} is not shown: it takes {count_text(round(1 / fpr))} others, "
            f"and there are {count_text(row.n_others)}."
        )
    points = zip(row.curve.fpr, row.curve.tpr, strict=True)
    found = max((tpr for at, tpr in points if at <= fpr), default=0.0)
    return f"{NAMES[row.predictor]} finds {percent(found)} at FPR {short_percent(fpr)}."


def loss_chart(stop: EarlyStop) -> Chart | None:
    """The median training loss, with the stop."""
    if not stop.at_epoch:
        return None
    start, end = stop.median_loss[0], stop.median_loss[-1]
    return Chart(
        title="Median training loss against epochs",
        description=(
            f"It goes from {start:.3g} at the start to {end:.3g} after "
            f"{epochs_text(stop.at_epoch[-1])}. The stop is after {epochs_text(stop.epoch)}."
        ),
        x_label=_epochs_label(stop.at_epoch),
        y_label="Median loss (nats)",
        lines=(Line("Median training loss", "main", stop.at_epoch, stop.median_loss),),
        rules=(Rule(f"{short_percent(stop.drop)} lower", "limit", start * (1.0 - stop.drop)),),
        mark=(stop.epoch, f"stop, {epoch_text(stop.epoch)}"),
        x_kind=lag_scale_kind(list(stop.at_epoch)),
        x_word="epoch",
        x_form="number",
    )


def time_chart(comparison: PredictorComparison) -> Chart | None:
    """AUC of the early predictors at every moment, with the stop."""
    rows = comparison.moments
    if not rows:
        return None
    epochs = tuple(sorted({0.0, *(row.epoch for row in rows)}))
    stop = comparison.stop.epoch
    return _auc_chart(
        rows,
        lambda row: row.epoch,
        title="AUC against epochs",
        x_label=_epochs_label(epochs),
        x_kind=lag_scale_kind(list(epochs)),
        x_word="epoch",
        mark=(stop, f"stop, {epoch_text(stop)}"),
        place_text=lambda row: f"after {epochs_text(row.epoch)}",
    )


def layer_chart(comparison: PredictorComparison) -> Chart | None:
    """AUC of the predictors that use hidden states, by layer; a few layers need only a table."""
    layers = comparison.layers
    if len(layers) <= _LAYERS_IN_A_TABLE:
        return None
    places = {layer: float(i) for i, layer in enumerate(layers, start=1)}
    return _auc_chart(
        comparison.by_layer,
        lambda row: places[row.layer],
        title="AUC against the layer",
        x_label=f"Layer, in the order of the table (1 is {layers[0]})",
        x_word="layer",
        x_ticks=tuple(places.values()),
        place_text=lambda row: f"at {row.layer}",
    )


def threshold_chart(comparison: PredictorComparison) -> Chart | None:
    """AUC against what counts as memorised."""
    if len(comparison.thresholds) < 2:
        return None
    return _auc_chart(
        tuple(sorted(comparison.by_threshold, key=lambda row: row.threshold)),
        lambda row: row.threshold,
        title="AUC against LiRA’s threshold",
        x_label="LiRA’s threshold (log ratio)",
        x_word="threshold",
        x_ticks=comparison.thresholds,
        place_text=lambda row: (
            f"at threshold {threshold_text(row.threshold)}, {count_text(row.n_memorised)} memorised"
        ),
    )


def scatter_chart(truth: Memorisation) -> Chart | None:
    """Two measures of memorisation for the same samples."""
    rates, effects = truth.scatter.lira, truth.scatter.counterfactual
    if not rates:
        return None
    dots = tuple(
        Dot(x, y, f"LiRA {percent(y)}, counterfactual {signed_text(x)}")
        for x, y in zip(effects, rates, strict=True)
    )
    return Chart(
        title="LiRA’s success rate against counterfactual memorization",
        description=(
            f"{counted(len(dots), 'sample')}. Counterfactual memorization from "
            f"{signed_text(min(effects))} to {signed_text(max(effects))}, LiRA’s success rate from "
            f"{percent(min(rates))} to {percent(max(rates))}."
        ),
        x_label=f"Counterfactual memorization ({truth.signal.replace('_', ' ')})",
        y_label="LiRA’s success rate",
        dots=(Dots("One sample", "main", dots),),
        rules=(Rule(f"Guessing {percent(CHANCE, 0)}", "chance", CHANCE),),
        shares=True,
        x_form="number",
    )


def tone_of(predictor: Predictor) -> str:
    """A predictor's colour, the same in every chart."""
    place = PREDICTORS.index(predictor)
    return TONES[place] if place < len(TONES) else "control"


def stroke_of(predictor: str) -> Stroke:
    """A full line for what is known at the stop of one run."""
    return "dashed" if predictor in NEEDS_MORE else "full"


def _auc_chart(
    rows: tuple[PredictorQuality, ...],
    place: Callable[[PredictorQuality], float],
    *,
    place_text: Callable[[PredictorQuality], str],
    **words: Any,
) -> Chart:
    """AUC with its bands, one line a predictor."""
    lines, sentences = [], []
    for predictor, mine in by_predictor(rows).items():
        ends = [mine[0], mine[-1]] if len(mine) > 1 else [mine[0]]
        shown = ", ".join(f"{estimate_text(row.auc)} {place_text(row)}" for row in ends)
        sentences.append(f"{NAMES[predictor]}: {shown}.")
        lines.append(
            Line(
                NAMES[predictor],
                tone_of(predictor),
                tuple(place(row) for row in mine),
                tuple(row.auc.value for row in mine),
                tuple(row.auc.low for row in mine),
                tuple(row.auc.high for row in mine),
            )
        )
    return Chart(
        description=" ".join(sentences),
        y_label="AUC",
        lines=tuple(lines),
        rules=(Rule(f"Guessing {CHANCE:g}", "chance", CHANCE),),
        x_form="number",
        **words,
    )


def _default_dots(row: PredictorQuality) -> Dots | None:
    """The operating point of the predictor's own threshold; None where it has none."""
    tpr, fpr = row.default_tpr, row.default_fpr
    if tpr is None or fpr is None:
        return None
    name = f"{NAMES[row.predictor]} ≤ 0"
    tip = f"{name}: TPR {rate_text(tpr)}; FPR {rate_text(fpr)}"
    return Dots(name, "ceiling", (Dot(fpr.value, tpr.value, tip, tpr.low, tpr.high),))


def _quality_sentence(comparison: PredictorComparison, row: PredictorQuality) -> str:
    return (
        f"{NAMES[row.predictor]}: AUC {estimate_text(row.auc)}; at a TPR of "
        f"{short_percent(comparison.tpr)} an FPR of {rate_text(row.fpr_at_tpr)}."
    )


def _epochs_label(epochs: tuple[float, ...]) -> str:
    return f"{_EPOCHS}, log scale" if lag_scale_kind(list(epochs)) == "symlog" else _EPOCHS
