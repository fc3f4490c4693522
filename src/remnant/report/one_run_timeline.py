"""A run as a strip: when each window planted, and at which checkpoints the canaries were scored."""

from __future__ import annotations

from markupsafe import Markup

from remnant.report.curve import lag_text
from remnant.report.figure import NARROW, WIDE, Figure, Key
from remnant.report.frame import LETTER
from remnant.report.numerals import count_text, counted
from remnant.report.one_run_view import OneRun
from remnant.report.scale import Scale
from remnant.report.shapes import STROKES, Stroke
from remnant.report.svg import tag, text

_ROW = 20.0
_CANARIES = ("canary", "canaries")
_TITLE = "The run, from its first step to its last"


def stroke_of(found: OneRun, window: int) -> Stroke:
    """How a window's lines are drawn: in full for the first, which is judged."""
    first, *others = STROKES
    place = window - found.cohorts[0].window
    return first if place == 0 else others[(place - 1) % len(others)]


def timeline_figure(found: OneRun, ident: str = "") -> Figure:
    """One row a window, and one for the canaries that were never planted."""
    return Figure(
        title=_TITLE,
        wide=_strip(found, f"{ident}timeline-wide", WIDE.width),
        narrow=_strip(found, f"{ident}timeline-narrow", NARROW.width),
        keys=(
            Key("Window in which they were planted", "ceiling", "bars"),
            Key("Checkpoint at which they were scored", "ceiling", "dots"),
        ),
    )


def _strip(found: OneRun, ident: str, width: int) -> Markup:
    windows = sorted({(one.window, one.start) for one in found.cohorts})
    names = [*(f"From step {count_text(start)}" for _, start in windows), "Never planted"]
    left, right = max(map(len, names)) * LETTER + 12, width - 18.0
    top, bottom = 6.0, 6.0 + _ROW * len(names)
    steps = Scale(0.0, float(max(found.steps, 1)), left, right)
    parts = [
        tag("title", _TITLE, id=f"{ident}-title"),
        tag("desc", _description(found, windows), id=f"{ident}-desc"),
        tag("rect", x=left, y=top, width=right - left, height=bottom - top, class_="plot"),
    ]
    for tick in steps.ticks(max(3, int((right - left) / 75))):
        x = steps(tick)
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(lag_text(tick), x, bottom + 19, "tick middle"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(text("Training step", (left + right) / 2, bottom + 38, "name middle"))
    for row, name in enumerate(names):
        y = top + _ROW * (row + 0.5)
        parts.append(text(name, left - 8, y + 4, "tick end"))
        parts += _never(steps, y) if row == len(windows) else _row(found, *windows[row], steps, y)
    return tag(
        "svg",
        Markup("\n").join(parts),
        viewBox=f"0 0 {width} {bottom + 46:g}",
        width=width,
        height=f"{bottom + 46:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )


def _row(found: OneRun, window: int, start: int, steps: Scale, y: float) -> list[Markup]:
    """The window as a block, and the checkpoints on a line after it."""
    mine = [one for one in found.cohorts if one.window == window]
    scored = sorted({step for one in mine for step in one.checkpoints})
    first, last = steps(float(start)), steps(float(start + found.window))
    ends = f"{count_text(start)} to {count_text(start + found.window)}"
    tip = f"Steps {ends}: {_many(found, window)} planted"
    kind = "" if (stroke := stroke_of(found, window)) == "full" else f" {stroke}"
    block = {"x": first, "y": y - 6, "width": last - first, "height": 12.0}
    return [
        tag("path", d=f"M{last:.1f} {y:.1f}H{steps.last:.1f}", class_=f"line tone-ceiling{kind}"),
        tag("rect", tag("title", tip), **block, class_="bar tone-ceiling"),
        *(
            tag(
                "circle",
                tag("title", f"Scored after {lag_text(step)} steps"),
                cx=steps(step),
                cy=y,
                r=2.6,
                class_="dot tone-ceiling",
            )
            for step in scored
        ),
    ]


def _never(steps: Scale, y: float) -> list[Markup]:
    d = f"M{steps.first:.1f} {y:.1f}H{steps.last:.1f}"
    return [tag("path", d=d, class_="line tone-control")]


def _many(found: OneRun, window: int) -> str:
    return counted(sum(one.n for one in found.cohorts if one.window == window), *_CANARIES)


def _description(found: OneRun, windows: list[tuple[int, int]]) -> str:
    planted = [
        f"From step {count_text(start)} to {count_text(start + found.window)}: "
        f"{_many(found, window)} planted."
        for window, start in windows
    ]
    never = f"Never planted: {counted(found.n_unseen, *_CANARIES)}."
    return " ".join([*planted, never, f"The run ends after {counted(found.steps, 'step')}."])
