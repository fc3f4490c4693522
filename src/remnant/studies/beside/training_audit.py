"""What stands beside the outcome of an audit of one's own training."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import lag_text, p_equals, times_text
from remnant.studies.beside.checks import (
    SIGNIFICANT,
    above,
    another_attacker,
    at_chance,
    not_measured,
    outcome_of,
    positive_control,
    second_test,
)
from remnant.studies.beside.exposure import exposure_controls, gate_checks
from remnant.studies.beside.one_run import curve_checks
from remnant.studies.training_audit.result import (
    DetectedExamples,
    Forgetting,
    MeasuredEpsilon,
    Sightings,
    TrainingAuditResult,
)


def beside(result: TrainingAuditResult) -> tuple[Check, ...]:
    """The controls of an audit and what contradicts its outcome."""
    return tuple(_checks(result, outcome_of(result.verdict)))


def _checks(result: TrainingAuditResult, outcome: Outcome | None) -> Iterator[Check]:
    gate, detected, forgetting = result.exposure_gate, result.detection, result.forgetting
    of_claim = result.claim_is_broken  # the verdict is then about the claimed epsilon
    if isinstance(detected, DetectedExamples):
        yield from _examples(detected, None if of_claim else outcome)
    elif isinstance(result.exposure, Absent) and isinstance(forgetting, Forgetting):
        yield from curve_checks(forgetting.curves, outcome, found=forgetting.found)
    else:
        yield from exposure_controls(result.repeats, gate)
        yield from [] if gate is None else gate_checks(gate)
        if outcome == "PASS":
            yield not_measured("extraction")
        if isinstance(forgetting, Forgetting):
            yield from _still_found(forgetting, outcome)
    yield from _sightings(result.sightings, outcome)
    if isinstance(result.epsilon, MeasuredEpsilon) and not of_claim:
        yield _epsilon(result.epsilon, outcome)


def _examples(detected: DetectedExamples, outcome: Outcome | None) -> Iterator[Check]:
    """Examples of one's own: the gate is about AUC; each level has a rank-sum test."""
    found = [level for level in detected.levels if level.p_value <= SIGNIFICANT]
    yield positive_control(detected.found, outcome)
    if outcome == "PASS" and found:
        most = min(found, key=lambda level: level.p_value)
        text = (
            f"examples planted {times_text(most.repeats)} are distinguished from controls "
            f"({p_equals(most.p_value)})"
        )
        yield second_test("rank-sum test", finds=True, text=text, outcome=outcome)
    elif outcome == "FAIL" and not found:
        text = "no group is distinguished from controls by the rank-sum test"
        yield second_test("rank-sum test", finds=False, text=text, outcome=outcome)
    for other in detected.others or ():
        yield another_attacker(
            other.name,
            finds=other.low > 0.5,
            success=f"AUC {other.success:.3f}",
            outcome=outcome,
            what="examples",
        )
    if not detected.controls_drawn:
        yield not_measured("random draw of controls")


def _still_found(forgetting: Forgetting, outcome: Outcome | None) -> Iterator[Check]:
    """The attack against steps since last use, beside an outcome about exposure."""
    curve = forgetting.curves.judged.curve
    end = curve.end
    if end.low is None or outcome != "PASS":
        return
    finds = above(end, curve.chance)
    said = "still finds" if finds else "does not find"
    text = (
        f"the attack {said} canaries {lag_text(round(end.lag))} steps after last use "
        f"({curve.label} {curve.show_interval(end)})"
    )
    yield second_test("attack by lag", finds=finds, text=text, outcome=outcome)


def _sightings(sightings: Sightings | Absent, outcome: Outcome | None) -> Iterator[Check]:
    if isinstance(sightings, Absent):
        return
    if sightings.seen < sightings.planted:
        missing = sightings.planted - sightings.seen
        text = f"{missing} of {sightings.planted} planted canaries were in no batch"
        contradicts = outcome == "PASS"
        yield Check(name="batches", status="not found", text=text, contradicts=contradicts)
    if sightings.controls:
        text = f"{sightings.controls} in batches"
        contradicts = outcome in ("PASS", "FAIL")
        yield at_chance("controls", False, text=text, contradicts=contradicts)


def _epsilon(epsilon: MeasuredEpsilon, outcome: Outcome | None) -> Check:
    """The lower bound on epsilon; above 0 without a claim, it contradicts a PASS."""
    text = f"measured epsilon at least {epsilon.value:.3g}"
    if epsilon.claimed is not None:
        text += f", claimed {epsilon.claimed:.4g}"
        return Check(name="epsilon", status="agrees", text=text)
    return second_test("epsilon", finds=epsilon.value > 0.0, text=text, outcome=outcome)
