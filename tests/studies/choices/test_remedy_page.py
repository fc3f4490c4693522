"""The page about defences: the decision first, every remedy, and its sentences in all branches."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.report import blocks as made_of
from remnant.report.charts.figure import figure_of
from remnant.studies.choices.charts import remedies_front_chart
from remnant.studies.choices.remedy_page import TITLE, page
from remnant.studies.choices.result import DefencesResult, Privacy
from remnant.studies.shared.pages import read_run

from .conftest import DEFENCES


@pytest.fixture(scope="module")
def result(defended):
    return read_result(Record.open(defended), DefencesResult)


@pytest.fixture(scope="module")
def run(defended):
    return read_run(Record.open(defended))


@pytest.fixture
def text_of(run, page_text):
    return lambda result, **options: page_text(page(result, run), **options)


def changed(result, label, **fields):
    """The result with other fields of one remedy."""
    rows = tuple(
        replace(row, **fields) if row.label == label else row for row in result.defences.remedies
    )
    return replace(result, defences=replace(result.defences, remedies=rows))


def keys_of(result, run):
    return [
        block.key
        for block in made_of.walk(page(result, run))
        if isinstance(block, made_of.Table | made_of.Figure)
    ]


def test_every_remedy_and_its_numbers_are_on_the_page(result, run, text_of):
    text = text_of(result)
    assert TITLE == "Defences"
    for row in result.defences.remedies:
        assert row.label in text
        assert f"{row.exposure[0]:.2f}" in text
        if row.reason:
            assert row.reason in text
    assert {"front", "remedies", "reasons", "relearnt", "privacy", "ledger"} <= set(
        keys_of(result, run)
    )


def test_the_decision_comes_first(result, run):
    first = next(iter(page(result, run)))
    assert isinstance(first, made_of.Headline)
    assert first.outcome == result.verdict.outcome
    assert first.sentence == result.verdict.sentence
    assert first.reading.limit == 6.0


def test_a_pass_shows_the_cheapest_remedy(result, run, text_of):
    held = changed(result, "scanned", status="holds", reason="It holds.")
    verdict = replace(
        result.verdict, outcome="PASS", cheapest="scanned", holding=("scanned",), sentence="Yes."
    )
    held = replace(held, verdict=verdict)
    first = next(iter(page(held, run)))
    assert first.title == "A remedy holds the limit"
    assert "scanned" in first.reading.name
    assert "Hold the limit: “scanned”." in text_of(held)


def test_the_time_of_a_remedy_is_relative_to_doing_nothing(result, run, page_text):
    timed = dataclasses.replace(
        run,
        execution={"primary.seconds": 2.0, "remedy1.seconds": 3.0, "remedy6.seconds_after": 0.5},
    )
    table = next(
        block
        for block in made_of.walk(page(result, timed))
        if isinstance(block, made_of.Table) and block.key == "remedies"
    )
    times = [row.time for row in table.rows]
    assert times[:3] == [1.0, 1.5, None]
    assert times[6] == 1.25
    untimed = dataclasses.replace(run, execution={})
    assert "–" in page_text(page(result, untimed))


def test_what_private_training_promises_is_said(result, text_of):
    text = text_of(result)
    assert "at delta 1e-05" in text
    shuffled = changed(
        result, "private", privacy=Privacy(epsilon=None, delta=None, reason="batches are shuffled")
    )
    assert "no epsilon: batches are shuffled" in text_of(shuffled)


def test_a_run_without_results_says_why(result, text_of):
    text = text_of(replace(result, defences=Absent("the run was cut short")))
    assert "Exposure was not measured: the run was cut short." in text
    assert "No verdict" in text_of(replace(result, verdict=Absent("none")))


def test_a_difference_with_a_lower_bound_shows_its_ends_alone(result, text_of):
    own = result.defences.tried[0]
    for at_least, shown in ((False, "+9.25 (+8.50 to +9.75)"), (True, ": +8.50 to +9.75")):
        bound = replace(own.exposure_change, difference=(9.25, 8.5, 9.75), at_least=at_least)
        assert shown in text_of(changed(result, own.label, exposure_change=bound))


def test_useless_and_undecided_remedies_are_named(result, text_of):
    made = changed(result, "decay", status="useless model")
    made = changed(made, "dropout", status="not shown")
    text = text_of(made)
    assert "Useless models, which count as no remedy: “decay”" in text
    assert "“dropout”" in text.split("Undecided:")[1]


def test_the_front_has_a_dot_for_every_remedy(result):
    chart = remedies_front_chart(result.defences)
    dots = [dot for group in chart.dots for dot in group.dots]
    assert len(dots) == 1 + len(DEFENCES["remedy"])
    assert all(dot.left <= dot.x <= dot.right for dot in dots)
    assert all(dot.low <= dot.y <= dot.high for dot in dots)
    assert figure_of(chart, "front") is not None
