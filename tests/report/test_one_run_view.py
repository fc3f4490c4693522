"""A one-run record is read whole; what is missing is a reason, what is malformed is named."""

from __future__ import annotations

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, read_views
from remnant.report.exposure_view import ExposureView
from remnant.report.forgetting_view import ForgettingView
from remnant.report.one_run_view import OneRunView
from remnant.report.run_view import NotMeasured, Task

ROWS = 18
COLUMNS = (
    *("lags", "success", "low", "high", "effect", "effect_low", "effect_high"),
    *("cohort", "repeats", "checkpoint", "n_seen"),
)


def test_a_full_record_is_read_whole(make_one_run):
    view = read_view(Record.open(make_one_run()))
    assert isinstance(view, OneRunView)
    assert (view.name, view.question, view.verdict.limit) == ("staggered", "one-run", 0.3)
    assert view.task == Task(0.963, 360, 0.102)
    found = view.one_run
    cohorts = [(one.window, one.start, one.repeats, one.n) for one in found.cohorts]
    assert cohorts == [(0, 100, 1, 40), (0, 100, 8, 40), (1, 300, 1, 40), (1, 300, 8, 40)]
    assert (found.planted, found.n_unseen, found.repeats) == (160, 120, (1, 8))
    assert (found.starts, found.window, found.steps) == ((100, 300), 50, 600)
    last = found.cohorts[-1]
    assert [point.lag for point in last.curve.points] == [4.25, 104.25, 254.25]
    assert [point.lag for point in last.effect] == [4.25, 104.25, 254.25]
    assert last.checkpoints == (350, 450, 600)
    assert (last.curve.success, last.curve.fpr, last.curve.chance) == ("tpr", 0.1, 0.1)
    assert last.curve.n_seen == 40


def test_what_is_judged_is_the_highest_end_of_the_first_window(make_one_run):
    found = read_view(Record.open(make_one_run())).one_run
    assert [(one.window, one.repeats) for one in found.first] == [(0, 1), (0, 8)]
    assert found.judged == found.cohorts[1]
    assert found.judged.curve.end.lag == 454.25


def test_what_was_not_measured_is_a_reason(make_one_run):
    names = ("one_run", "verdict", "task", "scope")
    view = read_view(Record.open(make_one_run(without=names, absent=(("one_run", "no time"),))))
    assert view.one_run == NotMeasured("no time")
    assert view.verdict == view.task == view.scope == NotMeasured("this run recorded none")


def test_a_number_that_is_null_is_none(make_one_run):
    nothing = [None] * ROWS
    folder = make_one_run(change={"effect": nothing, "effect_low": nothing, "effect_high": nothing})
    found = read_view(Record.open(folder)).one_run
    assert not found.effect_known
    assert {point.value for one in found.cohorts for point in one.effect} == {None}
    folder = make_one_run(name="two", change={"success": nothing, "low": nothing, "high": nothing})
    found = read_view(Record.open(folder)).one_run
    assert found.judged.curve.end.value is None
    assert found.effect_known


def test_a_result_without_rows_is_not_measured(make_one_run):
    folder = make_one_run(change={key: [] for key in COLUMNS})
    found = read_view(Record.open(folder)).one_run
    assert found == NotMeasured("no canary was scored after its window")


@pytest.mark.parametrize("key", [*COLUMNS, "starts"])
def test_a_column_that_is_missing_is_named(make_one_run, key):
    with pytest.raises(RecordError, match=f"'one_run': .*one_run.{key} is missing, no list"):
        read_view(Record.open(make_one_run(change={key: None})))


@pytest.mark.parametrize("key", ["rate", "confidence", "chance", "calibrated", "method", "steps"])
def test_an_entry_that_is_missing_is_named(make_one_run, key):
    with pytest.raises(RecordError, match=f"'one_run': .*one_run.{key} is missing"):
        read_view(Record.open(make_one_run(change={key: None})))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate": "luck"}, "rate is none of tpr, precision, auc, accuracy"),
        ({"starts": [300, 100]}, "starts do not rise"),
        ({"starts": [100]}, "cohort names a window that is none of the 1 in starts"),
        ({"steps": 320}, "steps end before the last window does"),
        ({"steps": 500}, "checkpoint lies outside the run"),
        ({"checkpoint": [-1.0] * ROWS}, "checkpoint lies outside the run"),
        ({"lags": [5.0] * ROWS}, "lags do not rise in window 0, 1 repeats"),
        ({"lags": [1.0]}, "success has 18 entries for 1 lags"),
        ({"low": ["x"] * ROWS}, r"low\[0\] is a str, no finite number"),
        ({"cohort": [0.0] * ROWS}, r"cohort\[0\] is a float, no whole number"),
        ({"n_unseen": -1}, "n_unseen is an int, no whole number"),
    ],
)
def test_a_malformed_result_is_named(make_one_run, change, words):
    with pytest.raises(RecordError, match=f"malformed result 'one_run': .*{words}"):
        read_view(Record.open(make_one_run(change=change)))


def test_all_faults_are_listed(make_one_run):
    with pytest.raises(RecordError) as caught:
        read_view(Record.open(make_one_run(change={"rate": 3, "starts": [2, 1], "method": None})))
    for words in ("rate is an int", "starts do not rise", "method is missing"):
        assert words in str(caught.value)


def test_all_three_questions_are_read_from_one_folder(
    make_run, make_exposure, make_one_run, tmp_path
):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    make_one_run(name="demo/staggered")
    assert [type(view) for view in read_views(tmp_path / "demo")] == [
        *(ForgettingView, ExposureView, OneRunView)
    ]
