"""Which charts a prediction report has: operating points, time, layers, thresholds, the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remnant.report.curve import percent, short_percent
from remnant.report.figure import TONES, Figure, Size, figure_of
from remnant.report.numerals import count_text, counted
from remnant.report.prediction_numerals import (
    NAMES,
    epoch_text,
    epochs_text,
    estimate_text,
    rate_text,
    signed_text,
    threshold_text,
)
from remnant.report.prediction_view import (
    PREDICTORS,
    Prediction,
    PredictionView,
    Quality,
    Stop,
    Truth,
    lines_of,
)
from remnant.report.run_view import NotMeasured
from remnant.report.scale import lag_scale_kind
from remnant.report.shapes import Chart, Dot, Dots, Line, Rule, Stroke

_SQUARE = Size(430, 410, direct_labels=False)
_FLAT = Size(880, 240, direct_labels=True)
_LOW = Size(880, 340, direct_labels=True)
_WHOLE_RUN = ("lt_iqr", "early_lira")
_EPOCHS = "Epochs of training"


def prediction_figures(view: PredictionView, ident: str = "") -> dict[str, Figure | None]:
    """All charts of the view by name, None where there is nothing to draw."""
    found, truth = view.prediction, view.truth
    figures: dict[str, Figure | None] = dict.fromkeys(
        ("roc", "loss", "by_time", "by_layer", "by_threshold", "scatter")
    )
    if not isinstance(found, NotMeasured):
        if any(row.roc for row in found.quality):
            figures["roc"] = roc_figure(found, ident)
        if found.stop.at_epoch:
            figures["loss"] = loss_figure(found.stop, ident)
        if found.by_time:
            figures["by_time"] = time_figure(found, ident)
        if len(found.layers) > 3:
            figures["by_layer"] = layer_figure(found, ident)
        if len({row.threshold for row in found.by_threshold}) > 1:
            figures["by_threshold"] = threshold_figure(found, ident)
    if not isinstance(truth, NotMeasured) and truth.lira:
        figures["scatter"] = scatter_figure(truth, ident)
    return figures


def roc_figure(found: Prediction, ident: str = "") -> Figure:
    """Memorised samples found against others flagged, at every threshold of each predictor."""
    drawn = [(row, row.roc) for row in found.quality if row.roc is not None]
    lines = [
        Line(
            NAMES[row.predictor],
            tone_of(row.predictor),
            roc.fpr,
            roc.tpr,
            places="none",
            stroke=stroke_of(row.predictor),
        )
        for row, roc in drawn
    ]
    lines.append(Line("Guessing", "chance", (0.0, 1.0), (0.0, 1.0), places="none", stroke="dotted"))
    dots = [mine for row, _ in drawn if (mine := _default_dots(row)) is not None]
    chart = Chart(
        title="Memorised samples found against others flagged",
        description=" ".join(_quality_sentence(found, row) for row in found.quality),
        x_label="Others flagged (FPR)",
        y_label="Memorised found (TPR)",
        lines=tuple(lines),
        rules=(Rule(f"TPR {short_percent(found.tpr)}", "ceiling", found.tpr),),
        dots=tuple(dots),
        shares=True,
        x_form="share",
        x_word="FPR",
    )
    return figure_of(chart, f"{ident}roc", _SQUARE)


def loss_figure(stop: Stop, ident: str = "") -> Figure:
    """The median training loss, with the stop."""
    start, end = stop.median_loss[0], stop.median_loss[-1]
    aim = start * (1.0 - stop.drop)
    chart = Chart(
        title="Median training loss against epochs",
        description=(
            f"It goes from {start:.3g} at the start to {end:.3g} after "
            f"{epochs_text(stop.at_epoch[-1])}. The stop is after {epochs_text(stop.epoch)}."
        ),
        x_label=_epochs_label(stop.at_epoch),
        y_label="Median loss (nats)",
        lines=(Line("Median training loss", "main", stop.at_epoch, stop.median_loss),),
        rules=(Rule(f"{short_percent(stop.drop)} lower", "limit", aim),),
        mark=(stop.epoch, f"stop, {epoch_text(stop.epoch)}"),
        x_kind=lag_scale_kind(list(stop.at_epoch)),
        x_word="epoch",
        x_form="number",
    )
    return figure_of(chart, f"{ident}loss", _FLAT)


def time_figure(found: Prediction, ident: str = "") -> Figure:
    """AUC of the early predictors at every moment, with the stop."""
    epochs = tuple(sorted({0.0, *(row.epoch for row in found.by_time)}))
    stop = found.stop.epoch
    return _auc_figure(
        found.by_time,
        lambda row: row.epoch,
        f"{ident}by-time",
        title="AUC against epochs",
        x_label=_epochs_label(epochs),
        x_kind=lag_scale_kind(list(epochs)),
        x_word="epoch",
        mark=(stop, f"stop, {epoch_text(stop)}"),
        said=lambda row: f"after {epochs_text(row.epoch)}",
    )


def layer_figure(found: Prediction, ident: str = "") -> Figure:
    """AUC of what reads hidden states, layer by layer in their order."""
    places = {layer: float(i) for i, layer in enumerate(found.layers, start=1)}
    return _auc_figure(
        found.by_layer,
        lambda row: places[row.layer],
        f"{ident}by-layer",
        title="AUC against the layer",
        x_label=f"Layer, in the order of the table (1 is {found.layers[0]})",
        x_word="layer",
        x_ticks=tuple(places.values()),
        said=lambda row: f"at {row.layer}",
    )


def threshold_figure(found: Prediction, ident: str = "") -> Figure:
    """AUC against what counts as memorised."""
    return _auc_figure(
        found.by_threshold,
        lambda row: row.threshold,
        f"{ident}by-threshold",
        title="AUC against LiRA’s threshold",
        x_label="LiRA’s threshold (log ratio)",
        x_word="threshold",
        x_ticks=tuple(sorted({row.threshold for row in found.by_threshold})),
        said=lambda row: (
            f"at threshold {threshold_text(row.threshold)}, {count_text(row.n_memorised)} memorised"
        ),
    )


def scatter_figure(truth: Truth, ident: str = "") -> Figure:
    """Two truths about the same samples."""
    dots = tuple(
        Dot(x, y, f"LiRA {percent(y)}, counterfactual {signed_text(x)}")
        for x, y in zip(truth.counterfactual, truth.lira, strict=True)
    )
    chart = Chart(
        title="LiRA’s success rate against counterfactual memorization",
        description=(
            f"{counted(len(dots), 'sample')}. Counterfactual memorization from "
            f"{signed_text(min(truth.counterfactual))} to "
            f"{signed_text(max(truth.counterfactual))}, LiRA’s success rate from "
            f"{percent(min(truth.lira))} to {percent(max(truth.lira))}."
        ),
        x_label=f"Counterfactual memorization ({truth.signal.replace('_', ' ')})",
        y_label="LiRA’s success rate",
        dots=(Dots("One sample", "main", dots),),
        rules=(Rule(f"Guessing {percent(0.5, 0)}", "chance", 0.5),),
        shares=True,
        x_form="number",
    )
    return figure_of(chart, f"{ident}scatter", _SQUARE)


def tone_of(predictor: str) -> str:
    """A predictor's colour, the same in every chart."""
    place = PREDICTORS.index(predictor)
    return TONES[place] if place < len(TONES) else "control"


