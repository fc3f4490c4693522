"""A forgetting result: read back as it was stored; what is damaged is named by its place."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import get_args

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.measures import forgetting_curve
from remnant.measures.forgetting.residual_memory import READINGS
from remnant.records import Record
from remnant.records.typed import Absent, load, plain, read_result, result_from
from remnant.studies.forgetting.result import ForgettingResult
from remnant.studies.residual_memory.result import Reading
from remnant.studies.shared.curves import (
    Comparison,
    CurveResult,
    Difference,
    NoDifference,
    Series,
    Traditional,
    Unmeasured,
)
from remnant.studies.shared.measured_curves import curve_result


def test_every_part_is_read_back_as_it_was_stored(whole_run):
    record = Record.open(whole_run)
    stored = record.results()
    result = read_result(record, ForgettingResult)
    names = {field.name for field in dataclasses.fields(result)}
    assert names - set(stored) == {"curve_precision"}, "the study's own measure is the curve"
    others = {"format", "curve_variant1", "curve_variant2"}
    assert {name for name in stored if name not in names} == others
    for name in names & set(stored):
        part = getattr(result, name)
        if name == "curve_by_references":
            assert part == Absent("it is the study’s own")
            continue
        assert not isinstance(part, Absent), name
        assert plain(part) == stored[name], name
        assert list(plain(part)) == list(stored[name]), "keys are in the stored order"


def test_the_curve_of_a_variant_is_a_curve_with_a_label(whole_run):
    row = Record.open(whole_run).results()["curve_variant1"]
    faults: list[str] = []
    curve = load(CurveResult, row, "curve_variant1", faults)
    assert faults == []
    assert curve.label == "three times"
    assert plain(curve) == row
    assert next(iter(row)) == "label"
    assert list(row)[-1] == "traditional"


def test_what_was_not_measured_is_a_reason(poison_run):
    result = read_result(Record.open(poison_run), ForgettingResult)
    assert result.curve_by_checkpoint == Absent("POISON has no checkpoint before planting")
    assert result.curve_by_references == Absent("it is the study’s own")
    assert result.compare == Absent("the recipe compares nothing")
    assert result.hidden == Absent(
        "the recipe has no [hidden] section: no weight noise, no relearning"
    )
    assert list(result.other_measures) == ["precision", "tpr", "accuracy"]
    assert isinstance(result.curve.epsilon, Unmeasured), "AUC has no heuristic epsilon"
    assert result.curve.shown().epsilon == ()


def test_a_run_without_a_curve_lists_the_measures_that_need_one(changed, whole_run):
    record = changed(whole_run, absent={"curve": "no time"})
    result = read_result(record, ForgettingResult)
    assert result.curve == Absent("no time")
    assert list(result.other_measures) == ["tpr", "auc", "accuracy"]


def test_an_outcome_of_older_rules_is_not_judged_again(changed, whole_run):
    old = {"outcome": "PASS", "sentence": "Why.", "limit": 0.65, "lag": 20}
    result = read_result(changed(whole_run, {"verdict": old}), ForgettingResult)
    assert result.verdict.outcome == "INCONCLUSIVE"
    assert result.decision == Absent("not judged again")


def test_readings_are_those_of_the_measure():
    assert get_args(Reading) == READINGS


def _without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def test_columns_that_older_records_lack_are_not_needed(whole_run):
    row = _without(
        Record.open(whole_run).results()["curve"],
        *("low", "high", "per_trial", "steps_to", "smoothed", "epsilon", "n_seen", "method"),
    )
    curve = result_from({"curve": row}, ForgettingResult, where="a run").curve
    shown = curve.shown()
    assert (shown.end.low, shown.smoothed, shown.epsilon, shown.steps_to) == (None, (), (), ())
    assert curve.low is None


DAMAGED = [
    ("curve", {"lags": None}, "curve.lags is missing, no list"),
    ("curve", {"value": ["x"]}, r"curve.value\[0\] is a str, no finite number"),
    ("curve", {"value": [0.5]}, "curve.value has 1 entries for 13 lags"),
    ("curve", {"low": [0.5]}, "curve.low has 1 entries for 13 lags"),
    ("curve", {"smoothed": []}, "curve.smoothed has 0 entries for 13 lags"),
    ("curve", {"per_trial": []}, "curve.per_trial has 0 entries"),
    ("curve", {"lags": [9.0, *range(12)]}, "curve.lags do not rise"),
    ("curve", {"lags": [], "value": []}, "curve.lags is empty"),
    ("curve", {"epsilon": {"value": []}}, "curve.epsilon.low is missing, no list"),
    ("curve", {"steps_to": {"half": 3.0}}, "curve.steps_to has a level that is no number"),
    ("curve", {"steps_to": {"0.5": "soon"}}, "curve.steps_to.0.5 is a str, no finite number"),
    ("curve_aa", {"trials": -1}, "curve_aa.trials is an int, no whole number from 0"),
    ("traditional", {"seen_loss": [1.0]}, "traditional.seen_loss has 1 entries for 13 lags"),
    (
        "traditional",
        dict.fromkeys(("seen_accuracy", "seen_loss", "unseen_accuracy", "unseen_loss")),
        "traditional has neither accuracy nor loss",
    ),
    ("compare", {"series": []}, "compare.series is empty"),
    ("compare", {"series": [{"label": "x", "lags": [0]}]}, r"compare.series\[0\].value is missing"),
    ("decision", {"limit": "much"}, "decision.limit is a str, no finite number"),
    ("decision", {"safe_after": {"lag": "soon", "reason": ""}}, "decision.safe_after.lag is a str"),
    ("decision", {"decay": {"law": "power"}}, "decision.decay.shown is missing"),
    (
        "decision",
        {
            "decay": {"absent": "no"},
            "forecast": {"value": None, "low": None, "high": None, "beyond": True},
        },
        "decision has a decay without a forecast",
    ),
    ("hidden", {"disturbances": []}, "hidden.disturbances is empty"),
    ("hidden", {"before": "x"}, "hidden.before is a str, no finite number"),
    ("hidden", {"disturbances": [{"kind": "heat"}]}, r"hidden.disturbances\[0\].kind is not one"),
    ("returning", {"lost": None}, "returning.lost is missing, no whole number from 0"),
    ("task", {"test_accuracy": "high"}, "task.test_accuracy is a str, no finite number"),
    ("verdict", {"outcome": "MAYBE"}, "verdict.outcome is not one of 'PASS', 'FAIL'"),
]


@pytest.mark.parametrize(("name", "changes", "words"), DAMAGED)
def test_what_is_damaged_is_named_by_its_place(changed, whole_run, name, changes, words):
    row = Record.open(whole_run).results()[name] | changes
    with pytest.raises(RecordError, match=f"holds a malformed result '{name}': .*{words}"):
        read_result(changed(whole_run, {name: row}), ForgettingResult)


def test_a_number_that_is_not_finite_is_refused_and_no_value_is_shown(whole_run):
    row = Record.open(whole_run).results()["curve"]
    parts = {"curve": row | {"chance": math.nan, "method": 4711, "fpr": "s3cret"}}
    with pytest.raises(RecordError) as caught:
        result_from(parts, ForgettingResult, where="a run")
    for place in ("curve.chance", "curve.method", "curve.fpr"):
        assert place in str(caught.value), "all faults at once"
    assert "s3cret" not in str(caught.value)
    assert "4711" not in str(caught.value)


def test_all_faults_of_several_fields_are_listed():
    with pytest.raises(InvalidInput) as caught:
        CurveResult(lags=(0.0, 2.0, 1.0), value=(0.5, 0.5, None), low=(1.0,))
    assert str(caught.value) == ".lags do not rise; .low has 1 entries for 3 lags"


def test_a_measured_curve_holds_the_numbers_of_its_measure():
    rng = np.random.default_rng(0)
    measured = forgetting_curve(
        seen_scores=rng.normal(1.0, size=(3, 4, 40)),
        unseen_scores=rng.normal(size=(3, 4, 40)),
        lags=[0, 5, 10],
        rng=rng,
    )
    curve = curve_result(measured)
    assert curve.value == tuple(measured.value.tolist())
    assert curve.per_trial == tuple(map(tuple, measured.per_trial.tolist()))
    assert list(curve.steps_to) == ["0.55", "0.6", "0.7"]
    assert json.loads(json.dumps(plain(curve))) == plain(curve)
    shown = curve.shown(by_construction=True)
    assert (shown.start.lag, shown.end.lag, shown.constructed.lag) == (5.0, 10.0, 0.0)
    assert [level for level, _ in shown.steps_to] == [0.7, 0.6, 0.55], "the highest first"


def test_compared_curves_have_the_measure_of_the_study():
    series = (Series(label="a", lags=(0.0, 1.0), value=(0.9, 0.6)),)
    gaps = (
        NoDifference(label="b", absent="one trial a curve."),
        Difference(label="c", mean=0.1, mean_low=0.0, mean_high=0.2),
    )
    compared = Comparison(series=series, differences=gaps)
    primary = CurveResult(success="tpr", fpr=0.1, chance=0.1, lags=(0.0,), value=(0.5,)).shown()
    ((label, curve),) = compared.curves(primary)
    assert (label, curve.success, curve.chance, curve.fpr) == ("a", "tpr", 0.1, 0.1)
    assert compared.curves(None)[0][1].success == "attack success"
    own = dataclasses.replace(compared, success="exposure", chance=1.4)
    assert own.curves(primary)[0][1].chance == 1.4
    assert [gap.reason for gap in compared.unknown] == ["b: one trial a curve"]
    assert compared.known["c"].ends.high == 0.2


def test_accuracy_and_loss_have_a_row_a_lag():
    found = Traditional(lags=(0.0, 1.0), seen_loss=(1.0, 2.0), unseen_accuracy=(0.5, None))
    assert [dataclasses.astuple(row) for row in found.rows] == [
        (0.0, None, 1.0, 0.5, None),
        (1.0, None, 2.0, None, None),
    ]
