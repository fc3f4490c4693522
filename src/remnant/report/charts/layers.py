"""The shapes of a chart as SVG, each within a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from markupsafe import Markup

from remnant.report.charts.frame import LETTER, ROW, Frame, flag_text, x_text, y_text
from remnant.report.charts.label_layout import Box, free_box, scattered, swarm
from remnant.report.charts.shapes import Bars, Dot, Dots, Line, Rule
from remnant.report.charts.svg import tag, text

_MOST_DOTS = 80
_RADIUS = 3.6
_DASH = 9.0
_NOTE = 12.0  # height of a number beside a dot
_BESIDE = 14.0  # pixels within which dots are marked together


def rule(frame: Frame, found: Rule) -> Markup:
    """A horizontal line across the plot."""
    y = frame.y(found.y)
    ends = {"x1": frame.left, "x2": frame.right, "y1": y, "y2": y}
    return tag("line", tag("title", found.label), **ends, class_=f"rule tone-{found.tone}")


def mark(frame: Frame) -> list[Markup]:
    """The chart's vertical line with its word."""
    if frame.chart.mark is None:
        return []
    lag, label = frame.chart.mark
    x = frame.x(lag)
    return [
        tag("line", x1=x, x2=x, y1=frame.y.last - 4, y2=frame.y.first, class_="mark"),
        text(label, x, frame.y.last - 9, "note middle"),
    ]


def seams(frame: Frame) -> list[Markup]:
    """Thin vertical lines through the plot, where they fall into it."""
    top, bottom = frame.y.last, frame.y.first
    places = [frame.x(at) for at in frame.chart.seams if frame.x.low <= at <= frame.x.high]
    return [tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="seam") for x in places]


def flags(frame: Frame) -> list[Markup]:
    """Vertical lines, each with its name to the right of its top."""
    parts = []
    for flag, row in zip(frame.chart.flags, frame.flag_rows, strict=True):
        x, top = frame.x(flag.x), frame.y.last - 4 - row * ROW
        tip = tag("title", flag.tip)
        line = {"x1": x, "x2": x, "y1": top - 9, "y2": frame.y.first}
        parts.append(tag("line", tip, **line, class_=f"flag tone-{flag.tone}"))
        label = flag_text(flag.label, frame.width)
        parts.append(text(label, x + 4, top, f"label tone-{flag.tone}"))
    return parts


def bars(frame: Frame, found: Bars) -> list[Markup]:
    """One rectangle a bin, from the horizontal axis up."""
    parts = []
    for i, height in enumerate(found.heights):
        left, right = frame.x(found.edges[i]), frame.x(found.edges[i + 1])
        top = frame.y(height)
        tip = (
            f"{x_text(frame.chart, found.edges[i])} to {x_text(frame.chart, found.edges[i + 1])} "
            f"bits: {y_text(frame.chart, height)}"
        )
        # A hair's breadth between bars, however thin they are.
        width = max(right - left - 1.0, 0.6 * (right - left))
        place = {"x": left, "y": top, "width": width, "height": frame.y.first - top}
        parts.append(tag("rect", tag("title", tip), **place, class_=f"bar tone-{found.tone}"))
    return parts


def band(frame: Frame, line: Line) -> Markup:
    """The line's interval as an area."""
    pieces = []
    for known, run in groupby(line.band, key=lambda end: end is not None):
        ends = [end for end in run if end is not None]
        if known and len(ends) > 1:
            there = [(x, high) for x, _, high in ends]
            back = [(x, low) for x, low, _ in reversed(ends)]
            pieces.append(_path(frame, there + back) + "Z")
    return tag("path", d="".join(pieces), class_=f"band tone-{line.tone}")


def line(frame: Frame, found: Line) -> Markup:
    """The line alone."""
    pieces = []
    for known, run in groupby(zip(found.x, found.y, strict=True), key=lambda p: p[1] is not None):
        if known:
            pieces.append(_path(frame, [(x, y) for x, y in run if y is not None]))
    return tag("path", d="".join(pieces), class_=f"line tone-{found.tone}{_stroke(found)}")


def places(frame: Frame, found: Line) -> list[Markup]:
    """A dot or a dash at each place of a line, with its numbers when it is pointed at."""
    if len(found.x) > _MOST_DOTS or found.places == "none":
        return []
    parts = []
    for x, y, end in zip(found.x, found.y, found.band or [None] * len(found.x), strict=True):
        if y is None:
            continue
        words = tag("title", _tip(frame, found, x, y, end))
        here, there = frame.x(x), frame.y(y)
        if found.places == "dashes":
            ends = {"x1": here - _DASH, "x2": here + _DASH, "y1": there, "y2": there}
            parts.append(tag("line", words, **ends, class_=f"dash tone-{found.tone}"))
        else:
            kind = f"dot tone-{found.tone}{_stroke(found)}"
            parts.append(tag("circle", words, cx=here, cy=there, r=2.6, class_=kind))
    return parts


