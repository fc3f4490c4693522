"""Record -> the view of a prediction run, every result checked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from remnant.records import Record
from remnant.report.fields import Fields
from remnant.report.prediction_view import (
    PREDICTORS,
    TRUTHS,
    Agreement,
    Check,
    Estimate,
    Flagged,
    KindTruth,
    Prediction,
    PredictionView,
    Protect,
    Quality,
    RiskySample,
    Roc,
    Stop,
    Truth,
)
from remnant.report.run_view import Results, run_fields


def read_prediction(record: Record) -> PredictionView:
    """Read the record of a prediction run into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    return PredictionView(
        **run_fields(record, results),
        prediction=results.read("prediction", _prediction),
        truth=results.read("truth", _truth),
        protect=results.read("protect", _protect),
    )


def _prediction(found: Mapping[str, Any]) -> Prediction:
    fields = Fields(found, name="prediction")
    rows = {
        key: tuple(_quality(row) for row in fields.each(key))
        for key in ("quality", "by_time", "by_layer", "by_threshold")
    }
    read = Prediction(
        models=fields.whole("models"),
        targets=fields.whole("targets"),
        layer=fields.text("layer"),
        confidence=_share(fields, "confidence"),
        tpr=_share(fields, "tpr"),
        smi=fields.number("smi"),
        stop=_stop(fields.inner("stop")),
        quality=tuple(sorted(rows["quality"], key=_place)),
        by_time=tuple(sorted(rows["by_time"], key=lambda row: (_place(row), row.epoch))),
        by_layer=tuple(sorted(rows["by_layer"], key=_place)),
        by_threshold=tuple(
            sorted(rows["by_threshold"], key=lambda row: (_place(row), row.threshold))
        ),
        kinds=tuple(_flagged(one) for one in fields.each("canaries")),
        forward_passes=fields.number_or_none("forward_passes"),
    )
    fields.check()
    return read


def _place(row: Quality) -> int:
    return PREDICTORS.index(row.predictor) if row.predictor in PREDICTORS else len(PREDICTORS)


def _stop(fields: Fields) -> Stop:
    at_step, at_epoch = fields.wholes("at_step"), fields.numbers("at_epoch")
    median, dropped = fields.numbers("median_loss"), fields.numbers("dropped_at")
    fields.same_length(at_step=at_step, at_epoch=at_epoch, median_loss=median, dropped_at=dropped)
    if any(later <= earlier for earlier, later in pairwise(at_epoch)):
        fields.note(".at_epoch", "do not rise")
    return Stop(
        step=fields.whole("step"),
        epoch=fields.number("epoch"),
        dropped=fields.number("dropped"),
        drop=_share(fields, "drop"),
        reached=fields.flag("reached"),
        steps=fields.whole("steps"),
        epochs=fields.number("epochs"),
        at_epoch=at_epoch,
        median_loss=median,
    )


def _quality(row: Fields) -> Quality:
    curve = row.inner("curve") if row.has("curve") else None
    return Quality(
        predictor=_one_of(row, "predictor", PREDICTORS),
        layer=row.text("layer"),
        step=row.whole("step"),
        epoch=row.number("epoch"),
        threshold=row.number("threshold"),
        n_memorised=row.whole("n_memorised"),
        n_others=row.whole("n_others"),
        base_rate=_share(row, "base_rate"),
        k=row.whole("k"),
        auc=_rate(row, "auc"),
        fpr_at_tpr=_rate(row, "fpr_at_tpr"),
        precision_at_k=_rate(row, "precision_at_k"),
        default_tpr=_rate(row, "default_tpr") if row.has("default_tpr") else None,
        default_fpr=_rate(row, "default_fpr") if row.has("default_fpr") else None,
        others=row.numbers("others"),
        roc=None if curve is None else _roc(curve),
    )


def _roc(curve: Fields) -> Roc:
    read = Roc(curve.numbers("fpr"), curve.numbers("tpr"))
    curve.same_length(fpr=read.fpr, tpr=read.tpr)
    for key, column in (("fpr", read.fpr), ("tpr", read.tpr)):
        rises = all(later >= earlier for earlier, later in pairwise(column))
        if not rises or column[:1] != (0.0,) or column[-1:] != (1.0,):
            curve.note(f".{key}", "does not rise from 0 to 1")
    return read


