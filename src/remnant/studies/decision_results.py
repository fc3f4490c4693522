"""What a curve means for a decision, as plain data for the record."""

from __future__ import annotations

import math
from typing import Any

from remnant.errors import InvalidInput
from remnant.measures import Decay, Forecast, ForgettingCurve, forgetting_decision
from remnant.measures.epsilon import heuristic_epsilon
from remnant.records import Record


def put_decision(record: Record, curve: ForgettingCurve, *, limit: float, batch: int) -> None:
    """Put the decision into the record, or why there is none.

    No lag is called safe where the run's own verdict says otherwise about a curve that by itself
    would pass: residual memory above the limit, or one pair of twins.
    """
    try:
        fields = decision_fields(curve, limit=limit, batch=batch)
        verdict = record.results().get("verdict", {})
        if curve.verdict(limit).outcome == "PASS" and verdict.get("outcome") != "PASS":
            reason = str(verdict.get("claim", "The run's verdict is no PASS."))
            fields["safe_after"] = {"lag": None, "reason": reason}
            fields["protect_last"] = {"steps": None, "examples": None, "reason": reason}
    except InvalidInput as fault:  # such as a confidence of one half, at which nothing is claimed
        record.put_absent("decision", str(fault))
    else:
        record.put_result("decision", fields)


def decision_fields(curve: ForgettingCurve, *, limit: float, batch: int) -> dict[str, Any]:
    """Return safe lag, protected examples, decay and forecast; null ends are unbounded ones."""
    found = forgetting_decision(curve, limit, batch=batch, confidence=curve.confidence)
    absent = {"absent": found.no_decay}
    return {
        "limit": limit,
        "confidence": curve.confidence,
        "success": curve.success,
        "fpr": curve.fpr,
        "last_lag": float(curve.lags[-1]),
        "batch": batch,
        "safe_after": {"lag": found.safe.lag, "reason": found.safe.reason},
        "protect_last": {
            "steps": found.protect.steps,
            "examples": found.protect.examples,
            "reason": found.protect.reason,
        },
        "decay": absent if found.decay is None else _decay(found.decay, found.floor),
        "forecast": absent if found.reaches is None else _forecast(found.reaches),
    }


def seen_otherwise(curve: ForgettingCurve) -> dict[str, Any]:
    """Return what is read off a curve beside its numbers: smoothed, and the heuristic epsilon."""
    smoothed = curve.smoothed().tolist()
    try:
        found = heuristic_epsilon(curve)
    except InvalidInput as fault:
        return {"smoothed": smoothed, "epsilon": {"absent": str(fault)}}
    ends = {name: list(getattr(found, name)) for name in ("value", "low", "high")}
    return {"smoothed": smoothed, "epsilon": ends}


def _decay(decay: Decay, floor: Forecast | None) -> dict[str, Any]:
    return {
        "law": decay.law,
        "shown": decay.drop_low > 0.0,
        "start": decay.start,
        "half_life": _ends(decay.half_life, decay.half_life_low, decay.half_life_high),
        "floor": None if floor is None else _ends(floor.value, floor.low, floor.high),
        "error": decay.error,
        "trials": decay.trials,
    }


def _forecast(found: Forecast) -> dict[str, Any]:
    return {**_ends(found.value, found.low, found.high), "beyond": found.beyond}


def _ends(value: float | None, low: float, high: float) -> dict[str, float | None]:
    return {"value": _finite(value), "low": _finite(low), "high": _finite(high)}


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