def stroke_of(predictor: str) -> Stroke:
    """Full for what can be asked at the stop of one run."""
    return "dashed" if predictor in _WHOLE_RUN else "full"


def _auc_figure(
    rows: tuple[Quality, ...],
    place: Callable[[Quality], float],
    ident: str,
    *,
    said: Callable[[Quality], str],
    **words: Any,
) -> Figure:
    """AUC with its bands, one line a predictor."""
    lines, told = [], []
    for predictor, mine in lines_of(rows).items():
        ends = [mine[0], *mine[-1:]] if len(mine) > 1 else [mine[0]]
        shown = ", ".join(f"{estimate_text(row.auc)} {said(row)}" for row in ends)
        told.append(f"{NAMES[predictor]}: {shown}.")
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
    chart = Chart(
        description=" ".join(told),
        y_label="AUC",
        lines=tuple(lines),
        rules=(Rule("Guessing 0.5", "chance", 0.5),),
        x_form="number",
        **words,
    )
    return figure_of(chart, ident, _LOW)


def _default_dots(row: Quality) -> Dots | None:
    found, flagged = row.default_tpr, row.default_fpr
    if found is None or flagged is None:
        return None
    name = f"{NAMES[row.predictor]} ≤ 0"
    tip = f"{name}: TPR {rate_text(found)}; FPR {rate_text(flagged)}"
    return Dots(name, "ceiling", (Dot(flagged.value, found.value, tip, found.low, found.high),))


def _quality_sentence(found: Prediction, row: Quality) -> str:
    return (
        f"{NAMES[row.predictor]}: AUC {estimate_text(row.auc)}; at a TPR of "
        f"{short_percent(found.tpr)} an FPR of {rate_text(row.fpr_at_tpr)}."
    )


def _epochs_label(epochs: tuple[float, ...]) -> str:
    return f"{_EPOCHS}, log scale" if lag_scale_kind(list(epochs)) == "symlog" else _EPOCHS
