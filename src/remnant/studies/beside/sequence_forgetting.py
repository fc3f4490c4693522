"""What stands beside the outcome of a study of forgetting of text, of speech or of pairs."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check, Status
from remnant.report.numerals import lag_text
from remnant.studies.beside.checks import (
    attack_found,
    other_measures,
    outcome_of,
    residual_memory,
    still_detected,
    task_learnt,
    twins_at_chance,
)
from remnant.studies.forgetting.sequence_result import (
    ExposureCurveResult,
    SafeAfter,
    SpeechForgettingResult,
    TextForgettingResult,
)


def beside(result: TextForgettingResult | SpeechForgettingResult) -> tuple[Check, ...]:
    """The controls of such a study and what contradicts its outcome."""
    return tuple(_checks(result, outcome_of(result.verdict)))


def _checks(
    result: TextForgettingResult | SpeechForgettingResult, outcome: Outcome | None
) -> Iterator[Check]:
    exposure, twins = result.curve_exposure, result.curve_exposure_aa
    yield attack_found(
        None if isinstance(exposure, Absent) else exposure.curve,
        outcome,
        found=None if isinstance(exposure, Absent) else exposure.found,
        found_at=None if isinstance(exposure, Absent) else exposure.found_at,
    )
    yield twins_at_chance(None if isinstance(twins, Absent) else twins.curve, outcome)
    yield from still_detected(None if isinstance(exposure, Absent) else exposure.curve, outcome)
    attacks = [curve.shown() for curve in result.attack_success]
    yield from other_measures(attacks, outcome)
    yield from residual_memory(result.hidden, result.returning, outcome)
    yield from task_learnt(result.task, outcome)
    if outcome == "PASS" and isinstance(exposure, ExposureCurveResult):
        yield from _safe(exposure)


def _safe(exposure: ExposureCurveResult) -> Iterator[Check]:
    safe = exposure.safe_after
    if isinstance(safe, SafeAfter):
        none = safe.lag is None
        text = "no lag is shown to be safe"
        if safe.lag is not None:
            text = f"shown within the limit from lag {lag_text(safe.lag)}"
        status: Status = "disagrees" if none else "agrees"
        yield Check(name="safe from", status=status, text=text, contradicts=none)
