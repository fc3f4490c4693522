"""The sentences of a one-run report say what was done, and no more than was seen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from remnant.records import Record
from remnant.report import read_view
from remnant.report.curve import Point
from remnant.report.one_run_view import OneRun
from remnant.report.one_run_words import (
    ONE_RUN,
    apart_sentence,
    caption,
    effect_sentence,
    effect_text,
    hidden_sentence,
    in_plain_words,
    measure_sentence,
    name_of,
    nats,
    what_was_found,
    windows_apart,
)
from remnant.report.words import headline, question


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


@pytest.fixture
def view(make_one_run):
    return read_view(Record.open(make_one_run()))


def _one_window(found: OneRun) -> dict[str, Any]:
    """The changes that leave the first window alone."""
    points = [(one, i) for one in found.first for i in range(len(one.curve.points))]
    rows = range(len(points))
    return {
        "starts": [100],
        "lags": [one.curve.points[i].lag for one, i in points],
        "checkpoint": [one.checkpoints[i] - 1 for one, i in points],
        "cohort": [0 for _ in rows],
        "repeats": [one.repeats for one, _ in points],
        "n_seen": [1 for _ in rows],
        "n_unseen": 1,
        **{key: [0.5 for _ in rows] for key in ("success", "effect")},
        **{key: [None for _ in rows] for key in ("low", "high", "effect_low", "effect_high")},
    }


def test_the_plain_words_tell_what_was_done(view):
    assert _plain(in_plain_words(view)) == (
        "160 canaries were planted along one ordinary training run of 600 steps: in 2 windows of "
        "50 steps, from steps 100 and 300 on, a few in a batch, 1 or 8 times each. Another 120, "
        "drawn alike, were never planted; chance alone decided which. At every later checkpoint "
        "an attacker who holds the model and kept a copy from before the window had to say which "
        "canaries had been planted."
    )


def test_the_plain_words_of_one_window_and_repeat(make_one_run, view):
    change = _one_window(view.one_run) | {"calibrated": False}
    half = {key: entry[:6] if isinstance(entry, list) else entry for key, entry in change.items()}
    found = read_view(Record.open(make_one_run(name="one", change=half | {"starts": [100]})))
    assert _plain(in_plain_words(found)) == (
        "1 canary was planted along one ordinary training run of 600 steps: in a window of 50 "
        "steps, from step 100 on, a few in a batch, once each. Another 1, drawn alike, was never "
        "planted; chance alone decided which. At every later checkpoint an attacker who holds the "
        "model had to say which canaries had been planted."
    )
    assert name_of(found.one_run, found.one_run.cohorts[0]) == "1×"
    assert "first window" not in caption(found.one_run) + effect_sentence(found.one_run)
    assert "from step" not in what_was_found(found.one_run)


def test_what_was_found_has_both_ends_of_the_first_window(view):
    assert _plain(what_was_found(view.one_run)) == (
        "Success is the share of the planted canaries that the attacker finds, while it wrongly "
        "names at most 10 % of those never planted; guessing gives 10.0 %. Planted once from step "
        "100 on: 36.2 % (28.2 % to 46.2 %) 20 steps after the last use, 11.3 % (3.3 % to 21.3 %) "
        "470 steps after the last use. Planted 8 times from step 100 on: 87.8 % (79.8 % to "
        "97.8 %) 4 steps after the last use, 13.9 % (5.9 % to 23.9 %) 454 steps after the last use."
    )


@pytest.mark.parametrize(
    ("rate", "fpr", "words"),
    [
        ("precision", 0.01, "had really been planted, .* at most 1 % of those never planted"),
        ("tpr", 0.001, "at most 0.1 % of those never planted; guessing gives 10.0 %"),
        ("auc", None, "looks more familiar to the model than one never planted; .* 0.100"),
        ("accuracy", None, "sorts rightly into planted and never planted, with as many of each;"),
    ],
)
def test_every_measure_has_its_sentence(make_one_run, rate, fpr, words):
    folder = make_one_run(change={"rate": rate, "fpr": fpr})
    curve = read_view(Record.open(folder)).one_run.curve
    assert re.search(words, _plain(measure_sentence(curve)))


def test_windows_that_agree_are_not_warned_of(view):
    assert windows_apart(view.one_run) is None
    assert apart_sentence(view.one_run) == ""


def test_windows_that_disagree_are_a_warning(make_one_run, view):
    success = [p.value for one in view.one_run.cohorts for p in one.curve.points]
    low = [p.low for one in view.one_run.cohorts for p in one.curve.points]
    high = [p.high for one in view.one_run.cohorts for p in one.curve.points]
    success[-1], low[-1], high[-1] = 0.7, 0.6, 0.8
    change = {"success": success, "low": low, "high": high}
    found = read_view(Record.open(make_one_run(name="apart", change=change))).one_run
    apart = windows_apart(found)
    assert (apart.later.start, apart.first.start, apart.later.repeats) == (300, 100, 8)
    assert (apart.later_point.lag, apart.first_point.lag) == (254.25, 204.25)
    words = _plain(apart_sentence(found))
    assert "those from step 300 on give 70.0 % (60.0 % to 80.0 %) 254 steps after" in words
    assert words.endswith("and the verdict judges the first window.")
    low[-1] = None
    found = read_view(
        Record.open(make_one_run(name="unsure", change=change | {"low": low}))
    ).one_run
    assert windows_apart(found) is None


def test_it_always_says_that_this_is_one_run_and_what_not_found_means(make_one_run, view):
    assert "one run" in ONE_RUN
    assert "not how much another run would" in ONE_RUN
    assert "may still be there" in hidden_sentence(view)
    assert "“Not tested”" in hidden_sentence(view)
    without = read_view(Record.open(make_one_run(name="bare", without=("scope",))))
    assert "“Not tested”" not in hidden_sentence(without)


@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_no_outcome_claims_that_anything_is_forgotten(make_one_run, outcome):
    verdict = {"outcome": outcome, "sentence": "A sentence.", "limit": 0.3, "lag": 454.25}
    found = read_view(Record.open(make_one_run(results={"verdict": verdict})))
    told = [headline(found), question(found), in_plain_words(found), what_was_found(found.one_run)]
    assert "forgotten" not in " ".join(told)


def test_what_was_not_measured_is_said(make_one_run):
    found = read_view(Record.open(make_one_run(without=("one_run",))))
    assert in_plain_words(found) == (
        "What an attacker finds in this run was not measured: this run recorded none."
    )


def test_effects_in_print():
    assert effect_text(Point(0, 1.234, -0.5, 3.0)) == "1.23 (−0.50 to 3.00)"
    assert effect_text(Point(0, 1.234, None, 3.0)) == "1.23"
    assert effect_text(Point(0, None, None, None)) == "–"
    assert nats(-0.001) == "0.00"
