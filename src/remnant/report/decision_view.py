"""What a curve means for a decision, as the record holds it, read once and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remnant.errors import InvalidInput
from remnant.report.run_view import NotMeasured


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its ends; an end of None is unbounded, a value of None is never reached."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Law:
    """The fitted decay.

    Attributes:
        shown: Whether a decay has been shown at all; if not, the half-life may be anything.
        reaches: The lag at which the law comes down to the limit.
        beyond: Whether that lies past the last lag measured.
    """

    name: str
    shown: bool
    half_life: Estimate
    floor: Estimate
    reaches: Estimate
    beyond: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """From when on, what to protect, and how fast it decays.

    Attributes:
        safe_lag: From which lag on success is shown to be within the limit; None where from none.
        safe_reason: What was shown, and what stopped the test.
        protect_steps, protect_examples: The last ones, for which it is not shown; None for all.
        batch: Examples a step.
        last_lag: The last one measured.
    """

    limit: float
    confidence: float
    safe_lag: float | None
    safe_reason: str
    protect_steps: int | None
    protect_examples: int | None
    batch: int
    last_lag: float
    law: Law | NotMeasured


def read_decision(found: Mapping[str, Any]) -> Decision:
    """Read a decision out of its JSON form.

    Raises:
        KeyError, TypeError, ValueError: Something is missing or of another kind.
    """
    safe, protect = found["safe_after"], found["protect_last"]
    steps, examples = protect["steps"], protect["examples"]
    return Decision(
        limit=float(found["limit"]),
        confidence=float(found["confidence"]),
        safe_lag=_number(safe["lag"]),
        safe_reason=str(safe["reason"]),
        protect_steps=None if steps is None else int(steps),
        protect_examples=None if examples is None else int(examples),
        batch=int(found["batch"]),
        last_lag=float(found["last_lag"]),
        law=_law(found["decay"], found["forecast"]),
    )


def _law(decay: Mapping[str, Any], forecast: Mapping[str, Any]) -> Law | NotMeasured:
    if "absent" in decay:
        return NotMeasured(str(decay["absent"]).removesuffix("."))
    return Law(
        name=str(decay["law"]),
        shown=bool(decay["shown"]),
        half_life=_estimate(decay["half_life"]),
        floor=_estimate(decay["floor"]),
        reaches=_estimate(forecast),
        beyond=bool(forecast["beyond"]),
    )


def _estimate(found: Mapping[str, Any]) -> Estimate:
    return Estimate(*(_number(found[name]) for name in ("value", "low", "high")))


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{value!r} is no number")
    return float(value)
