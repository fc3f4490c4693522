"""A chart as inline SVG, drawn for a wide and for a narrow page, with its legend.

It needs no script, no font and no file beside it. Colours are CSS classes (``tone-main``,
``tone-control``, …), so that the page's style sheet, light or dark, paints it.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from remnant.report.charts import layers
from remnant.report.charts.frame import Frame, axes, frame_of
from remnant.report.charts.frame import direct_labels as name_ends
from remnant.report.charts.shapes import Chart, Line, Strip
from remnant.report.charts.strip import draw_strip
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


TONES = ("main", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Size:
    """Of a drawing, in pixels, and whether lines are named at their right ends."""

    width: int
    height: int
    direct_labels: bool


WIDE = Size(880, 400, direct_labels=True)
HALF = Size(430, 290, direct_labels=False)
NARROW = Size(350, 300, direct_labels=False)


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend.

    Attributes:
        kind: ``line`` (no band; a thin one is ``line dashed`` and the like), ``banded``, ``rule``,
            ``dots``, ``ring``, ``bars`` or ``flag``.
    """

    label: str
    tone: str
    kind: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart drawn twice, for a wide and for a narrow page, with its legend."""

    title: str
    wide: Markup
    narrow: Markup
    keys: tuple[Key, ...]


def figure_of(
    chart: Chart | Strip,
    ident: str,
    wide: Size = WIDE,
    *,
    flags: str = "",
    line_keys: tuple[Key, ...] | None = None,
) -> Figure:
    """Draw a chart.

    Args:
        chart: What to draw.
        ident: Prefix of the element ids, unique in the page.
        wide: Size on a wide page; a strip's height follows from its rows.
        flags: What the flags are, for the legend.
        line_keys: Entries that stand for the lines in the legend; by default one a line.
    """
    if isinstance(chart, Strip):
        return _strip_figure(chart, ident, wide)
    if line_keys is None:
        line_keys = tuple(
            Key(line.label, line.tone, "banded" if any(line.band) else _stroked(line))
            for line in chart.lines
        )
    return Figure(
        title=chart.title,
        wide=_draw(chart, f"{ident}-wide", wide),
        narrow=_draw(chart, f"{ident}-narrow", NARROW),
        keys=(
            *(Key(dots.label, dots.tone, "dots") for dots in chart.dots),
            *(
                Key(f"{dots.label}, at least", dots.tone, "ring")
                for dots in chart.dots
                if any(dot.open_end for dot in dots.dots)
            ),
            *([] if chart.bars is None else [Key(chart.bars.label, chart.bars.tone, "bars")]),
            *(Key(flags, flag.tone, "flag") for flag in chart.flags[:1]),
            *line_keys,
            *(Key(rule.label, rule.tone, "rule") for rule in chart.rules),
        ),
    )


def _strip_figure(strip: Strip, ident: str, wide: Size) -> Figure:
    return Figure(
        title=strip.title,
        wide=draw_strip(strip, ident=f"{ident}-wide", width=wide.width),
        narrow=draw_strip(strip, ident=f"{ident}-narrow", width=NARROW.width),
        keys=(
            Key(strip.blocks, strip.key_tone, "bars"),
            Key(strip.dots, strip.key_tone, "dots"),
        ),
    )


def _stroked(line: Line) -> str:
    return "line" if line.stroke == "full" else f"line {line.stroke}"


def _draw(chart: Chart, ident: str, size: Size) -> Markup:
    return draw(
        chart,
        ident=ident,
        width=size.width,
        height=size.height,
        direct_labels=size.direct_labels,
    )
