"""A result on forgetting of text: read back as stored; what is damaged is named by its place."""

from __future__ import annotations

import dataclasses
import math

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.records.typed import Absent, load, plain, read_result, result_from
from remnant.studies.forgetting.sequence_result import ExposureCurveResult, TextForgettingResult
from remnant.studies.shared.curves import Unmeasured
from remnant.studies.shared.result_parts import LanguageTask


def test_every_part_is_read_back_as_it_was_stored(text_run):
    record = Record.open(text_run)
    stored = record.results()
    result = read_result(record, TextForgettingResult)
    names = {field.name for field in dataclasses.fields(result)}
    assert set(stored) - names == {"curve_variant1"}
    assert names - set(stored) == set()
    for name in names:
        part = getattr(result, name)
        assert not isinstance(part, Absent), name
        assert plain(part) == stored[name], name
        assert list(plain(part)) == list(stored[name]), "keys are in the stored order"
    assert isinstance(result.task, LanguageTask)


def test_the_curve_of_a_variant_is_a_curve_with_a_label(text_run):
    row = Record.open(text_run).results()["curve_variant1"]
    faults: list[str] = []
    curve = load(ExposureCurveResult, row, "curve_variant1", faults)
    assert faults == []
    assert (curve.label, curve.uses) == ("later", None)
    assert plain(curve) == row


def test_what_the_stored_columns_say(text_run):
    result = read_result(Record.open(text_run), TextForgettingResult)
    exposure = result.curve_exposure
    assert exposure.curve.label == "Mean exposure in bits"
    assert exposure.peak.value == max(exposure.value)
    assert exposure.ceiling == pytest.approx(math.log2(61))
    assert [label for label, _ in result.by_uses.curves] == ["seen once", "seen 6 times"]
    assert [series.uses for series in result.by_uses.series] == [1, 6]
    assert [curve.success for curve in result.attack_success] == [
        *("precision", "tpr", "auc", "accuracy")
    ]
    assert exposure.safe_reason == exposure.safe_after.reason


def test_records_of_version_0_2_have_one_calibration_and_no_median(changed, text_run):
    row = dict(Record.open(text_run).results()["curve_exposure"])
    del row["median"]
    record = changed(text_run, {"curve_exposure": row}, without={"calibrations"})
    result = read_result(record, TextForgettingResult)
    assert result.curve_exposure.median is None
    assert isinstance(result.calibrations, Absent)


def test_a_safe_lag_of_older_rules_is_not_shown(changed, text_run):
    old = {"outcome": "PASS", "sentence": "Why.", "limit": 3.0, "lag": 30}
    result = read_result(changed(text_run, {"verdict": old}), TextForgettingResult)
    assert result.verdict.outcome == "INCONCLUSIVE"
    assert result.curve_exposure.safe_after == Unmeasured(absent="not judged again")
    assert result.curve_exposure.safe_reason == (
        "From which lag on the limit holds is not shown: not judged again."
    )
    assert isinstance(result.by_uses.series[0].safe_after, Unmeasured)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("curve_exposure", {"ceiling": "high"}, "curve_exposure.ceiling is a str, no finite"),
        ("curve_exposure", {"n_canaries": None}, "curve_exposure.n_canaries is missing, no whole"),
        ("curve_exposure", {"saturated": [0.0]}, "saturated has 1 entries for 3 lags"),
        ("curve_exposure", {"safe_after": 3}, "curve_exposure.safe_after is an int, no object"),
        ("curve_exposure", {"lags": [3, 2, 1]}, "curve_exposure.lags do not rise"),
        ("curve_exposure", {"steps_to": {"few": 1.0}}, "steps_to has a level that is no number"),
        ("curve_exposure_aa", {"value": [True, 1.0]}, r"value\[0\] is a bool, no finite number"),
        ("curve_tpr", {"high": []}, "curve_tpr.high has 0 entries for 3 lags"),
        ("by_uses", {"series": []}, "by_uses.series is empty"),
        ("by_uses", {"title": None}, "by_uses.title is missing, no text"),
        ("compare", {"series": []}, "compare.series is empty"),
        ("traditional", {"lags": [0]}, "seen_accuracy has 3 entries for 1 lags"),
        ("task", {"validation_tokens": 1.5}, "task.validation_tokens is a float, no whole number"),
    ],
)
def test_what_is_damaged_is_named_by_its_place(changed, text_run, name, changes, words):
    row = Record.open(text_run).results()[name] | changes
    with pytest.raises(RecordError, match=f"holds a malformed result '{name}': .*{words}"):
        read_result(changed(text_run, {name: row}), TextForgettingResult)


def test_a_number_that_is_not_finite_is_refused_and_no_value_is_shown(text_run):
    row = Record.open(text_run).results()["curve_exposure"]
    parts = {"curve_exposure": row | {"chance": math.inf, "ceiling": "s3cret"}}
    with pytest.raises(RecordError, match=r"curve_exposure\.chance") as caught:
        result_from(parts, TextForgettingResult, where="a run")
    assert "s3cret" not in str(caught.value)
