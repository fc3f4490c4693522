"""The result of a one-run study: written and read back unchanged, damage named by its place."""

from __future__ import annotations

import copy
import dataclasses
import json
import math

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.records.outcomes import current_results
from remnant.records.typed import Absent, plain, read_result, result_from
from remnant.studies.one_run.result import OneRunResult

COLUMNS = (
    *("lags", "success", "low", "high", "effect", "effect_low", "effect_high"),
    *("cohort", "repeats", "checkpoint", "n_seen"),
)


@pytest.fixture(scope="module")
def rows(staggered):
    return Record.open(staggered).results()


@pytest.fixture(scope="module")
def result(staggered):
    return read_result(Record.open(staggered), OneRunResult)


def changed(rows, **entries):
    """Read the result again with other entries in its curves."""
    made = copy.deepcopy(rows)
    made["one_run"] |= entries
    return result_from(made, OneRunResult, where="here")


def test_every_part_is_the_row_that_is_stored(rows, result):
    assert set(rows) == {"verdict", "one_run", "task", "scope"}
    for name, row in rows.items():
        part = plain(getattr(result, name))
        assert json.dumps(part, sort_keys=True) == json.dumps(row, sort_keys=True)
        assert list(part) == list(row)


def test_cohorts_are_the_rows_by_window_and_repeats(rows, result):
    curves, stored = result.one_run, rows["one_run"]
    cohorts = [(c.window, c.start, c.repeats, c.n) for c in curves.cohorts]
    assert cohorts == [(0, 40, 1, 20), (0, 40, 8, 20), (1, 120, 1, 20), (1, 120, 8, 20)]
    assert (curves.planted, curves.n_unseen, curves.levels) == (80, 60, (1, 8))
    for cohort in curves.cohorts:
        mine = [
            i
            for i, key in enumerate(zip(stored["cohort"], stored["repeats"], strict=True))
            if key == (cohort.window, cohort.repeats)
        ]
        assert [p.lag for p in cohort.curve.points] == [stored["lags"][i] for i in mine]
        assert [p.value for p in cohort.curve.points] == [stored["success"][i] for i in mine]
        assert [p.high for p in cohort.effect] == [stored["effect_high"][i] for i in mine]
        assert list(cohort.checkpoints) == [stored["checkpoint"][i] + 1 for i in mine]
        assert (cohort.curve.success, cohort.curve.fpr, cohort.curve.chance) == ("tpr", 0.1, 0.1)


def test_the_judged_cohort_is_the_highest_end_of_the_first_window(rows, result):
    curves = result.one_run
    assert [(c.window, c.repeats) for c in curves.first] == [(0, 1), (0, 8)]
    assert curves.judged.curve.end.high == max(c.curve.end.high for c in curves.first)
    assert curves.judged.curve.end.lag == pytest.approx(rows["verdict"]["lag"])


def test_windows_disagree_where_their_intervals_do_not_overlap(result):
    curves = result.one_run
    wide = dataclasses.replace(
        curves, low=(0.0,) * len(curves.lags), high=(1.0,) * len(curves.lags)
    )
    assert wide.disagreement is None
    success, low, high = ([0.2] * len(curves.lags) for _ in range(3))
    success[-1], low[-1], high[-1] = 0.8, 0.7, 0.9
    apart = dataclasses.replace(
        curves, success=tuple(success), low=tuple(low), high=tuple(high)
    ).disagreement
    assert (apart.later.start, apart.first.start, apart.later.repeats) == (120, 40, 8)
    end = apart.later.curve.end
    assert apart.later_point == end
    nearest = min(abs(point.lag - end.lag) for point in apart.first.curve.points)
    assert abs(apart.first_point.lag - end.lag) == nearest
    unknown = (*low[:-1], None)
    assert dataclasses.replace(curves, low=unknown, high=tuple(high)).disagreement is None


def test_what_was_not_measured_is_a_reason():
    assert result_from({}, OneRunResult, where="here") == OneRunResult(
        **{
            name: Absent("this run recorded none")
            for name in ("verdict", "one_run", "task", "scope")
        }
    )
    given = {"one_run": {"absent": "no time."}}
    assert result_from(given, OneRunResult, where="here").one_run == Absent("no time")


