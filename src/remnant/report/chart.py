"""A line chart with bands as one inline SVG: no script, no font, no file beside it.

Colours are CSS classes (``tone-main``, ``tone-control``, …) so that the page's style sheet, light
or dark, paints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from remnant.report.curve import lag_text, percent
from remnant.report.scale import Kind, Scale
from remnant.report.svg import tag, text

_LETTER = 6.6  # widths of a plain and a bold letter in pixels, generous for any system's font
_BOLD_LETTER = 8.0
_ROW = 15  # least distance between two labels, in pixels
_MOST_DOTS = 80


@dataclass(frozen=True, slots=True)
class Line:
    """One series; None leaves a gap. The band is drawn where both ends are known."""

    label: str
    tone: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()

    @property
    def band(self) -> tuple[tuple[float, float, float] | None, ...]:
        """Lag, low and high at each place, or None in a gap."""
        ends = zip(self.x, self.low, self.high, strict=False)
        return tuple(None if lo is None or hi is None else (x, lo, hi) for x, lo, hi in ends)


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line with a meaning, such as chance or the limit."""

    label: str
    tone: str
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw.

    Attributes:
        title, description: Read out by a screen reader in place of the picture.
        mark: Where a vertical line stands, such as the planting, and what it says; or None.
        shares: Whether y is a share, printed in percent and kept between 0 and 1.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    rules: tuple[Rule, ...] = ()
    mark: tuple[float, str] | None = None
    shares: bool = False
    x_kind: Kind = "linear"


@dataclass(frozen=True, slots=True)
class _Frame:
    chart: Chart
    width: int
    height: int
    x: Scale
    y: Scale


def draw(chart: Chart, *, ident: str, width: int, height: int, direct_labels: bool) -> Markup:
    """The chart as an ``<svg>`` element.

    Guarantees:
        * Every line and band lies inside the plot.
        * All text is escaped.

    Args:
        chart: What to draw.
        ident: Prefix of the element ids, unique in the page.
        width, height: In pixels; the element scales down with the page.
        direct_labels: Name lines and rules at their right ends.
    """
    frame = _frame(chart, width, height, direct_labels)
    parts = [
        tag("title", chart.title, id=f"{ident}-title"),
        tag("desc", chart.description, id=f"{ident}-desc"),
        *_axes(frame),
        *(_rule(frame, rule) for rule in chart.rules),
        *_mark(frame),
        *(_band(frame, line) for line in reversed(chart.lines)),
        *(part for line in reversed(chart.lines) for part in _line(frame, line)),
        *(_direct_labels(frame) if direct_labels else []),
    ]
    return tag(
        "svg",
        Markup("\n").join(parts),
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )


def _frame(chart: Chart, width: int, height: int, direct_labels: bool) -> _Frame:
    low, high = _y_range(chart)
    xs = [x for line in chart.lines for x in line.x] + ([chart.mark[0]] if chart.mark else [])
    positive = [x for x in xs if x > 0]
    first, last = min(xs), max(xs)
    if first == last:
        last = first + 1
    threshold = min(positive, default=1.0)
    bare = Scale(first, last, 0.0, 1.0, chart.x_kind, threshold)
    labels = [label for label, _, _ in _ends(chart)] if direct_labels else []
    right = width - (max(map(len, labels)) * _BOLD_LETTER + 16 if labels else 14)
    y = Scale(low, high, height - 46.0, 44.0 if chart.mark else 28.0)
    left = max(len(_y_text(chart, tick)) for tick in y.ticks(6)) * _LETTER + 34
    # A little room on the left, so that the planting line does not hide in the axis.
    x = Scale(bare.low, bare.high, left + 14, right, chart.x_kind, threshold)
    return _Frame(chart, width, height, x, y)


