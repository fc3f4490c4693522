"""What stands beside the outcome of a forgetting study, and beside a curve by itself."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import lag_text, p_equals
from remnant.studies.beside.checks import (
    SIGNIFICANT,
    Recorded,
    above,
    another_attacker,
    attack_found,
    never_planted,
    not_measured,
    other_measures,
    outcome_of,
    residual_memory,
    second_test,
    still_detected,
    twins_at_chance,
)
from remnant.studies.forgetting.result import (
    DecayLaw,
    Decision,
    Forecast,
    ForgettingResult,
)
from remnant.studies.shared.curves import Curve, CurveResult

_NAMED = {
    "references": "reference models",
    "checkpoint": "the checkpoint before planting",
    "none": "the model alone",
}


def beside(result: ForgettingResult) -> tuple[Check, ...]:
    """The controls of a forgetting study and what contradicts its outcome."""
    return tuple(_checks(result, outcome_of(result.verdict)))


def of_curve(result: Recorded[CurveResult]) -> tuple[Check, ...]:
    """The controls of a curve of one's own scores; nothing is judged."""
    measured = result.measured
    if isinstance(measured, Absent):
        return ()
    curve = measured.shown(by_construction=True)
    found = attack_found(curve, None, found=measured.found, found_at=measured.found_at)
    return (found, not_measured("negative control"))


def _checks(result: ForgettingResult, outcome: Outcome | None) -> Iterator[Check]:
    curve = result.curve

    def shown(stored: CurveResult | Absent) -> Curve | None:
        """As the page shows it: inside one model the attack can fail at lag 0."""
        if isinstance(stored, Absent):
            return None
        return stored.shown(by_construction=not result.inside)

    main = shown(curve)
    yield attack_found(
        main,
        outcome,
        found=None if isinstance(curve, Absent) else curve.found,
        found_at=None if isinstance(curve, Absent) else curve.found_at,
    )
    yield twins_at_chance(shown(result.curve_aa), outcome)
    detected = still_detected(main, outcome)
    yield from detected
    # Where a PASS is said to be above chance, other tests that find the canaries say it again.
    second = None if detected else outcome
    if result.inside:
        yield from _inside(result, second)
    else:
        never = never_planted(main, shown(result.curve_kind), outcome)
        if never is not None:
            yield never
    for name, stored in result.other_attackers.items():
        other = stored.shown()
        yield another_attacker(
            f"an attacker with {_NAMED[name]}",
            finds=above(other.end, other.chance),
            success=f"{other.label} {other.show(other.end.value)}",
            outcome=second,
        )
    others = map(shown, result.other_measures.values())
    yield from other_measures([curve for curve in others if curve is not None], second)
    yield from residual_memory(result.hidden, result.returning, outcome)
    if isinstance(result.decision, Decision) and outcome == "PASS":
        yield from _safe(result.decision, outcome, [] if main is None else _lags(main))


def _inside(result: ForgettingResult, outcome: Outcome | None) -> Iterator[Check]:
    """Whether it is the examples that are remembered, and not their kind or their labels."""
    if not isinstance(result.own_set, Absent) and result.own_set.can_find:
        p_value = result.own_set.p_value[-1]
        finds = p_value <= SIGNIFICANT
        text = f"own sets {'found' if finds else 'not found'} among all sets ({p_equals(p_value)})"
        yield second_test("own sets", finds=finds, text=text, outcome=outcome)
    within = result.within_label
    if not isinstance(within, Absent):
        finds = within.low[-1] > 0.5
        text = (
            f"within the same label AUC is {'above' if finds else 'not above'} chance "
            f"({within.value[-1]:.3f})"
        )
        yield second_test("within label", finds=finds, text=text, outcome=outcome)


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
    shown = isinstance(decision.decay, DecayLaw) and decision.decay.shown
    if not shown or not isinstance(forecast, Forecast) or forecast.value is None:
        yield Check(name=name, status="agrees", text=text)
        return
    refused = max((lag for lag in lags if lag < safe), default=None)
    early = refused is not None and forecast.high is not None and forecast.high < refused
    late = forecast.low is not None and forecast.low > safe
    if forecast.value == 0.0:
        text += ", a fitted law meets it at all lags"
    else:
        text += f", a fitted law meets it at {lag_text(round(forecast.value))}"
    if forecast.value and forecast.low is not None and forecast.high is not None:
        text += f" ({lag_text(round(forecast.low))} to {lag_text(round(forecast.high))})"
    yield Check(
        name=name,
        status="disagrees" if early or late else "agrees",
        text=text,
        contradicts=early or late,
    )
