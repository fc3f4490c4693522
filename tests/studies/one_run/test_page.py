"""The page of a one-run study: every number of the run, and no more claimed than was seen."""

from __future__ import annotations

import dataclasses
import re

import pytest

from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.report import blocks as made_of
from remnant.studies.one_run.charts import effect_chart, line_keys, success_chart, timeline
from remnant.studies.one_run.formats import cohort_name, effect_number, effect_text
from remnant.studies.one_run.page import TITLE, page
from remnant.studies.one_run.result import OneRunResult
from remnant.studies.shared.curves import Point
from remnant.studies.shared.pages import read_run
from remnant.tasks.score_words import LOG_ODDS


@pytest.fixture(scope="module")
def record(staggered):
    return Record.open(staggered)


@pytest.fixture(scope="module")
def result(record):
    return read_result(record, OneRunResult)


@pytest.fixture(scope="module")
def run(record):
    return read_run(record)


@pytest.fixture
def text_of(run, page_text):
    return lambda result, **options: page_text(page(result, run), **options)


def _with(result, **changes):
    """The result with other fields in its curves."""
    return dataclasses.replace(result, one_run=dataclasses.replace(result.one_run, **changes))


def _first_window(result, *, levels=(1, 8)):
    """The result as if there were one window, and these numbers of repeats alone."""
    curves = result.one_run
    rows = [
        i
        for i, (window, uses) in enumerate(zip(curves.cohort, curves.repeats, strict=True))
        if window == 0 and uses in levels
    ]
    columns = {
        field.name: tuple(getattr(curves, field.name)[i] for i in rows)
        for field in dataclasses.fields(curves)
        if isinstance(getattr(curves, field.name), tuple) and field.name not in ("starts", "others")
    }
    return _with(result, starts=curves.starts[:1], **columns)