def _y_range(chart: Chart) -> tuple[float, float]:
    found = [rule.y for rule in chart.rules]
    for line in chart.lines:
        found += [v for v in (*line.y, *line.low, *line.high) if v is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = low - room, high + room
    return (max(low, 0.0), min(high, 1.0)) if chart.shares else (low, high)


def _axes(frame: _Frame) -> list[Markup]:
    left, right = frame.x.first - 14, frame.x.last
    bottom, top = frame.y.first, frame.y.last
    parts = [
        tag(
            "rect",
            x=left,
            y=top,
            width=right - left,
            height=bottom - top,
            class_="plot",
        )
    ]
    for tick in frame.y.ticks(6):
        y = frame.y(tick)
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        parts.append(text(_y_text(frame.chart, tick), left - 8, y + 4, "tick end"))
    for tick in frame.x.ticks(max(3, int((right - left) / 75))):
        x = frame.x(tick)
        parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(lag_text(tick), x, bottom + 19, "tick middle"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(text(frame.chart.x_label, (left + right) / 2, frame.height - 8, "name middle"))
    parts.append(text(frame.chart.y_label, 2, 13, "name"))
    return parts


def _rule(frame: _Frame, rule: Rule) -> Markup:
    y = frame.y(rule.y)
    ends = {"x1": frame.x.first - 14, "x2": frame.x.last, "y1": y, "y2": y}
    return tag("line", tag("title", rule.label), **ends, class_=f"rule tone-{rule.tone}")


def _mark(frame: _Frame) -> list[Markup]:
    if frame.chart.mark is None:
        return []
    lag, label = frame.chart.mark
    x = frame.x(lag)
    return [
        tag("line", x1=x, x2=x, y1=frame.y.last - 4, y2=frame.y.first, class_="mark"),
        text(label, x, frame.y.last - 9, "note middle"),
    ]


def _band(frame: _Frame, line: Line) -> Markup:
    pieces = []
    for known, run in groupby(line.band, key=lambda end: end is not None):
        ends = [end for end in run if end is not None]
        if known and len(ends) > 1:
            there = [(x, high) for x, _, high in ends]
            back = [(x, low) for x, low, _ in reversed(ends)]
            pieces.append(_path(frame, there + back) + "Z")
    return tag("path", d="".join(pieces), class_=f"band tone-{line.tone}")


def _line(frame: _Frame, line: Line) -> list[Markup]:
    pieces = []
    for known, run in groupby(zip(line.x, line.y, strict=True), key=lambda p: p[1] is not None):
        if known:
            pieces.append(_path(frame, [(x, y) for x, y in run if y is not None]))
    parts = [tag("path", d="".join(pieces), class_=f"line tone-{line.tone}")]
    if len(line.x) > _MOST_DOTS:
        return parts
    for x, y, end in zip(line.x, line.y, line.band or [None] * len(line.x), strict=True):
        if y is None:
            continue
        tip = f"{line.label}, lag {lag_text(x)}: {_y_text(frame.chart, y, fine=True)}"
        if end is not None:
            low, high = (_y_text(frame.chart, v, fine=True) for v in end[1:])
            tip += f" ({low} to {high})"
        place = {"cx": frame.x(x), "cy": frame.y(y)}
        parts.append(
            tag("circle", tag("title", tip), **place, r=2.6, class_=f"dot tone-{line.tone}")
        )
    return parts


def _ends(chart: Chart) -> list[tuple[str, str, float]]:
    """Label, tone and height of everything that is named at its right end."""
    ends = [(rule.label, rule.tone, rule.y) for rule in chart.rules]
    for line in chart.lines:
        known = [y for y in line.y if y is not None]
        if known:
            ends.append((line.label, line.tone, known[-1]))
    return ends


def _direct_labels(frame: _Frame) -> list[Markup]:
    ends = sorted(_ends(frame.chart), key=lambda end: frame.y(end[2]))
    rows = spread([frame.y(y) for _, _, y in ends], low=frame.y.last + 4, high=frame.y.first - 4)
    right = frame.x.last
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
        parts.append(text(label, right + 12, row + 4, f"label tone-{tone}"))
    return parts


def spread(places: list[float], *, low: float, high: float, gap: float = _ROW) -> list[float]:
    """Move sorted places apart to at least ``gap``, as little as a simple pass can."""
    moved = list(places)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    if moved and moved[-1] > high:
        moved[-1] = high
    for i in range(len(moved) - 2, -1, -1):
        moved[i] = min(moved[i], moved[i + 1] - gap)
    return [max(place, low + i * gap) for i, place in enumerate(moved)] if moved else moved


def _path(frame: _Frame, places: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in places)


def _y_text(chart: Chart, value: float, *, fine: bool = False) -> str:
    if chart.shares:
        return percent(value, digits=1 if fine or round(value * 100, 6) % 1 else 0)
    return f"{value:.3f}" if fine else f"{value:g}"