def _flagged(one: Fields) -> Flagged:
    return Flagged(
        kind=one.text("kind"),
        n=one.whole("n"),
        memorised=_share(one, "memorised"),
        flagged=_share(one, "flagged"),
        auc=_rate(one, "auc") if one.has("auc") else None,
    )


def _truth(found: Mapping[str, Any]) -> Truth:
    fields = Fields(found, name="truth")
    scatter = fields.inner("scatter")
    lira, counterfactual = scatter.numbers("lira"), scatter.numbers("counterfactual")
    scatter.same_length(lira=lira, counterfactual=counterfactual)
    if any(not 0 <= one <= 1 for one in lira):
        scatter.note(".lira", "holds what is no share between 0 and 1")
    read = Truth(
        models=fields.whole("models"),
        n=fields.whole("n"),
        signal=fields.text("signal"),
        convention=fields.text("convention"),
        threshold=fields.number("threshold"),
        memorised_share=_share(fields, "memorised_share"),
        flip_rate=_rate(fields, "flip_rate"),
        persistence=_share(fields, "persistence") if fields.has("persistence") else None,
        false_alarms=fields.numbers("false_alarms") if fields.has("false_alarms") else (),
        false_alarm_limit=(
            _share(fields, "false_alarm_limit") if fields.has("false_alarm_limit") else 1.0
        ),
        agreements=tuple(_agreement(one) for one in fields.each("agreement")),
        lira=lira,
        counterfactual=counterfactual,
        kinds=tuple(
            KindTruth(
                kind=one.text("kind"),
                n=one.whole("n"),
                lira=one.number("lira"),
                counterfactual=one.number("counterfactual"),
                rmia=one.number("rmia"),
            )
            for one in fields.each("by_kind")
        ),
    )
    fields.check()
    return read


def _agreement(one: Fields) -> Agreement:
    return Agreement(
        first=_one_of(one, "first", TRUTHS),
        second=_one_of(one, "second", TRUTHS),
        value=Estimate(one.number("value"), one.number("low"), one.number("high")),
    )


def _protect(found: Mapping[str, Any]) -> Protect:
    fields = Fields(found, name="protect")
    read = Protect(
        predictor=_one_of(fields, "predictor", PREDICTORS),
        miss=_share(fields, "miss"),
        confidence=_share(fields, "confidence"),
        stated=_share(fields, "stated"),
        share=_share(fields, "share"),
        listed=fields.whole("listed"),
        n=fields.whole("n"),
        runs=fields.whole("runs"),
        check=_check(fields.inner("check")) if fields.has("check") else None,
        samples=tuple(
            RiskySample(
                example=one.whole("example"),
                kind=one.text("kind"),
                label=one.whole("label"),
                risk=one.number("risk"),
                memorised=one.flag("memorised"),
            )
            for one in fields.each("samples")
        ),
    )
    fields.check()
    return read


def _check(fields: Fields) -> Check:
    held = fields.flag("held")
    read = Check(
        model=fields.whole("model"),
        memorised=fields.whole("memorised"),
        missed=fields.whole("missed"),
        rate=_rate(fields, "rate"),
        held=held,
        chance=_share(fields, "chance") if fields.has("chance") else None,
        refuted=fields.flag("refuted") if fields.has("refuted") else not held,
    )
    if read.missed > read.memorised:
        fields.note(".missed", "is more than were memorised")
    return read


def _one_of(fields: Fields, key: str, known: tuple[str, ...]) -> str:
    found = fields.text(key)
    if found not in known:
        fields.note(f".{key}", f"is none of {', '.join(known)}")
    return found


def _share(fields: Fields, key: str) -> float:
    found = fields.number(key)
    if not 0 <= found <= 1:
        fields.note(f".{key}", "is no share between 0 and 1")
    return found


def _rate(fields: Fields, key: str) -> Estimate:
    """A share with both ends, written as a list of three."""
    found = fields.numbers(key)
    if len(found) != 3:
        fields.note(f".{key}", f"has {len(found)} entries, not value, low and high")
        return Estimate(0.0, 0.0, 0.0)
    if any(not 0 <= one <= 1 for one in found):
        fields.note(f".{key}", "holds what is no share between 0 and 1")
    return Estimate(*found)
