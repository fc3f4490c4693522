"""What to decide: from when on, what to protect, and how fast success falls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.report.blocks import Block, Column, Missing, Section, Table, section
from remnant.report.numerals import count_text, counted, lag_text, percent
from remnant.studies.forgetting.result import DecayLaw, Decision, Forecast
from remnant.studies.shared.curves import Curve, Ends, Unmeasured

Show = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, its answer, and what that rests on."""

    question: str
    answer: str
    because: str


def decision_section(decision: Decision | Absent, curve: Curve | None) -> Section:
    """What the curve means for the limit, as questions and answers.

    Args:
        decision: Of the result.
        curve: Prints its values; None where it was not measured.
    """
    return section("What to decide", _blocks(decision, curve))


def _blocks(decision: Decision | Absent, curve: Curve | None) -> Iterator[Block]:
    if isinstance(decision, Absent):
        yield Missing("Decision", decision.reason, depth="summary")
        return
    yield Table(
        caption="From the curve to a decision",
        key="decision",
        rows=tuple(answers(decision, percent if curve is None else curve.show)),
        columns=(
            Column("Question", "question", depth="summary"),
            Column("Answer", "answer", strong=True, depth="summary"),
            Column("Because", "because", depth="page"),
        ),
        depth="summary",
    )


def answers(decision: Decision, show: Show) -> Iterator[Answer]:
    """The questions that a decision answers.

    Args:
        decision: What was decided.
        show: Prints a value of attack success.
    """
    sure = percent(decision.confidence, 0)
    yield Answer(
        f"From which lag on is success within {show(decision.limit)}?",
        _safe(decision),
        f"{decision.safe_after.reason} Tested backward from the last lag with one-sided {sure} "
        "bounds, which lie below the upper ends of the two-sided intervals in the table; only "
        "measured lags are claimed.",
    )
    yield Answer("What should be protected?", _protect(decision), _protected(decision))
    law, forecast = decision.decay, decision.forecast
    if isinstance(law, Unmeasured):
        yield Answer("How fast does success fall?", "not measured", f"{law.reason}.")
    elif not law.shown:
        yield Answer(
            "How fast does success fall?",
            "no fall shown",
            "No fall was shown, so a half-life and a forecast would mean nothing.",
        )
    elif isinstance(forecast, Forecast):
        yield from _law(law, forecast, decision, show)


def _safe(decision: Decision) -> str:
    lag = decision.safe_after.lag
    if lag is None:
        return f"no lag within the {lag_text(decision.last_lag)} steps watched"
    return f"{lag_text(lag)} steps"


def _protect(decision: Decision) -> str:
    protect = decision.protect_last
    if protect.steps is None or protect.examples is None:
        return "all examples ever used"
    if protect.steps == 0:
        return "nothing"
    return f"the last {counted(protect.examples, 'example')}"


def _protected(decision: Decision) -> str:
    steps = decision.protect_last.steps
    if steps is None:
        return "No lag was shown to be safe, so no example can be excluded."
    if steps == 0:
        return "Success was shown to be within the limit even right after the last use."
    return (
        f"Those used in the last {lag_text(steps)} steps, {count_text(decision.batch)} a step: for "
        "these, success was not shown to be within the limit."
    )


def _law(law: DecayLaw, forecast: Forecast, decision: Decision, show: Show) -> Iterator[Answer]:
    kind = "An exponential" if law.law == "exponential" else f"A {law.law}"
    fitted = (
        f"{kind} law with a plateau, fitted to all lags; {percent(decision.confidence, 0)} "
        "intervals over trials."
    )
    half, reason = law.half_life, law.half_life.reason
    yield Answer(
        "How long until half of the fall is over?",
        "not known" if reason else _steps(half),
        f"{reason}. {fitted}" if reason else fitted,
    )
    yield Answer(
        "Where does success level off?",
        f"{show(law.floor.value)}{_interval(law.floor, show)}",
        "By the same law, after very many steps.",
    )
    if forecast.value is None:
        reached, reason = "never, by the fitted law", "It levels off above the limit."
    elif forecast.beyond:
        reached = f"{_steps(forecast.ends)}, forecast"
        reason = (
            f"This is beyond the last checkpoint, at {lag_text(decision.last_lag)} steps: a "
            "forecast, not a measurement."
        )
    else:
        reached, reason = _steps(forecast.ends), "This is within the steps that were measured."
    yield Answer(f"When is {show(decision.limit)} reached?", reached, f"By the same law. {reason}")


def _steps(ends: Ends) -> str:
    def show(value: float | None) -> str:
        if value is None:
            return "–"
        return lag_text(round(float(f"{value:.3g}"), 0 if value >= 10 else 1))

    return f"{show(ends.value)} steps{_interval(ends, show)}"


def _interval(ends: Ends, show: Show) -> str:
    if ends.low is None and ends.high is None:
        return " (no interval)"
    if ends.low is None:
        return f" (up to {show(ends.high)})"
    return f" ({show(ends.low)} to {'any' if ends.high is None else show(ends.high)})"
