"""The paper of a chart: where its axes run, what stands in the margins."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from remnant.report.charts.label_layout import fitted, flag_rows, spread, thinned
from remnant.report.charts.scale import Scale
from remnant.report.charts.shapes import Chart
from remnant.report.charts.svg import tag, text
from remnant.report.numerals import lag_text, percent, power_text

LETTER = 6.6  # widths of a plain and a bold letter in pixels, generous for any system's font
_BOLD_LETTER = 8.0
ROW = 15.0  # least distance between two labels, in pixels
_TOP = 28.0
_LABEL_SHARE = 0.4  # of a chart's width, at most, for names beside the plot


@dataclass(frozen=True, slots=True)
class Frame:
    """A chart with its scales.

    Attributes:
        width, height: Of the whole picture, in pixels.
        left, right: Edges of the plot, in pixels.
        flag_rows: How high above the plot each flag's name stands, 0 is the lowest.
    """

    chart: Chart
    width: float
    height: float
    left: float
    right: float
    x: Scale
    y: Scale
    flag_rows: tuple[int, ...]


def frame_of(chart: Chart, width: int, height: int, *, direct_labels: bool) -> Frame:
    """Choose the scales; flags that stand in several rows make the chart higher."""
    low, high, lowest = _y_range(chart)
    first, last, threshold = _x_range(chart)
    labels = [label for label, _, _ in _ends(chart)] if direct_labels else []
    # Without names at the right there must be room for half of the last tick's number.
    margin = min(max(14.0, len(x_text(chart, round(last))) * LETTER / 2 + 2), width / 4)
    longest = min(max(map(len, labels), default=0) * _BOLD_LETTER, _LABEL_SHARE * width)
    right = width - (longest + 16 if labels else margin)
    bare = Scale(low, high, 0.0, 1.0, chart.y_kind, lowest)
    left = max(len(y_text(chart, tick)) for tick in bare.ticks(6)) * LETTER + 34
    left = min(left, _LABEL_SHARE * width)
    # A little room, so that the planting line does not hide in the axis, nor dots in the labels.
    inset_left, inset_right = (30.0, 30.0) if chart.dots else (14.0, 0.0)
    near = left + inset_left
    far = right - inset_right
    widths = [flag_width(flag_text(flag.label, width)) for flag in chart.flags]
    for flag, wide in zip(chart.flags, widths, strict=True):
        share = Scale(first, last, 0.0, 1.0, chart.x_kind, threshold)(flag.x)
        if share > 0:
            far = min(far, near + max(40.0, width - 4 - wide - near) / share)
    x = Scale(first, last, near, far, chart.x_kind, threshold)
    rows = flag_rows([x(flag.x) for flag in chart.flags], widths)
    raised = (max(rows) + 1) * ROW if rows else 0.0
    top = 44.0 if chart.mark else _TOP + raised
    y = Scale(low, high, height + raised - 46.0, top, chart.y_kind, lowest)
    edge = min(right, far + inset_right)
    return Frame(chart, float(width), height + raised, left, edge, x, y, tuple(rows))


def flag_text(label: str, width: float) -> str:
    """A flag's name, cut if it would take more than its share of the chart."""
    return fitted(label, _LABEL_SHARE * width, LETTER)


def flag_width(label: str) -> float:
    """Room that a flag's name takes to the right of its line, in pixels."""
    return len(label) * LETTER + 8


