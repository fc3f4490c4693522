"""The charts of a one-run report show what the record holds."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from remnant.records import Record
from remnant.report import read_view
from remnant.report.one_run_figures import one_run_figures

ROWS = 18


def _svg(markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


def _plain(text: str | None) -> str:
    return (text or "").replace("\u202f", " ")


@pytest.fixture
def figures(make_one_run):
    return one_run_figures(read_view(Record.open(make_one_run())))


def test_a_colour_is_a_number_of_repeats_and_a_stroke_a_window(figures):
    lines = [part.get("class") for part in _by_class(_svg(figures["success"].wide), "line")]
    assert sorted(lines) == [
        *("line tone-main", "line tone-main dashed"),
        *("line tone-second", "line tone-second dashed"),
    ]
    assert [(key.label, key.tone, key.kind) for key in figures["success"].keys][:4] == [
        ("Planted once", "main", "banded"),
        ("Planted 8 times", "second", "banded"),
        ("From step 100 on", "ceiling", "line"),
        ("From step 300 on", "ceiling", "line dashed"),
    ]


def test_only_the_first_window_has_bands_and_names(figures):
    svg = _svg(figures["success"].wide)
    assert len(_by_class(svg, "band")) == 2
    assert {_plain(part.text) for part in _by_class(svg, "label")} == {
        *("1×, from 100", "8×, from 100", "Chance 10.0 %", "Limit 30.0 %")
    }


def test_every_row_tells_its_numbers_when_pointed_at(figures):
    tips = [_plain(part[0].text) for part in _by_class(_svg(figures["success"].wide), "dot")]
    assert len(tips) == ROWS
    assert "8×, from 300, lag 4.2: 87.8 % (79.8 % to 97.8 %)" in tips


def test_the_effect_is_drawn_against_none(figures):
    svg = _svg(figures["effect"].narrow)
    assert len(_by_class(svg, "dot")) == ROWS
    (rule,) = _by_class(svg, "rule")
    assert rule[0].text == "No effect"


def test_an_effect_that_is_partly_known_leaves_a_gap(make_one_run):
    effect = [None, *([1.0] * (ROWS - 1))]
    change = {"effect": effect, "effect_low": [None] * ROWS, "effect_high": [None] * ROWS}
    figure = one_run_figures(read_view(Record.open(make_one_run(change=change))))["effect"]
    assert len(_by_class(_svg(figure.wide), "dot")) == ROWS - 1


def test_the_strip_has_a_block_a_window_and_a_dot_a_checkpoint(figures):
    svg = _svg(figures["timeline"].wide)
    (plot,) = _by_class(svg, "plot")
    left, wide = float(plot.get("x")), float(plot.get("width"))
    blocks = [(float(b.get("x")), float(b.get("width"))) for b in _by_class(svg, "bar")]
    assert blocks == [
        (pytest.approx(left + wide * start / 600, abs=0.1), pytest.approx(wide / 12, abs=0.1))
        for start in (100, 300)
    ]
    assert len(_by_class(svg, "dot")) == 6 + 3
    names = [_plain(part.text) for part in _by_class(svg, "end")]
    assert names == ["From step 100", "From step 300", "Never planted"]
    tips = {_plain(part[0].text) for part in _by_class(svg, "bar")}
    assert "Steps 100 to 150: 80 canaries planted" in tips


def test_one_window_needs_no_strokes(make_one_run):
    change = {"cohort": [0] * ROWS, "lags": list(map(float, range(ROWS))), "starts": [100]}
    figures = one_run_figures(read_view(Record.open(make_one_run(change=change))))
    labels = [_plain(key.label) for key in figures["success"].keys]
    assert labels == ["Planted once", "Planted 8 times", "Chance 10.0 %", "Limit 30.0 %"]


def test_more_windows_than_strokes_begin_again(make_one_run):
    n = 7
    rows = {
        "lags": [5.0] * n, "success": [0.5] * n, "low": [0.4] * n, "high": [0.6] * n,
        "effect": [1.0] * n, "effect_low": [0.5] * n, "effect_high": [1.5] * n,
        "cohort": list(range(n)), "repeats": [1] * n, "n_seen": [4] * n,
        "checkpoint": [50.0 * i + 49 for i in range(n)], "starts": [50 * i for i in range(n)],
        "window": 50,
    }  # fmt: skip
    figures = one_run_figures(read_view(Record.open(make_one_run(change=rows))))
    kinds = [key.kind for key in figures["success"].keys if key.tone == "ceiling"]
    assert kinds == [
        *("line", "line dashed", "line dotted", "line chain", "line thin"),
        *("line dashed", "line dotted"),
    ]


def test_what_was_not_measured_is_not_drawn(make_one_run):
    empty = one_run_figures(read_view(Record.open(make_one_run(without=("one_run",)))))
    assert empty == {"timeline": None, "success": None, "effect": None}
    nothing = {key: [None] * ROWS for key in ("effect", "effect_low", "effect_high")}
    folder = make_one_run(name="two", change=nothing)
    assert one_run_figures(read_view(Record.open(folder)))["effect"] is None
