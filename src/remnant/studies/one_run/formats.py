"""How a one-run page prints cohorts, lags, successes and effects."""

from __future__ import annotations

from remnant.report.numerals import count_text, lag_text
from remnant.studies.one_run.result import Cohort, OneRunCurves
from remnant.studies.shared.curves import Point


def cohort_name(curves: OneRunCurves, cohort: Cohort) -> str:
    """A cohort in a few letters, such as ``16×, from 200``; the window only where it matters."""
    uses = uses_text(cohort.repeats)
    return uses if len(curves.starts) == 1 else f"{uses}, from {count_text(cohort.start)}"


def uses_text(repeats: int) -> str:
    """How often a canary was used, such as ``16×``."""
    return f"{count_text(repeats)}×"


def whole_lag(lag: float) -> str:
    """A lag in whole steps."""
    return lag_text(round(lag))


def after_text(point: Point) -> str:
    """When a point was taken, such as ``1 703 steps after the last use``."""
    steps = round(point.lag)
    return f"{lag_text(steps)} step{'' if steps == 1 else 's'} after the last use"


def effect_text(point: Point) -> str:
    """An effect with its interval, without a unit; a dash where it was not measured."""
    if point.value is None:
        return "–"
    if point.low is None or point.high is None:
        return effect_number(point.value)
    return (
        f"{effect_number(point.value)} ({effect_number(point.low)} to {effect_number(point.high)})"
    )


def effect_number(value: float) -> str:
    """An effect without its unit, with a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