def test_a_curve_without_rows_was_not_measured(rows):
    empty = changed(rows, **{name: [] for name in COLUMNS})
    assert empty.one_run == Absent("no canary was scored after its window")


def test_a_number_that_is_null_is_none(rows):
    nothing = [None] * len(rows["one_run"]["lags"])
    unknown = changed(rows, effect=nothing, effect_low=nothing, effect_high=nothing).one_run
    assert not unknown.effect_known
    unknown = changed(rows, success=nothing, low=nothing, high=nothing).one_run
    assert unknown.judged.curve.end.value is None
    assert unknown.effect_known


@pytest.mark.parametrize("name", [*COLUMNS, "starts"])
def test_a_column_that_is_missing_is_named(rows, name):
    with pytest.raises(RecordError, match=f"'one_run': one_run.{name} is missing, no list"):
        changed(rows, **{name: None})


@pytest.mark.parametrize("name", ["confidence", "chance", "calibrated", "method", "steps"])
def test_an_entry_that_is_missing_is_named(rows, name):
    made = copy.deepcopy(rows)
    del made["one_run"][name]
    with pytest.raises(RecordError, match=f"'one_run': one_run.{name} is missing"):
        result_from(made, OneRunResult, where="here")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"rate": "luck"}, "one_run.rate is not one of 'tpr', 'precision', 'auc', 'accuracy'"),
        ({"starts": [120, 40]}, "one_run.starts do not rise"),
        ({"starts": [40]}, "one_run.cohort names a window that is none of the 1 in starts"),
        ({"steps": 130}, "one_run.steps end before the last window does"),
        ({"steps": 200}, "one_run.checkpoint lies outside the run"),
        ({"lags": [1.0]}, r"one_run.success has \d+ entries for 1 lags"),
        ({"chance": math.nan}, "one_run.chance is a float, no finite number"),
        ({"n_unseen": -1}, "one_run.n_unseen is an int, no whole number"),
        ({"window": "9"}, "one_run.window is a str, no whole number"),
    ],
)
def test_damage_is_named_by_its_place(rows, entries, words):
    with pytest.raises(RecordError, match=f"malformed result 'one_run': {words}"):
        changed(rows, **entries)


@pytest.mark.parametrize(
    ("name", "entry", "words"),
    [
        ("checkpoint", -1.0, "one_run.checkpoint lies outside the run"),
        ("lags", 5.0, "one_run.lags do not rise in window 0, 1 repeats"),
        ("low", "x", r"one_run.low\[0\] is a str, no finite number"),
        ("cohort", 0.0, r"one_run.cohort\[0\] is a float, no whole number"),
    ],
)
def test_damage_within_a_column_is_named(rows, name, entry, words):
    with pytest.raises(RecordError, match=words):
        changed(rows, **{name: [entry] * len(rows["one_run"]["lags"])})


def test_all_faults_are_listed_and_no_value_is(rows):
    with pytest.raises(RecordError) as caught:
        changed(rows, rate="hunter2", starts=["a"], method=None)
    for words in ("one_run.rate is not", "one_run.starts[0] is a str", "one_run.method is missing"):
        assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(RecordError) as caught:
        changed(rows, starts=[120, 40], steps=60)
    for words in ("starts do not rise", "steps end before", "checkpoint lies outside"):
        assert words in str(caught.value)


def test_unequal_columns_cannot_be_written(result):
    with pytest.raises(InvalidInput, match=r"^\.repeats has 1 entries"):
        dataclasses.replace(result.one_run, repeats=(1,))


def test_an_outcome_of_older_rules_is_not_judged_again(rows):
    older = copy.deepcopy(rows)
    older["verdict"] = {"outcome": "PASS", "sentence": "Fine.", "limit": 0.9, "lag": 100.0}
    shown = current_results(older, question="one-run")
    read = result_from(shown, OneRunResult, where="here")
    assert read.verdict.outcome == "INCONCLUSIVE"
    assert read.verdict.limit == 0.9


def test_the_rows_are_finite_json(rows):
    json.dumps(rows, allow_nan=False)
    assert np.isfinite(rows["one_run"]["lags"]).all()
