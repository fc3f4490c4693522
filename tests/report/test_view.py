"""A view holds what the record holds; what is missing is a reason, what is malformed is named."""

from __future__ import annotations

import dataclasses

import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.report import read_view, summary_text
from remnant.report.curve import lag_text, percent, read_curve, short_percent
from remnant.report.ran import LedgerRow
from remnant.report.render import render
from remnant.report.tiles import tiles_of
from remnant.report.view import NotMeasured
from remnant.report.words import control_holds, in_plain_words, steps_to_rows, tiled_sentence


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_a_full_record_is_read_whole(make_run):
    found = read_view(Record.open(make_run()))
    assert found.name == "digits-inject"
    assert found.complete
    assert found.verdict.outcome == "PASS"
    assert _plain(found.curve.label) == "Precision at FPR 10 %"
    assert (found.curve.start.lag, found.curve.end.lag) == (1, 400)
    assert [_plain(curve.label) for _, curve in found.others] == [
        "True positive rate at FPR 10 %",
        "AUC",
        "Attack accuracy",
    ]
    assert [(label, curve.label) for label, curve in found.comparison.curves] == [
        ("1 repeat", found.curve.label),
        ("10 repeats", found.curve.label),
    ]
    assert found.ledger == (LedgerRow("1–32", 32, 3, (1, 1), 300, 300),)
    titles = [group.title for group in found.groups]
    assert titles == ["Plan", "Data", "Canaries", "Model", "Training", "Execution and provenance"]
    machine = dict(found.groups[-1].rows)
    assert machine["seeds"] == "plan 0, bootstrap 1"
    assert machine["versions"] == "python 3.11.7, remnant 0.1.0, torch 2.13.0, numpy 2.4.6"
    assert machine["plan fingerprint"] == "3f9c2d7be4a1905c6f"


def test_what_was_not_measured_is_a_reason(make_run):
    folder = make_run(without=("curve_aa", "task"), absent=(("curve_aa", "no A/A twins"),))
    found = read_view(Record.open(folder))
    assert found.control == NotMeasured("no A/A twins")
    assert found.task == NotMeasured("this run recorded none")
    assert "There is no negative control: no A/A twins." in in_plain_words(found)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("curve", {"lags": [0, 1], "value": [0.5]}, "value has 1 entries for 2 lags"),
        ("curve_aa", {"value": [0.5]}, "lags is missing"),
        ("verdict", {"outcome": "MAYBE", "sentence": ""}, "outcome='MAYBE'"),
        ("verdict", {"outcome": "PASS", "rules": 2}, "sentence"),
        ("task", {"test_accuracy": "high", "test_examples": 3}, "could not convert"),
        ("compare", {"series": []}, "compares no series"),
        ("traditional", {"lags": [0]}, "neither accuracy nor loss"),
    ],
)
def test_a_malformed_result_is_named(make_run, name, value, words):
    folder = make_run(results={name: value})
    with pytest.raises(RecordError, match=f"malformed result '{name}': .*{words}"):
        read_view(Record.open(folder))


def test_all_faults_of_a_curve_are_listed():
    bad = {"lags": [0, 2, 1], "value": [0.5, "x", True], "low": [1.0]}
    with pytest.raises(InvalidInput) as caught:
        read_curve(bad)
    for words in ("lags do not rise", "value[1] is 'x'", "value[2] is True", "low has 1 entries"):
        assert words in str(caught.value)


def test_chosen_points_have_both_ends_and_are_few(make_curve):
    dense = {"lags": list(range(0, 4001, 10)), "value": [0.5] * 401}
    chosen = read_curve(dense).chosen()
    assert (chosen[0].lag, chosen[-1].lag, len(chosen)) == (0, 4000, 8)
    short = {"lags": [0, 5], "value": [0.9, None]}
    assert [point.value for point in read_curve(short).chosen()] == [0.9, None]


def test_the_highest_precision_at_ten_percent_is_ten_elevenths(make_curve):
    found = read_curve(make_curve(start=0.9, floor=0.6, chance=0.5, spread=0.05))
    assert found.highest == pytest.approx(0.909, abs=5e-4)


def test_a_level_that_is_not_reached_says_so(make_curve):
    found = read_curve(make_curve(start=0.9, floor=0.6, chance=0.5, spread=0.05))
    assert [_plain(" ".join(row)) for row in steps_to_rows(found)] == [
        "80.0 % 32",
        "70.0 % 68",
        "55.0 % not reached in the 400 steps watched",
    ]


