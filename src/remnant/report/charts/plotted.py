"""A chart on axes of matplotlib, from the same data as the page's, in the page's colours."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.errors import import_failure
from remnant.report.charts.frame import frame_of, x_text, y_text
from remnant.report.charts.scale import Scale
from remnant.report.charts.shapes import Chart, Dots, Line, Strip
from remnant.report.numerals import SPACE, lag_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = Path(__file__).parents[1] / "templates" / "style.css"
_DASHES = {"full": "-", "dashed": "--", "dotted": ":", "chain": "-.", "thin": "-"}
_SIZE = (8.8, 4.4)  # inches
_MOST_TICKS = 8
_ROOM = 0.03  # of the axis, beside the outermost values


def new_figure(*, shown: bool) -> tuple[Figure, Axes]:
    """Make a figure with axes.

    Args:
        shown: Whether notebooks and windows show it; else it belongs to nobody but the caller.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        if shown:
            from matplotlib import pyplot

            figure, axes = pyplot.subplots(figsize=_SIZE, layout="constrained")
            return figure, axes
        from matplotlib.figure import Figure
    except ImportError as fault:
        raise import_failure(
            fault, library="matplotlib", message="A plot needs matplotlib.", extra="notebook"
        ) from fault
    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def plot(chart: Chart | Strip, axes: Axes) -> None:
    """Draw a chart; values keep the units of its data."""
    axes.set_title(_words(chart.title))
    axes.set_xlabel(_words(chart.x_label))
    if isinstance(chart, Strip):
        _strip(chart, axes)
        return
    axes.set_ylabel(_words(chart.y_label))
    frame = frame_of(chart, 880, 400, direct_labels=False)
    _scales(chart, axes, frame.x, frame.y)
    if chart.bars is not None:
        edges, colour = np.asarray(chart.bars.edges), _colour(chart.bars.tone)
        axes.stairs(
            chart.bars.heights,
            edges,
            fill=True,
            alpha=0.45,
            color=colour,
            label=_words(chart.bars.label),
        )
    for place in chart.seams:
        axes.axvline(place, color=_colour("ink"), alpha=0.3, linewidth=0.75)
    for place, line in enumerate(chart.lines):
        _line(line, axes, height=3 - place / len(chart.lines))
    for rule in chart.rules:
        colour = _colour(rule.tone)
        axes.axhline(rule.y, color=colour, linestyle="--", linewidth=1.2, label=_words(rule.label))
    for dots in chart.dots:
        _dots(dots, axes)
    for flag in chart.flags:
        axes.axvline(flag.x, color=_colour(flag.tone), linewidth=1.2)
        _note(axes, flag.label, flag.x, upright=len(chart.flags) > 1)
    if chart.mark is not None:
        axes.axvline(chart.mark[0], color=_colour("ink"), linewidth=1.0)
        _note(axes, chart.mark[1], chart.mark[0])
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False)


def _line(line: Line, axes: Axes, *, height: float) -> None:
    """Draw a line; the one with the largest height lies over the others."""
    y = np.array([np.nan if value is None else value for value in line.y], dtype=float)
    colour, full = _colour(line.tone), line.stroke == "full"
    axes.plot(
        line.x,
        y,
        color=colour,
        linestyle=_DASHES[line.stroke],
        linewidth=2.0 if full else 1.2,
        marker={"dots": "o", "dashes": "_", "none": ""}[line.places] if full else "",
        markersize=4 if line.places == "dots" else 9,
        label=_words(line.label),
        zorder=height,
    )
    band = [ends for ends in line.band if ends is not None]
    if band and full:
        places, low, high = zip(*band, strict=True)
        axes.fill_between(places, low, high, color=colour, alpha=0.16, linewidth=0)


def _dots(group: Dots, axes: Axes) -> None:
    colour, top = _colour(group.tone), axes.get_ylim()[1]
    for dot in group.dots:
        if dot.low is not None:
            high = top if dot.high is None else dot.high
            axes.plot([dot.x, dot.x], [dot.low, high], color=colour, alpha=0.4, linewidth=1.2)
        if dot.left is not None and dot.right is not None:
            ends = [dot.left, dot.right]
            axes.plot(ends, [dot.y, dot.y], color=colour, alpha=0.4, linewidth=1.2)
        if dot.mark:
            _annotate(axes, str(dot.mark), (dot.x, dot.y), xytext=(4, 4))
    for hollow in (False, True):
        chosen = [dot for dot in group.dots if dot.open_end is hollow]
        if chosen:
            axes.scatter(
                [dot.x for dot in chosen],
                [dot.y for dot in chosen],
                s=22,
                color=colour,
                facecolors="none" if hollow else None,
                zorder=4,
                label=_words(f"{group.label}, at least" if hollow else group.label),
            )


