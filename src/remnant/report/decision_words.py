"""What to decide, in plain words and in a line for the terminal."""

from __future__ import annotations

from collections.abc import Callable

from remnant.report.curve import Curve, lag_text, percent
from remnant.report.decision_view import Decision, Estimate, Law
from remnant.report.numerals import count_text, counted
from remnant.report.run_view import NotMeasured

Show = Callable[[float | None], str]


def decision_rows(found: Decision, curve: Curve | NotMeasured) -> list[tuple[str, str, str]]:
    """Question, answer, and what it rests on."""
    show = _show(curve)
    sure = percent(found.confidence, 0)
    rows = [
        (
            f"From when on is it within {show(found.limit)}?",
            _safe(found),
            f"{found.safe_reason} Tested backward from the last lag by one-sided {sure} bounds, "
            "which lie below the upper ends of the two-sided intervals in the table; only lags "
            "that were measured are claimed.",
        ),
        ("What should be protected?", _protect(found), _protected(found)),
    ]
    law = found.law
    if isinstance(law, NotMeasured):
        return [*rows, ("How fast does it fall?", "not measured", f"{law.reason}.")]
    return [*rows, *_law_rows(law, found, show, sure)]


def decision_line(found: Decision | NotMeasured) -> str:
    """The decision in a line."""
    if isinstance(found, NotMeasured):
        return f"decision  not measured: {found.reason}"
    parts = [
        "safe after: no lag watched" if found.safe_lag is None else f"safe after: {_safe(found)}"
    ]
    parts.append(f"protect: {_protect(found)}")
    law = found.law
    if isinstance(law, NotMeasured):
        parts.append("half-life: not measured")
    elif not law.shown:
        parts.append("half-life: no decay shown")
    else:
        parts.append(f"half-life: {_steps(law.half_life)}")
        parts.append(f"limit reached: {_reached(law)}")
    return "decision: " + "; ".join(parts)


def _show(curve: Curve | NotMeasured) -> Show:
    return percent if isinstance(curve, NotMeasured) else curve.show


def _safe(found: Decision) -> str:
    if found.safe_lag is None:
        return f"from none of the {lag_text(found.last_lag)} steps watched"
    return f"{lag_text(found.safe_lag)} steps"


def _protect(found: Decision) -> str:
    if found.protect_steps is None or found.protect_examples is None:
        return "everything that was ever used"
    if found.protect_steps == 0:
        return "nothing"
    return f"the last {counted(found.protect_examples, 'example')}"


def _protected(found: Decision) -> str:
    if found.protect_steps is None:
        return "No lag was shown to be safe, so no example can be left out."
    if found.protect_steps == 0:
        return "Success was shown to be within the limit even right after the last use."
    return (
        f"Those used in the last {lag_text(found.protect_steps)} steps, "
        f"{count_text(found.batch)} a step: they are the ones not shown to be within the limit."
    )


def _law_rows(law: Law, found: Decision, show: Show, sure: str) -> list[tuple[str, str, str]]:
    kind = "An exponential" if law.name == "exponential" else f"A {law.name} law"
    fitted = f"{kind} with a floor, fitted to all lags; {sure} intervals over trials."
    if not law.shown:
        none = "A fall has not been shown, so that a half-life and a forecast would mean nothing."
        return [("How fast does it fall?", "no fall shown", none)]
    floor = f"{show(law.floor.value)}{_interval(law.floor, show)}"
    reached = "By the same law. "
    if law.reaches.value is None:
        reached += "It levels off above the limit."
    elif law.beyond:
        reached += (
            f"This lies beyond the last checkpoint, at {lag_text(found.last_lag)} steps: a "
            "forecast, not a measurement."
        )
    else:
        reached += "This lies within the steps that were measured."
    return [
        ("How long until half of the fall is over?", _steps(law.half_life), fitted),
        ("Where does it level off?", floor, "By the same law, after very many steps."),
        (f"When is {show(found.limit)} reached?", _reached(law), reached),
    ]


def _reached(law: Law) -> str:
    if law.reaches.value is None:
        return "never, by the fitted law"
    return _steps(law.reaches) + (", forecast" if law.beyond else "")


def _steps(found: Estimate) -> str:
    def show(value: float | None) -> str:
        if value is None:
            return "–"
        return lag_text(round(float(f"{value:.3g}"), 0 if value >= 10 else 1))

    return f"{show(found.value)} steps{_interval(found, show)}"


def _interval(found: Estimate, show: Show) -> str:
    if found.low is None and found.high is None:
        return " (no interval)"
    if found.low is None:
        return f" (up to {show(found.high)})"
    return f" ({show(found.low)} to {'any' if found.high is None else show(found.high)})"
