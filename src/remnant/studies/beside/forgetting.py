"""What stands beside the outcome of a forgetting study, and beside a curve by itself."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.curve import Curve, lag_text
from remnant.studies.beside.checks import (
    Recorded,
    attack_found,
    never_planted,
    not_measured,
    other_measures,
    outcome_of,
    still_detected,
    twins_at_chance,
)
from remnant.studies.beside.residual_memory import residual_memory
from remnant.studies.forgetting.result import Decision, Forecast, ForgettingResult
from remnant.studies.shared.curves import CurveResult


def beside(result: ForgettingResult) -> tuple[Check, ...]:
    """The controls of a forgetting study and what contradicts its outcome."""
    return tuple(_checks(result, outcome_of(result.verdict)))


def of_curve(result: Recorded[CurveResult]) -> tuple[Check, ...]:
    """The controls of a curve of one's own scores; nothing is judged."""
    measured = result.measured
    if isinstance(measured, Absent):
        return ()
    found = attack_found(shown(measured), None, found=measured.found, found_at=measured.found_at)
    return (found, not_measured("negative control"))


def shown(curve: CurveResult | Absent) -> Curve | None:
    """The curve, beginning after lag 0, where an attack may succeed by construction."""
    return None if isinstance(curve, Absent) else curve.shown(by_construction=True)


def _checks(result: ForgettingResult, outcome: Outcome | None) -> Iterator[Check]:
    curve, main = result.curve, shown(result.curve)
    yield attack_found(
        main,
        outcome,
        found=None if isinstance(curve, Absent) else curve.found,
        found_at=None if isinstance(curve, Absent) else curve.found_at,
    )
    yield twins_at_chance(shown(result.curve_aa), outcome)
    never = never_planted(main, shown(result.curve_controls), outcome)
    if never is not None:
        yield never
    yield from still_detected(main, outcome)
    others = map(shown, result.other_measures.values())
    yield from other_measures([curve for curve in others if curve is not None], outcome)
    yield from residual_memory(result.hidden, result.returning, outcome)
    if isinstance(result.decision, Decision) and outcome == "PASS":
        yield from _safe(result.decision, outcome, [] if main is None else _lags(main))


def _lags(curve: Curve) -> list[float]:
    return [point.lag for point in curve.points]


def _safe(decision: Decision, outcome: Outcome, lags: list[float]) -> Iterator[Check]:
    """From which lag on the limit holds, and where a law fitted to the curve meets it.

    The law disagrees where its interval ends before the lag that was tested and not shown safe, or
    begins after the lag from which on all are.
    """
    name, safe, forecast = "safe from", decision.safe_after.lag, decision.forecast
    if safe is None:
        text = "no lag is shown to be safe"
        yield Check(name=name, status="disagrees", text=text, contradicts=True)
        return
    text = f"shown within the limit from lag {lag_text(safe)}"
    if not isinstance(forecast, Forecast) or forecast.value is None:
        yield Check(name=name, status="agrees", text=text)
        return
    refused = max((lag for lag in lags if lag < safe), default=None)
    early = refused is not None and forecast.high is not None and forecast.high < refused
    late = forecast.low is not None and forecast.low > safe
    text += f", a fitted law meets it at {lag_text(round(forecast.value))}"
    if forecast.low is not None and forecast.high is not None:
        text += f" ({lag_text(round(forecast.low))} to {lag_text(round(forecast.high))})"
    yield Check(
        name=name,
        status="disagrees" if early or late else "agrees",
        text=text,
        contradicts=early or late,
    )