def _strip(strip: Strip, axes: Axes) -> None:
    for place, row in enumerate(strip.rows):
        begin, end, _ = (0.0, 0.0, "") if row.block is None else row.block
        colour = _colour(row.tone)
        dashes = _DASHES[row.stroke]
        axes.plot(
            [end, strip.length], [place, place], color=colour, linestyle=dashes, linewidth=1.2
        )
        if row.block is not None:
            axes.barh(place, end - begin, left=begin, height=0.6, color=colour, alpha=0.45)
        axes.scatter([x for x, _ in row.dots], [place] * len(row.dots), s=10, color=colour)
    axes.set_yticks(range(len(strip.rows)), [_words(row.name) for row in strip.rows])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: _words(lag_text(value)))


def _scales(chart: Chart, axes: Axes, x: Scale, y: Scale) -> None:
    bend, straighten = _bends(x)
    if x.kind != "linear":
        axes.set_xscale("function", functions=(bend, straighten))
    first, last = (float(bend(np.float64(end))) for end in (x.low, x.high))
    room = _ROOM * (last - first)
    ends = np.array([first - room, last + room])
    axes.set_xlim(*(straighten(ends).tolist()))
    if y.kind != "linear":
        axes.set_yscale("function", functions=_bends(y))
    axes.set_ylim(y.low, y.high)
    ticks = chart.x_ticks
    if ticks is None or len(ticks) > 2 * _MOST_TICKS:
        ticks = tuple(x.ticks(_MOST_TICKS))
    axes.set_xticks(ticks, [_words(x_text(chart, tick)) for tick in ticks])
    axes.set_yticks(y.ticks(6), [_words(y_text(chart, tick)) for tick in y.ticks(6)])
    axes.minorticks_off()
    axes.grid(axis="y", color=_colour("hair"))
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _bends(scale: Scale) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What maps values to even distances along the axis, and back."""
    if scale.kind == "symlog":
        threshold = scale.threshold
        return (
            lambda v: np.sign(v) * np.log1p(np.abs(v) / threshold),
            lambda v: np.sign(v) * threshold * np.expm1(np.abs(v)),
        )
    if scale.kind == "log":
        return lambda v: np.log10(np.maximum(v, scale.threshold)), lambda v: 10.0**v
    if scale.kind == "apart":
        gap = scale.bend(1.0)
        return (
            lambda v: np.where(v >= 1, gap + np.log2(np.maximum(v, 1.0)), gap * v),
            lambda v: np.where(v >= gap, 2.0 ** np.maximum(v - gap, 0.0), v / gap),
        )
    return np.asarray, np.asarray


def _note(axes: Axes, label: str, x: float, *, upright: bool = False) -> None:
    """A name at the upper end of a vertical line: above the plot, or upright beside the line."""
    at = {"rotation": 90, "va": "top", "xytext": (2, -3)} if upright else {"xytext": (3, 2)}
    _annotate(axes, label, (x, 1.0), xycoords=axes.get_xaxis_transform(), **at)


def _annotate(axes: Axes, label: str, place: tuple[float, float], **style: Any) -> None:
    """A small text beside a place, ``xytext`` points from it."""
    axes.annotate(_words(label), place, textcoords="offset points", fontsize="small", **style)


def _words(text: str) -> str:
    """A text that is drawn as it is: without mathematics, and with spaces that every font has."""
    plain = text.replace(SPACE, "\N{NO-BREAK SPACE}").replace("\N{NON-BREAKING HYPHEN}", "-")
    escaped = plain.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


@cache
def _colours() -> dict[str, str]:
    """The colours of the page in light, by name."""
    light = _STYLE.read_text(encoding="utf-8").partition("}")[0]
    return dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{3,6})", light))


def _colour(tone: str) -> str:
    return _colours()[tone]