def test_the_page_has_its_parts_in_order(result, run):
    blocks = list(page(result, run))
    assert isinstance(blocks[0], made_of.Headline)
    assert isinstance(blocks[1], made_of.Tiles)
    titles = [block.title for block in blocks if isinstance(block, made_of.Section)]
    assert titles == [
        "In plain words",
        "What the attacker still finds as the run goes on",
        "What planting did to the model’s confidence",
        "Controls",
        "How it was measured",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    keys = [b.key for b in made_of.walk(blocks) if isinstance(b, made_of.Table | made_of.Figure)]
    assert len(set(keys)) == len(keys)
    assert TITLE == "One-run forgetting"


def test_the_headline_rests_on_the_judged_cohort(result, run):
    headline = next(iter(page(result, run)))
    end = result.one_run.judged.curve.end
    reading = headline.reading
    assert (reading.value, reading.low, reading.high) == (end.value, end.low, end.high)
    assert (reading.limit, reading.lowest, reading.highest) == (0.9, 0.0, 1.0)
    assert reading.n == "20 canaries, 60 controls, one run"
    assert headline.outcome == result.verdict.outcome
    assert headline.advice


@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_no_outcome_claims_that_anything_is_forgotten(result, run, text_of, outcome):
    judged = dataclasses.replace(
        result, verdict=dataclasses.replace(result.verdict, outcome=outcome)
    )
    headline = next(iter(page(judged, run)))
    assert headline.outcome == outcome
    assert headline.title
    assert headline.advice
    assert "forgotten" not in text_of(judged)


def test_the_plain_words_say_what_was_done(result, text_of):
    assert (
        "80 canaries were planted along one ordinary training run of 220 steps: in 2 windows of "
        "30 steps, from steps 40 and 120 on, a few in a batch, 1 or 8 times each. Another 60, "
        "drawn the same way, were never planted; which ones was decided at random. At every later "
        "checkpoint an attacker with two checkpoints of this run had to decide which canaries had "
        "been planted."
    ) in text_of(result)


def test_one_window_and_one_number_of_repeats(result, run, text_of):
    alone = _first_window(result, levels=(1,))
    alone = _with(
        alone,
        calibrated=False,
        attacker=None,  # as in older records
        n_unseen=1,
        n_seen=tuple(1 for _ in alone.one_run.n_seen),
    )
    text = text_of(alone)
    assert (
        "1 canary was planted along one ordinary training run of 220 steps: in a window of 30 "
        "steps, from step 40 on, a few in a batch, once each. Another 1, drawn the same way, was "
        "never planted; which ones was decided at random. At every later checkpoint an attacker "
        "with the model alone had to decide which canaries had been planted."
    ) in text
    assert "Planted once: " in text
    assert "first window, which" not in text
    assert "less the same from before the window" not in text
    assert cohort_name(alone.one_run, alone.one_run.cohorts[0]) == "1×"
    labels = [key.label for key in line_keys(_first_window(result).one_run)]
    assert labels == ["Planted once", "Planted 8 times"]


def test_both_ends_of_the_first_window_are_told(result, text_of):
    curves, text = result.one_run, text_of(result)
    for cohort in curves.first:
        often = "once" if cohort.repeats == 1 else "8 times"
        for point in (cohort.curve.start, cohort.curve.end):
            value = (
                f"{100 * point.value:.1f} % ({100 * point.low:.1f} % to {100 * point.high:.1f} %)"
            )
            assert f"{value} {round(point.lag)} step" in text
        assert f"Planted {often} from step 40 on: " in text


@pytest.mark.parametrize(
    ("rate", "fpr", "words"),
    [
        ("precision", 0.01, "had been planted, .* at most 1 % of those never planted"),
        ("tpr", 0.001, "at most 0.1 % of those never planted; guessing gives 10.0 %"),
        ("auc", None, "looks more familiar to the model than one never planted; .* 0.100"),
        ("accuracy", None, "sorts correctly into planted and never planted, with as many of each;"),
    ],
)
def test_every_measure_has_its_sentence(result, text_of, rate, fpr, words):
    assert re.search(words, text_of(_with(result, rate=rate, fpr=fpr)))


def test_windows_that_disagree_are_a_warning_in_the_terminal_too(result, text_of):
    rows = len(result.one_run.lags)
    wide = _with(result, low=(0.0,) * rows, high=(1.0,) * rows)
    assert "The windows disagree" not in text_of(wide)
    apart = _with(
        result,
        success=(*[0.2] * (rows - 1), 0.7),
        low=(*[0.1] * (rows - 1), 0.6),
        high=(*[0.3] * (rows - 1), 0.8),
    )
    text = text_of(apart, depth="show")
    assert "The windows disagree. Canaries planted 8 times from step 120 on give 70.0 %" in text
    assert "those from step 40 on give 20.0 % (10.0 % to 30.0 %)" in text
    assert "The verdict judges the first window." in text


def test_it_always_says_that_this_is_one_run_and_what_undetected_means(result, text_of):
    text = text_of(result, depth="show")
    assert "not how much another run would" in text
    assert "Undetected is not erased" in text
    assert "“Not tested”" in text
    bare = dataclasses.replace(result, scope=Absent("this run recorded none"))
    assert "“Not tested”" not in text_of(bare)


def test_what_was_not_measured_is_said(result, run, text_of):
    bare = OneRunResult(
        verdict=Absent("nothing to judge"),
        one_run=Absent("no time"),
        task=Absent("no test set"),
        scope=Absent("this run recorded none"),
    )
    blocks = list(page(bare, run))
    assert blocks[0].outcome is None
    assert blocks[0].reading is None
    assert not any(isinstance(b, made_of.Tiles | made_of.Figure) for b in made_of.walk(blocks))
    assert "Attack success: not measured: no time." in text_of(bare, depth="show")
    for words in ("Attack success in this run was not measured: no time.", "no test set", "95 %"):
        assert words in text_of(bare)


def test_a_verdict_without_a_limit_has_no_tile_for_it(result, run, text_of):
    without = dataclasses.replace(result, verdict=Absent("confidence of one half"))
    tiles = next(b for b in page(without, run) if isinstance(b, made_of.Tiles))
    names = [tile.name for tile in tiles.tiles]
    assert "Controls" in names
    assert "Limit" not in names


def test_an_effect_that_was_not_measured_is_said_and_not_drawn(result, run, text_of):
    nothing = (None,) * len(result.one_run.lags)
    unknown = _with(result, effect=nothing, effect_low=nothing, effect_high=nothing)
    keys = [b.key for b in made_of.walk(page(unknown, run)) if isinstance(b, made_of.Figure)]
    assert keys == ["timeline", "success"]
    assert "Effect of planting: not measured" in text_of(unknown)
    for block in made_of.walk(page(unknown, run)):
        if isinstance(block, made_of.Table) and block.key == "checkpoints":
            assert "Effect (nats)" not in [column.name for column in block.shown()]


def test_a_success_that_is_not_known_has_no_reading(result, run, text_of):
    nothing = (None,) * len(result.one_run.lags)
    unknown = _with(result, success=nothing, low=nothing, high=nothing)
    assert next(iter(page(unknown, run))).reading is None
    assert "–" in text_of(unknown)


def test_many_checkpoints_are_thinned_for_the_terminal_alone(result, run):
    tables = {b.key: b for b in made_of.walk(page(result, run)) if isinstance(b, made_of.Table)}
    rows = len(result.one_run.lags)
    assert rows > 30
    assert len(tables["checkpoints"].rows) == rows
    assert tables["checkpoints"].depth == "page"
    assert len(tables["chosen"].rows) <= 30
    assert tables["chosen"].depth == "show"
    few = _first_window(result)
    tables = {b.key: b for b in made_of.walk(page(few, run)) if isinstance(b, made_of.Table)}
    assert "chosen" not in tables
    assert tables["checkpoints"].depth == "show"


def test_more_windows_than_strokes_begin_again(result):
    n = 7
    many = dataclasses.replace(
        result.one_run,
        starts=tuple(30 * i for i in range(n)),
        lags=(5.0,) * n,
        **dict.fromkeys(("success", "low", "high"), (0.5,) * n),
        **dict.fromkeys(("effect", "effect_low", "effect_high"), (1.0,) * n),
        cohort=tuple(range(n)),
        repeats=(1,) * n,
        n_seen=(4,) * n,
        checkpoint=tuple(30.0 * i + 29 for i in range(n)),
    )
    kinds = [key.kind for key in line_keys(many) if key.tone == "ceiling"]
    assert kinds == [
        *("line", "line dashed", "line dotted", "line chain", "line thin"),
        *("line dashed", "line dotted"),
    ]
    assert [row.stroke for row in timeline(many).rows][:2] == ["full", "dashed"]


def test_the_strip_has_a_block_a_window_and_a_dot_a_checkpoint(result):
    strip = timeline(result.one_run)
    assert [row.name for row in strip.rows] == ["From step 40", "From step 120", "Never planted"]
    assert strip.rows[0].block == (40.0, 70.0, "Steps 40 to 70: 40 canaries planted")
    assert strip.rows[2].block is None
    first, later = (
        {step for c in result.one_run.cohorts if c.window == w for step in c.checkpoints}
        for w in (0, 1)
    )
    assert {place for place, _ in strip.rows[0].dots} == first
    assert {place for place, _ in strip.rows[1].dots} == later


def test_only_the_first_window_has_bands_and_names(result):
    chart = success_chart(result.one_run, limit=0.9)
    assert [line.stroke for line in chart.lines] == ["full", "full", "dashed", "dashed"]
    assert [line.tone for line in chart.lines] == ["main", "second", "main", "second"]
    assert chart.unnamed == ("1×, from 120", "8×, from 120")
    assert [rule.label.replace("\u202f", " ") for rule in chart.rules] == [
        *("Chance 10.0 %", "Limit 90.0 %")
    ]
    assert [rule.label for rule in effect_chart(result.one_run, LOG_ODDS).rules] == ["No effect"]


def test_effects_in_print():
    assert effect_text(Point(0, 1.234, -0.5, 3.0)) == "1.23 (−0.50 to 3.00)"
    assert effect_text(Point(0, 1.234, None, 3.0)) == "1.23"
    assert effect_text(Point(0, None, None, None)) == "–"
    assert effect_number(-0.001) == "0.00"
