"""A strip is drawn to scale, a block and its dots a row."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from remnant.report.charts.figure import figure_of
from remnant.report.charts.shapes import Strip, StripRow
from remnant.report.charts.strip import draw_strip

STRIP = Strip(
    title="A run",
    description="Two windows.",
    x_label="Step",
    length=600.0,
    rows=(
        StripRow("From 100", "main", (100.0, 150.0, "first <block>"), ((200.0, "a"), (600.0, "b"))),
        StripRow("From 300", "main", (300.0, 350.0, "second"), ((400.0, "c"),), stroke="dashed"),
        StripRow("Never", "control"),
    ),
    blocks="Planted",
    dots="Scored",
    key_tone="main",
)


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


@pytest.fixture
def figure():
    return figure_of(STRIP, "run")


def test_blocks_and_dots_lie_where_they_belong(figure):
    for drawn in (figure.wide, figure.narrow):
        svg = ElementTree.fromstring(str(drawn))
        (plot,) = _by_class(svg, "plot")
        left, wide = float(plot.get("x")), float(plot.get("width"))
        blocks = [(float(b.get("x")), float(b.get("width"))) for b in _by_class(svg, "bar")]
        assert blocks == [
            (pytest.approx(left + wide * start / 600, abs=0.1), pytest.approx(wide / 12, abs=0.1))
            for start in (100, 300)
        ]
        places = [float(dot.get("cx")) for dot in _by_class(svg, "dot")]
        assert places == [pytest.approx(left + wide * x / 600, abs=0.1) for x in (200, 600, 400)]
        assert [part.text for part in _by_class(svg, "end")] == ["From 100", "From 300", "Never"]


def test_rows_have_their_strokes_and_words(figure):
    svg = ElementTree.fromstring(str(figure.wide))
    assert [part.get("class") for part in _by_class(svg, "line")] == [
        *("line tone-main", "line tone-main dashed", "line tone-control")
    ]
    assert [part[0].text for part in _by_class(svg, "bar")] == ["first <block>", "second"]
    assert svg.get("aria-labelledby") == "run-wide-title run-wide-desc"


def test_the_legend_names_blocks_and_dots(figure):
    assert [(key.label, key.tone, key.kind) for key in figure.keys] == [
        ("Planted", "main", "bars"),
        ("Scored", "main", "dots"),
    ]


@pytest.mark.parametrize("width", [350, 880])
def test_names_of_any_length_leave_room_for_the_rows(width):
    rows = (StripRow("a name " * 40, "main", (100.0, 150.0, "block"), ()),)
    drawn = str(draw_strip(dataclasses.replace(STRIP, rows=rows), ident="x", width=width))
    plot = re.search(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    assert plot is not None
    assert float(plot[2]) >= 0.4 * width