def dots(frame: Frame, found: Dots) -> list[Markup]:
    """Dots with their intervals, moved aside where they would cover each other."""
    whiskers, circles = [], []
    for dot, x in _placed(frame, found):
        y = frame.y(dot.y)
        if dot.low is not None:
            top = frame.y.last if dot.high is None else frame.y(dot.high)
            bottom = frame.y(dot.low)
            if bottom - top > 2 * _RADIUS:
                kind = f"whisker tone-{found.tone}"
                whiskers.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=kind))
        if dot.left is not None and dot.right is not None:
            ends = frame.x(dot.left), frame.x(dot.right)
            if ends[1] - ends[0] > 2 * _RADIUS:
                kind = f"whisker tone-{found.tone}"
                whiskers.append(tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_=kind))
        kind = f"{'ring' if dot.open_end else 'spot'} tone-{found.tone}"
        circles.append(tag("circle", tag("title", dot.tip), cx=x, cy=y, r=_RADIUS, class_=kind))
    return [*whiskers, *circles]


def dot_marks(frame: Frame, groups: Iterable[Dots]) -> list[Markup]:
    """The numbers of dots, one text for dots that lie together."""
    marked = [
        (x, frame.y(dot.y), dot.mark)
        for group in groups
        for dot, x in _placed(frame, group)
        if dot.mark
    ]
    together: list[list[tuple[float, float, int]]] = []
    for place in sorted(marked):
        near = (
            some
            for some in together
            if any(abs(place[0] - x) < _BESIDE and abs(place[1] - y) < _BESIDE for x, y, _ in some)
        )
        if (found := next(near, None)) is not None:
            found.append(place)
        else:
            together.append([place])
    taken = [_around([(x, y)], _RADIUS) for x, y, _ in marked]
    within = (frame.left, frame.y.last - ROW, frame.right, frame.y.first)
    parts = []
    for some in together:
        words = runs_of(number for _, _, number in some)
        box, ends = free_box(
            _around([(x, y) for x, y, _ in some], _RADIUS + 1),
            width=LETTER * len(words),
            height=_NOTE,
            within=within,
            taken=taken,
        )
        taken.append(box)
        at = box[2] if ends else box[0]
        parts.append(text(words, at, box[3] - 1, "note end" if ends else "note"))
    return parts


def _around(places: Sequence[tuple[float, float]], room: float) -> Box:
    """The box around dots, with room on every side."""
    xs, ys = [x for x, _ in places], [y for _, y in places]
    return (min(xs) - room, min(ys) - room, max(xs) + room, max(ys) + room)


def runs_of(numbers: Iterable[int]) -> str:
    """Return numbers in order, three or more that follow each other as a run.

    Example:
        >>> runs_of([7, 1, 5, 6, 3])
        '1, 3, 5–7'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def _stroke(curve: Line) -> str:
    return "" if curve.stroke == "full" else f" {curve.stroke}"


def _tip(
    frame: Frame, curve: Line, x: float, y: float, end: tuple[float, float, float] | None
) -> str:
    chart = frame.chart
    tip = f"{curve.label}, {chart.x_word} {x_text(chart, x)}: {y_text(chart, y, fine=True)}"
    if end is not None:
        low, high = (y_text(chart, v, fine=True) for v in end[1:])
        tip += f" ({low} to {high})"
    return tip


def _placed(frame: Frame, found: Dots) -> list[tuple[Dot, float]]:
    """The dots of a group, each with its place across the plot."""
    if any(dot.mark for group in frame.chart.dots for dot in group.dots):
        return _scattered(frame, found)
    columns: dict[float, list[Dot]] = {}
    for dot in found.dots:
        columns.setdefault(dot.x, []).append(dot)
    middles = sorted(frame.x(x) for dots in frame.chart.dots for x in {dot.x for dot in dots.dots})
    room = min((b - a for a, b in pairwise(middles) if b > a), default=44.0)
    most = min(26.0, max(0.0, room / 2 - _RADIUS))
    placed = []
    for x, column in columns.items():
        column.sort(key=lambda dot: -dot.y)
        moves = swarm([frame.y(dot.y) for dot in column], gap=2 * _RADIUS + 1, most=most)
        placed += [(dot, frame.x(x) + move) for dot, move in zip(column, moves, strict=True)]
    return placed


def _path(frame: Frame, places: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in places)


def _scattered(frame: Frame, found: Dots) -> list[tuple[Dot, float]]:
    """The dots of a group, each moved a little where it would cover one of any group."""
    every = [(group, dot) for group in frame.chart.dots for dot in group.dots]
    places = [(frame.x(dot.x), frame.y(dot.y)) for _, dot in every]
    moves = scattered(places, gap=2 * _RADIUS + 1, most=4 * _RADIUS)
    return [
        (dot, x + move)
        for (group, dot), (x, _), move in zip(every, places, moves, strict=True)
        if group is found
    ]
