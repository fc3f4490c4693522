"""Charts on axes of matplotlib: the same data, scales and words as on the page."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from remnant.errors import MissingExtra
from remnant.report.charts.plotted import new_figure, plot
from remnant.report.charts.scale import Scale
from remnant.report.charts.shapes import (
    Bars,
    Chart,
    Dot,
    Dots,
    Flag,
    Line,
    Rule,
    Strip,
    StripRow,
)


def chart(**changed):
    made = {"title": "Success", "description": "", "x_label": "Lag", "y_label": "Share"}
    return Chart(**(made | changed))


def plotted(drawn):
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    plot(drawn, axes)
    figure.canvas.draw()  # fails on what cannot be drawn; warnings are errors
    return axes


LINE = Line("seen", "main", (0.0, 1.0, 5.0), (0.9, None, 0.5), (0.8, 0.6, 0.4), (1.0, 0.9, 0.6))


def test_a_gap_stays_a_gap_and_the_band_is_drawn():
    axes = plotted(chart(lines=(LINE,), rules=(Rule("chance", "chance", 0.5),), shares=True))
    line = axes.get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), [0.9, np.nan, 0.5])
    assert len(axes.collections) == 1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["seen", "chance"]
    assert "60\xa0%" in [tick.get_text() for tick in axes.get_yticklabels()]


@pytest.mark.parametrize("kind", ["linear", "symlog", "apart"])
def test_values_stand_where_they_stand_on_the_page(kind):
    xs = (0.0, 1.0, 2.0, 64.0, 1000.0)
    axes = plotted(chart(lines=(Line("seen", "main", xs, xs),), x_kind=kind))
    on_page = Scale(0.0, 1000.0, 0.0, 1.0, kind, 1.0)
    pixels = axes.transData.transform([(x, 0.0) for x in xs])[:, 0]
    shares = (pixels - pixels[0]) / (pixels[-1] - pixels[0])
    np.testing.assert_allclose(shares, [on_page(x) for x in xs], atol=1e-9)


def test_all_that_a_chart_may_hold_is_drawn():
    dots = (
        Dot(1.0, 2.0, "tip", low=1.0, high=3.0, mark=7),
        Dot(2.0, 3.0, "tip", low=2.0, open_end=True, left=1.5, right=2.5),
    )
    axes = plotted(
        chart(
            lines=(Line("mean", "second", (1.0, 2.0), (2.0, 3.0), places="dashes"),),
            dots=(Dots("One canary", "main", dots),),
            bars=Bars("References", "control", (0.0, 1.0, 2.0), (3.0, 4.0)),
            flags=(Flag(1.0, "first", "main", "tip"), Flag(1.2, "second", "main", "tip")),
            mark=(0.5, "planted"),
            seams=(1.5,),
        )
    )
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["References", "mean", "One canary", "One canary, at least"]
    assert {text.get_text() for text in axes.texts} == {"7", "first", "second", "planted"}


def test_a_strip_has_a_row_a_name():
    rows = (
        StripRow("From step 40", "main", (40.0, 70.0, "tip"), ((90.0, "tip"),)),
        StripRow("Never", "control", stroke="dotted"),
    )
    axes = plotted(Strip("Run", "", "Step", 220.0, rows, "windows", "checkpoints", "main"))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["From step 40", "Never"]


@pytest.mark.parametrize("text", [r"$\frac{1}$", "_hidden", "50\u202f%", "a_b^c", "<b>"])
def test_texts_are_drawn_as_they_are(text):
    axes = plotted(chart(title=text, x_label=text, lines=(Line(text, "main", (0, 1), (0, 1)),)))
    assert len(axes.get_legend().get_texts()) == 1
    assert axes.get_title().replace("\\$", "$").strip() == text.replace("\u202f", "\xa0")


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="A plot needs matplotlib") as caught:
        new_figure(shown=False)
    assert "notebook" in caught.value.hint
