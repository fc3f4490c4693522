"""A chart as one inline SVG: no script, no font, no file beside it.

Colours are CSS classes (``tone-main``, ``tone-control``, …) so that the page's style sheet, light
or dark, paints it.
"""

from __future__ import annotations

from markupsafe import Markup

from remnant.report.charts import layers
from remnant.report.charts.frame import Frame, axes, frame_of
from remnant.report.charts.frame import direct_labels as name_ends
from remnant.report.charts.shapes import Chart, Line
from remnant.report.charts.svg import tag


def draw(chart: Chart, *, ident: str, width: int, height: int, direct_labels: bool) -> Markup:
    """The chart as an ``<svg>`` element.

    Guarantees:
        * Every line, band, dot and bar lies inside the plot.
        * Names at the right and on flags do not cover each other.
        * All text is escaped.

    Args:
        chart: What to draw.
        ident: Prefix of the element ids, unique in the page.
        width, height: In pixels; the element scales down with the page, and flags in several rows
            make it higher.
        direct_labels: Name lines and rules at their right ends.
    """
    frame = frame_of(chart, width, height, direct_labels=direct_labels)
    parts = [
        tag("title", chart.title, id=f"{ident}-title"),
        tag("desc", chart.description, id=f"{ident}-desc"),
        *axes(frame),
        *layers.seams(frame),
        *([] if chart.bars is None else layers.bars(frame, chart.bars)),
        *(layers.rule(frame, rule) for rule in chart.rules),
        *layers.mark(frame),
        *(layers.band(frame, line) for line in reversed(chart.lines) if line.stroke == "full"),
        *(part for line in reversed(chart.lines) for part in _line(frame, line, over=False)),
        *(part for dots in chart.dots for part in layers.dots(frame, dots)),
        *(part for line in reversed(chart.lines) for part in _line(frame, line, over=True)),
        *layers.dot_marks(frame, chart.dots),
        *layers.flags(frame),
        *(name_ends(frame) if direct_labels else []),
    ]
    return tag(
        "svg",
        Markup("\n").join(parts),
        viewBox=f"0 0 {width} {frame.height:g}",
        width=width,
        height=f"{frame.height:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )


def _line(frame: Frame, line: Line, *, over: bool) -> list[Markup]:
    """What of a line lies over the dots, which are its dashes, or under them."""
    if line.places == "dashes":
        return layers.places(frame, line) if over else [layers.line(frame, line)]
    return [] if over else [layers.line(frame, line), *layers.places(frame, line)]