def axes(frame: Frame) -> list[Markup]:
    """The plot, its grid, both axes and their names."""
    left, right, bottom, top = frame.left, frame.right, frame.y.first, frame.y.last
    chart = frame.chart
    parts = [
        tag("rect", x=left, y=top, width=right - left, height=bottom - top, class_="plot"),
    ]
    for tick in frame.y.ticks(6):
        y = frame.y(tick)
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        parts.append(
            text(fitted(y_text(chart, tick), left - 8, LETTER), left - 8, y + 4, "tick end")
        )
    for tick in _x_ticks(frame):
        x = frame.x(tick)
        parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(x_text(chart, tick), x, bottom + 19, "tick middle"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts += _break(frame)
    middle = (left + right) / 2
    beside = 2 * min(middle, frame.width - middle)
    x_name = fitted(chart.x_label, beside, LETTER)
    parts.append(text(x_name, middle, frame.height - 8, "name middle"))
    parts.append(text(fitted(chart.y_label, frame.width - 4, LETTER), 2, 13, "name"))
    return parts


def direct_labels(frame: Frame) -> list[Markup]:
    """Names of lines and rules at their right ends, moved apart."""
    ends = sorted(_ends(frame.chart), key=lambda end: frame.y(end[2]))
    rows = spread([frame.y(y) for _, _, y in ends], low=frame.y.last + 4, high=frame.y.first - 4)
    right = frame.right
    parts = []
    for (label, tone, y), row in zip(ends, rows, strict=True):
        there = frame.y(y)
        parts.append(
            tag(
                "path",
                d=f"M{right + 1:.1f} {there:.1f}L{right + 9:.1f} {row:.1f}",
                class_=f"lead tone-{tone}",
            )
        )
        shown = fitted(label, frame.width - right - 12, _BOLD_LETTER)
        parts.append(text(shown, right + 12, row + 4, f"label tone-{tone}"))
    return parts


def y_text(chart: Chart, value: float, *, fine: bool = False) -> str:
    """A value of the vertical axis in print."""
    if chart.shares:
        return percent(value, digits=1 if fine or round(value * 100, 6) % 1 else 0)
    if fine:
        return f"{value:.3f}".replace("-", "−")
    return lag_text(value) if abs(value) >= 1000 else f"{value:g}".replace("-", "−")


def x_text(chart: Chart, value: float) -> str:
    """A value of the horizontal axis in print."""
    if chart.x_form == "share":
        return percent(value, digits=1 if round(value * 100, 6) % 1 else 0)
    if chart.x_form == "number" and (0 < abs(value) < 0.001 or abs(value) >= 1e6):
        return ("−" if value < 0 else "") + power_text(abs(value))
    if chart.x_form == "number" and abs(value) < 1000:
        return f"{value:.{chart.x_digits}g}".replace("-", "−")
    return "never" if chart.x_kind == "apart" and value == 0 else lag_text(value)


def _y_range(chart: Chart) -> tuple[float, float, float]:
    """Both ends, and where a log scale begins."""
    values = [rule.y for rule in chart.rules]
    for line in chart.lines:
        ends = (*line.low, *line.high) if line.stroke == "full" else ()
        values += [v for v in (*line.y, *ends) if v is not None]
    if chart.y_kind == "log":
        lowest = min((v for v in values if v > 0), default=0.001)
        return lowest, max(values, default=1.0), lowest
    if chart.y_from is not None:
        values.append(chart.y_from)
    elif chart.dots:
        values.append(0.0)
    for dot in (dot for dots in chart.dots for dot in dots.dots):
        values += [v for v in (dot.y, dot.low, dot.high) if v is not None]
    if chart.bars is not None:
        return 0.0, 1.06 * max(*values, *chart.bars.heights), 1.0
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = low - room, high + room
    most = 0.02 if chart.dots else 0.0  # a dot at an end is not to hang over it
    return (max(low, -most), min(high, 1.0 + most), 1.0) if chart.shares else (low, high, 1.0)


def _x_range(chart: Chart) -> tuple[float, float, float]:
    """Both ends, and from where on a symlog or log scale is logarithmic."""
    xs = [x for line in chart.lines for x in line.x] + ([chart.mark[0]] if chart.mark else [])
    for dot in (dot for dots in chart.dots for dot in dots.dots):
        xs += [x for x in (dot.x, dot.left, dot.right) if x is not None]
    xs += [flag.x for flag in chart.flags]
    xs += [] if chart.bars is None else chart.bars.edges
    first, last = min(xs), max(xs)
    if first == last:
        last = first + 1
    if chart.x_kind == "log":
        first = min((x for x in xs if x > 0), default=0.001)
    return first, last, min((x for x in xs if x > 0), default=1.0)


def _x_ticks(frame: Frame) -> list[float]:
    wanted = frame.chart.x_ticks
    if wanted is None:
        return frame.x.ticks(max(4, int((frame.right - frame.left) / 75)))
    widths = [len(x_text(frame.chart, tick)) * LETTER for tick in wanted]
    return [wanted[i] for i in thinned([frame.x(tick) for tick in wanted], widths)]


def _break(frame: Frame) -> list[Markup]:
    """Two slanted strokes where an apart scale leaves out what lies between 0 and 1."""
    if frame.chart.x_kind != "apart" or frame.x.low >= 1 or frame.x.high <= 1:
        return []
    y, middle = frame.y.first, (frame.x(0.0) + frame.x(1.0)) / 2
    strokes = "".join(f"M{middle + d - 3:.1f} {y + 5:.1f}l6 -10" for d in (-3, 3))
    return [
        tag("line", x1=middle, x2=middle, y1=frame.y.last, y2=y - 8, class_="divider"),
        tag("line", x1=middle - 3, x2=middle + 3, y1=y, y2=y, class_="blank"),
        tag("path", d=strokes, class_="axis"),
    ]


def _ends(chart: Chart) -> list[tuple[str, str, float]]:
    """Label, tone and height of everything that is named at its right end."""
    ends = [(rule.label, rule.tone, rule.y) for rule in chart.rules]
    for line in chart.lines:
        known = [y for y in line.y if y is not None]
        if known and line.label not in chart.unnamed:
            ends.append((line.label, line.tone, known[-1]))
    return ends
