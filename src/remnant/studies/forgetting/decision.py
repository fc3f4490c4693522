"""What a curve means for a decision, as a record keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from remnant.errors import InvalidInput
from remnant.measures import ForgettingCurve, forgetting_decision
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.result import (
    DecayLaw,
    Decision,
    Forecast,
    ProtectLast,
    SafeAfter,
)
from remnant.studies.shared.curves import Ends, Unmeasured


def put_decision(
    record: Record,
    curve: ForgettingCurve,
    *,
    limit: float,
    batch: int,
    others: Mapping[str, ForgettingCurve] | None = None,
) -> None:
    """Put the decision into the record, or why there is none.

    A lag is safe only where the curve and those of all ``others``, by attacker, are within the
    limit.

    No lag is called safe where the run's own verdict says otherwise about a curve that by itself
    would pass: residual memory above the limit, or one pair of twins.
    """
    try:
        decision = decide(curve, limit=limit, batch=batch, others=others)
        verdict = record.results().get("verdict", {})
        if (
            curve.verdict(limit, others=others).outcome == "PASS"
            and verdict.get("outcome") != "PASS"
        ):
            reason = str(verdict.get("claim", "The run's verdict is no PASS."))
            decision = replace(
                decision,
                safe_after=SafeAfter(lag=None, reason=reason),
                protect_last=ProtectLast(steps=None, examples=None, reason=reason),
            )
    except InvalidInput as fault:  # such as a confidence of one half, at which nothing is claimed
        put_parts(record, decision=Absent(str(fault)))
    else:
        put_parts(record, decision=decision)


def decide(
    curve: ForgettingCurve,
    *,
    limit: float,
    batch: int,
    others: Mapping[str, ForgettingCurve] | None = None,
) -> Decision:
    """Return safe lag, protected examples, decay and forecast; None stands for unbounded ends."""
    measured = forgetting_decision(
        curve, limit, batch=batch, confidence=curve.confidence, others=others
    )
    safe, protect = measured.safe, measured.protect
    decay: Unmeasured | DecayLaw = Unmeasured(absent=measured.no_decay or "")
    forecast: Unmeasured | Forecast = Unmeasured(absent=measured.no_decay or "")
    if measured.decay is not None and measured.floor is not None and measured.reaches is not None:
        law, floor, reaches = measured.decay, measured.floor, measured.reaches
        half_life = _ends(law.half_life, law.half_life_low, law.half_life_high)
        if law.no_half_life is not None:
            half_life = replace(half_life, reason=law.no_half_life.removesuffix("."))
        decay = DecayLaw(
            law=law.law,
            shown=law.drop_low > 0.0,
            start=law.start,
            half_life=half_life,
            floor=_ends(floor.value, floor.low, floor.high),
            error=law.error,
            trials=law.trials,
        )
        ends = _ends(reaches.value, reaches.low, reaches.high)
        forecast = Forecast(value=ends.value, low=ends.low, high=ends.high, beyond=reaches.beyond)
    return Decision(
        limit=limit,
        confidence=curve.confidence,
        success=curve.success,
        fpr=curve.fpr,
        last_lag=float(curve.lags[-1]),
        batch=batch,
        safe_after=SafeAfter(lag=safe.lag, reason=safe.reason),
        protect_last=ProtectLast(
            steps=protect.steps, examples=protect.examples, reason=protect.reason
        ),
        decay=decay,
        forecast=forecast,
    )


def _ends(value: float | None, low: float | None, high: float | None) -> Ends:
    """Return a number and its interval; None stands for what is not finite."""
    value, low, high = (
        None if number is None or not math.isfinite(number) else float(number)
        for number in (value, low, high)
    )
    return Ends(value=value, low=low, high=high)