def test_the_plain_words_name_the_plan_and_both_ends(make_run):
    words = _plain(in_plain_words(read_view(Record.open(make_run()))))
    assert words.startswith("32 chosen examples were shown to a model once at training step 300;")
    assert "pure guessing gives 50 %" in words
    assert "By 400 steps after planting it was" in words
    assert "could not be told from one who guesses" in words


def test_a_control_off_chance_is_a_warning(make_run, make_curve):
    leaky = make_curve(start=0.7, floor=0.65, chance=0.5, spread=0.05)
    found = read_view(Record.open(make_run(results={"curve_aa": leaky})))
    assert not control_holds(found.control)
    assert "read the curve with caution" in in_plain_words(found)


def test_a_plan_without_groups_or_counts_is_shown_too(make_run):
    found = read_view(Record.open(make_run(plan={"seed": 0, "nested": {"a": {"b": [1, [2]]}}})))
    assert [group.title for group in found.groups[:2]] == ["Plan", "Nested"]
    assert found.groups[1].rows == (("a", '{"b": [1, [2]]}'),)


def test_numbers_in_print():
    assert _plain(percent(0.5)) == "50.0 %"
    assert percent(None) == "–"
    assert [_plain(short_percent(v)) for v in (0.1, 0.025, 0.001, None)] == [
        *("10 %", "2.5 %", "0.1 %", "–")
    ]
    assert [_plain(lag_text(lag)) for lag in (0, 12345, 2.5)] == ["0", "12 345", "2.5"]


def _with(make_run, *, plan=None, results=None, name="digits-inject"):
    return read_view(Record.open(make_run(name=name, plan=plan, results=results or {})))


def test_every_other_measure_of_success_is_shown_and_not_the_curve_itself(make_run, make_curve):
    auc = make_curve("auc", start=0.9, floor=0.6, chance=0.5, spread=0.05)
    precision = make_curve(start=0.9, floor=0.6, chance=0.5, spread=0.05)
    folder = make_run(without=("curve_auc",), results={"curve": auc, "curve_precision": precision})
    view = read_view(Record.open(folder))
    assert [name for name, _ in view.others] == ["curve_precision", "curve_tpr", "curve_accuracy"]
    page = render(Record.open(folder))
    assert "AUC: not measured" not in page
    assert "Precision at FPR" in page


def test_never_planted_canaries_are_reported_apart(make_run, make_curve):
    controls = make_curve(start=0.5, floor=0.52, chance=0.5, spread=0.05)
    folder = make_run(results={"curve_controls": controls})
    view = read_view(Record.open(folder))
    assert view.never_planted.end.value == pytest.approx(controls["value"][-1])
    assert "Never-planted canaries, drawn the same way" in render(Record.open(folder))
    assert "  never-planted canaries, lag 400: " in summary_text(view)


@pytest.mark.parametrize(
    ("plan", "constructed"),
    [
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "logit"}}, True),
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "none"}}, False),
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "twins"}}, False),
        ({"plan": {"kind": "poison"}, "attack": {"calibration": "logit"}}, False),
    ],
)
def test_the_page_opens_with_a_lag_at_which_the_attack_can_fail(make_run, plan, constructed):
    folder = make_run(plan=plan)
    view = read_view(Record.open(folder))
    assert view.curve.start.lag == (1 if constructed else 0)
    tile = tiles_of(view)[0]
    assert tile.name == ("After 1 step" if constructed else "Right after planting")
    assert tile.value == view.curve.show(view.curve.start.value)
    page = render(Record.open(folder))
    assert ("holds by construction" in page) == constructed
    assert ("by construction" in summary_text(view)) == constructed


@pytest.mark.parametrize(("uses", "said"), [(2, True), (1, False)])
def test_more_uses_than_repeats_are_explained(make_run, uses, said):
    row = LedgerRow("1–32", 32, 1, (uses, uses), 100, 100)
    plan = {"kind": "inject", "repeats": 1, "canaries": 32, "step": 100, "watch_steps": 400}
    view = dataclasses.replace(_with(make_run), plan=plan, ledger=(row,))
    assert ("the canaries are repeated to fill it" in tiled_sentence(view)) == said
    assert ("up to 2 times in all since they fill the batch" in in_plain_words(view)) == said
    assert ("were shown to a model once" in in_plain_words(view)) != said
