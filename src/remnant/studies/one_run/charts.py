"""The charts of a one-run page: the run as a strip, success and effect against lag."""

from __future__ import annotations

from typing import Any

from remnant.report.charts.figure import TONES, Key
from remnant.report.charts.scale import lag_scale_kind
from remnant.report.charts.shapes import STROKES, Chart, Line, Rule, Strip, StripRow, Stroke
from remnant.report.numerals import count_text, counted, lag_text, times_text
from remnant.studies.one_run.formats import cohort_name, effect_text
from remnant.studies.one_run.result import Cohort, OneRunCurves
from remnant.studies.shared.curves import Point
from remnant.tasks.score_words import ScoreWords

_LAG = "Steps since the last use (lag)"


def timeline(curves: OneRunCurves) -> Strip:
    """When each window planted, and at which checkpoints the canaries were scored."""
    rows = [_window_row(curves, window, start) for window, start in _windows(curves)]
    planted = [
        f"From step {_window_ends(curves, window)}: {_canaries(curves, window)} {curves.used}."
        for window, _ in _windows(curves)
    ]
    never = f"Never planted: {counted(curves.n_unseen, 'canary', 'canaries')}."
    return Strip(
        title="The run, from its first step to its last",
        description=" ".join(
            [*planted, never, f"The run ends after {counted(curves.steps, 'step')}."]
        ),
        x_label="Training step",
        length=float(curves.steps),
        rows=(*rows, StripRow("Never planted", "control")),
        blocks=f"Window in which they were {curves.used}",
        dots="Checkpoint at which they were scored",
        key_tone="ceiling",
    )


def success_chart(curves: OneRunCurves, *, limit: float | None = None) -> Chart:
    """Attack success against lag: one colour a number of repeats, one stroke a window."""
    curve = curves.curve
    rules = [Rule(f"Chance {curve.show(curves.chance)}", "chance", curves.chance)]
    if limit is not None:
        rules.append(Rule(f"Limit {curve.show(limit)}", "limit", limit))
    return _against_lag(
        curves,
        title="Attack success against steps since the last use",
        description=" ".join(_success_ends(curves, cohort) for cohort in curves.cohorts),
        y_label=curve.label,
        lines=tuple(_line(curves, cohort, cohort.curve.points) for cohort in curves.cohorts),
        rules=tuple(rules),
        shares=curve.is_share,
    )


def effect_chart(curves: OneRunCurves, words: ScoreWords) -> Chart:
    """What planting did to the mean score, against lag."""
    return _against_lag(
        curves,
        title="Effect of planting against steps since the last use",
        description=" ".join(_effect_ends(curves, cohort, words) for cohort in curves.cohorts),
        y_label=f"{words.axis} ({words.unit})",
        lines=tuple(_line(curves, cohort, cohort.effect) for cohort in curves.cohorts),
        rules=(Rule("No effect", "chance", 0.0),),
    )


def line_keys(curves: OneRunCurves) -> tuple[Key, ...]:
    """The legend of the lines: a colour a number of repeats, a stroke a window."""
    colours = [Key(f"Planted {times_text(n)}", _tone(curves, n), "banded") for n in curves.levels]
    if len(curves.starts) == 1:
        return tuple(colours)
    strokes = [
        Key(f"From step {count_text(start)} on", "ceiling", _key_kind(_stroke(curves, window)))
        for window, start in _windows(curves)
    ]
    return (*colours, *strokes)


def _against_lag(curves: OneRunCurves, *, lines: tuple[Line, ...], **words: Any) -> Chart:
    kind = lag_scale_kind([point.lag for point in curves.first[0].curve.points])
    return Chart(
        **words,
        lines=lines,
        x_label=f"{_LAG}, log scale" if kind == "symlog" else _LAG,
        x_kind=kind,
        mark=(0.0, "last use"),
        # Only lines that reach the right margin are named there.
        unnamed=tuple(line.label for line in lines if line.stroke != "full"),
    )


def _line(curves: OneRunCurves, cohort: Cohort, points: tuple[Point, ...]) -> Line:
    return Line(
        cohort_name(curves, cohort),
        _tone(curves, cohort.repeats),
        tuple(point.lag for point in points),
        tuple(point.value for point in points),
        tuple(point.low for point in points),
        tuple(point.high for point in points),
        stroke=_stroke(curves, cohort.window),
    )


def _window_row(curves: OneRunCurves, window: int, start: int) -> StripRow:
    """The window as a block, and the checkpoints on a line after it."""
    cohorts = [cohort for cohort in curves.cohorts if cohort.window == window]
    scored = sorted({step for cohort in cohorts for step in cohort.checkpoints})
    tip = f"Steps {_window_ends(curves, window)}: {_canaries(curves, window)} {curves.used}"
    return StripRow(
        name=f"From step {count_text(start)}",
        tone="ceiling",
        block=(float(start), float(curves.window_end(window)), tip),
        dots=tuple((step, f"Scored after {lag_text(step)} steps") for step in scored),
        stroke=_stroke(curves, window),
    )


def _windows(curves: OneRunCurves) -> list[tuple[int, int]]:
    """Number and first step of every window that was scored."""
    return sorted({(cohort.window, cohort.start) for cohort in curves.cohorts})


def _window_ends(curves: OneRunCurves, window: int) -> str:
    return f"{count_text(curves.starts[window])} to {count_text(curves.window_end(window))}"


def _canaries(curves: OneRunCurves, window: int) -> str:
    planted = sum(cohort.n for cohort in curves.cohorts if cohort.window == window)
    return counted(planted, "canary", "canaries")


def _stroke(curves: OneRunCurves, window: int) -> Stroke:
    """How a window's lines are drawn: in full for the first, which is judged."""
    first, *others = STROKES
    place = window - curves.cohorts[0].window
    return first if place == 0 else others[(place - 1) % len(others)]


def _tone(curves: OneRunCurves, repeats: int) -> str:
    return TONES[curves.levels.index(repeats) % len(TONES)]


def _key_kind(stroke: str) -> str:
    return "line" if stroke == "full" else f"line {stroke}"


def _success_ends(curves: OneRunCurves, cohort: Cohort) -> str:
    curve = cohort.curve
    return (
        f"{cohort_name(curves, cohort)}: {curve.label} goes from "
        f"{curve.show_point(curve.start)} at lag {lag_text(curve.start.lag)} to "
        f"{curve.show_point(curve.end)} at lag {lag_text(curve.end.lag)}."
    )


def _effect_ends(curves: OneRunCurves, cohort: Cohort, words: ScoreWords) -> str:
    first, last = cohort.effect[0], cohort.effect[-1]
    return (
        f"{cohort_name(curves, cohort)}: {effect_text(first)} {words.unit} at lag "
        f"{lag_text(first.lag)}, {effect_text(last)} at lag {lag_text(last.lag)}."
    )
