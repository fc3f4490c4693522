"""Which charts a one-run report has: success and effect against lag, and the run as a strip."""

from __future__ import annotations

from typing import Any

from remnant.report.curve import Point, lag_text
from remnant.report.figure import TONES, Figure, Key, figure_of
from remnant.report.numerals import count_text, times_text
from remnant.report.one_run_timeline import stroke_of, timeline_figure
from remnant.report.one_run_view import Cohort, OneRun, OneRunView
from remnant.report.one_run_words import effect_text, name_of
from remnant.report.run_view import NotMeasured, Verdict
from remnant.report.scale import lag_scale_kind
from remnant.report.shapes import Chart, Line, Rule
from remnant.report.words import describe

_LAG = "Steps since the last use (lag)"


def one_run_figures(view: OneRunView, ident: str = "") -> dict[str, Figure | None]:
    """All charts of the view by name, None where there is nothing to draw."""
    found = view.one_run
    if isinstance(found, NotMeasured):
        return {"timeline": None, "success": None, "effect": None}
    limit = view.verdict.limit if isinstance(view.verdict, Verdict) else None
    return {
        "timeline": timeline_figure(found, ident),
        "success": success_figure(found, limit=limit, ident=ident),
        "effect": effect_figure(found, ident) if found.effect_known else None,
    }


def success_figure(found: OneRun, *, limit: float | None = None, ident: str = "") -> Figure:
    """Attack success against lag: one colour a number of repeats, one stroke a window."""
    curve = found.curve
    rules = []
    if curve.chance is not None:
        rules.append(Rule(f"Chance {curve.show(curve.chance)}", "chance", curve.chance))
    if limit is not None:
        rules.append(Rule(f"Limit {curve.show(limit)}", "limit", limit))
    return _against_lag(
        found,
        f"{ident}success",
        title="Attack success against steps since the last use",
        description=" ".join(
            f"{name_of(found, one)}: {describe(one.curve)}" for one in found.cohorts
        ),
        y_label=curve.label,
        lines=tuple(_line(found, one, one.curve.points) for one in found.cohorts),
        rules=tuple(rules),
        shares=curve.is_share,
    )


def effect_figure(found: OneRun, ident: str = "") -> Figure:
    """What planting did to the mean log-odds, against lag."""
    return _against_lag(
        found,
        f"{ident}effect",
        title="Effect of planting against steps since the last use",
        description=" ".join(_effect_ends(found, one) for one in found.cohorts),
        y_label="Effect on the log-odds (nats)",
        lines=tuple(_line(found, one, one.effect) for one in found.cohorts),
        rules=(Rule("No effect", "chance", 0.0),),
    )


def _against_lag(found: OneRun, ident: str, *, lines: tuple[Line, ...], **words: Any) -> Figure:
    kind = lag_scale_kind([point.lag for point in found.first[0].curve.points])
    chart = Chart(
        **words,
        lines=lines,
        x_label=f"{_LAG}, log scale" if kind == "symlog" else _LAG,
        x_kind=kind,
        mark=(0.0, "last use"),
        # Only lines that reach the right margin are named there.
        unnamed=tuple(line.label for line in lines if line.stroke != "full"),
    )
    return figure_of(chart, ident, line_keys=_keys(found))


def _line(found: OneRun, one: Cohort, points: tuple[Point, ...]) -> Line:
    return Line(
        name_of(found, one),
        _tone(found, one.repeats),
        tuple(point.lag for point in points),
        tuple(point.value for point in points),
        tuple(point.low for point in points),
        tuple(point.high for point in points),
        stroke=stroke_of(found, one.window),
    )


def _keys(found: OneRun) -> tuple[Key, ...]:
    colours = [Key(f"Planted {times_text(n)}", _tone(found, n), "banded") for n in found.repeats]
    if len(found.starts) == 1:
        return tuple(colours)
    windows = sorted({(one.window, one.start) for one in found.cohorts})
    strokes = [
        Key(f"From step {count_text(start)} on", "ceiling", _key_kind(stroke_of(found, window)))
        for window, start in windows
    ]
    return (*colours, *strokes)


def _key_kind(stroke: str) -> str:
    return "line" if stroke == "full" else f"line {stroke}"


def _tone(found: OneRun, repeats: int) -> str:
    return TONES[found.repeats.index(repeats) % len(TONES)]


def _effect_ends(found: OneRun, one: Cohort) -> str:
    first, last = one.effect[0], one.effect[-1]
    return (
        f"{name_of(found, one)}: {effect_text(first)} nats at lag {lag_text(first.lag)}, "
        f"{effect_text(last)} at lag {lag_text(last.lag)}."
    )
