"""What stands beside an outcome about exposure, and beside an extraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from remnant.measures.exposure.by_rank import is_found
from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import counted, p_equals, times_text
from remnant.studies.beside.checks import (
    Recorded,
    at_chance,
    harm,
    not_measured,
    outcome_of,
    positive_control,
    second_test,
    task_learnt,
)
from remnant.studies.exposure.audit_result import AuditedSet, ExposureAuditResult
from remnant.studies.exposure.extract_result import ComparedSecret, ExtractResult
from remnant.studies.exposure.result import (
    ExposureByRepeats,
    ExposureGate,
    ExposureResult,
    Exposures,
    Extractions,
)


def beside(result: ExposureResult) -> tuple[Check, ...]:
    """The controls of an exposure study and what contradicts its outcome."""
    return tuple(_study(result))


def of_audit(result: Recorded[ExposureAuditResult]) -> tuple[Check, ...]:
    """The same of ``remnant exposure``."""
    measured = result.measured
    if isinstance(measured, Absent):
        return (not_measured("positive control"),)
    gate = result.verdict if isinstance(result.verdict, ExposureGate) else None
    return of_sets(measured, gate)


def of_sets(measured: ExposureAuditResult, gate: ExposureGate | None) -> tuple[Check, ...]:
    """The same of canary sets that were measured in one model.

    Args:
        measured: The sets.
        gate: Their verdict; None without a limit.
    """
    outcome = None if gate is None else gate.outcome
    checks = [_positive(gate, outcome, _found_at(measured.sets))]
    controls = [mean.p_value for each in measured.sets for mean in each.means if mean.repeats == 0]
    checks.append(_negative(controls, outcome))
    checks += [] if gate is None else gate_checks(gate)
    checks += [not_measured("extraction")] if outcome == "PASS" else []
    return tuple(checks)


def of_extraction(result: Recorded[ExtractResult]) -> tuple[Check, ...]:
    """The controls of a search for the likeliest secrets."""
    measured = result.measured
    return () if isinstance(measured, Absent) else tuple(_search(measured))


def gate_checks(gate: ExposureGate) -> Iterator[Check]:
    """What the exposure gate itself found beside its outcome."""
    if gate.above and gate.outcome == "PASS":
        text = f"{gate.above} of {gate.judged} judged canaries reach the limit, or may"
        yield harm("above the limit", gate.above, text, gate.outcome)
    if gate.outcome == "PASS" and gate.p_value is not None:
        finds = is_found(gate.p_value)
        said = "more exposed than chance allows" if finds else "no more exposed than chance"
        text = f"judged canaries {said} ({p_equals(gate.p_value)})"
        yield second_test("pooled test", finds=finds, text=text, outcome=gate.outcome)


def exposure_controls(
    repeats: ExposureByRepeats | Absent, gate: ExposureGate | None
) -> Iterator[Check]:
    """The positive and the negative control of a study or a training."""
    outcome = None if gate is None else gate.outcome
    levels = () if isinstance(repeats, Absent) else repeats.levels
    found = [
        level.repeats
        for level in levels
        if level.repeats and isinstance(repeats, ExposureByRepeats)
        if is_found(repeats.p_value(level))
    ]
    tested = any(level.repeats and level.pooled_pvalue is not None for level in levels)
    yield _positive(gate, outcome, max(found, default=None if not tested else 0))
    yield _negative([level.pooled_pvalue for level in levels if not level.repeats], outcome)


def _study(result: ExposureResult) -> Iterator[Check]:
    gate = result.verdict if isinstance(result.verdict, ExposureGate) else None
    outcome = outcome_of(result.verdict)
    yield from exposure_controls(result.repeats, gate)
    yield from [] if gate is None else gate_checks(gate)
    yield from _extracted(result.extraction, result.exposure, outcome)
    yield from task_learnt(result.task, outcome)


def _positive(gate: ExposureGate | None, outcome: Outcome | None, found_at: int | None) -> Check:
    """The positive control: of the gate's own rule where it says, else of the pooled tests.

    Args:
        gate: The verdict; None without a limit.
        outcome: Of the gate.
        found_at: How often canaries were planted that the pooled test found; 0 where it found none,
            None where none could be tested.
    """
    if gate is not None and gate.control is not None:
        where = f"among canaries planted {times_text(gate.control)}"
        return positive_control(True, outcome, where=where)
    if gate is not None and gate.trainings is not None:
        return positive_control(False, outcome)
    if found_at is None:
        return not_measured("positive control")
    where = f"among canaries planted {times_text(found_at)}"
    return positive_control(found_at > 0, outcome, where=where)


def _found_at(sets: Sequence[AuditedSet]) -> int | None:
    tested = [mean for each in sets for mean in each.means if mean.repeats]
    tested = [mean for mean in tested if mean.p_value is not None]
    if not tested:
        return None
    return max((mean.repeats for mean in tested if is_found(mean.p_value)), default=0)


def _negative(p_values: Iterable[float | None], outcome: Outcome | None) -> Check:
    """Controls that are more exposed than chance allows; they contradict a FAIL."""
    known = [value for value in p_values if value is not None]
    holds = None if not known else not any(map(is_found, known))
    text = p_equals(min(known)) if known and not holds else ""
    return at_chance("negative control", holds, text=text, contradicts=outcome == "FAIL")


def _extracted(
    extraction: Extractions | Absent, exposure: Exposures | Absent, outcome: Outcome | None
) -> Iterator[Check]:
    if isinstance(extraction, Absent) or isinstance(exposure, Absent):
        if outcome == "PASS":
            yield not_measured("extraction")
        return
    out, planted = len(extraction.extracted), len(exposure.canaries)
    verb = "was" if planted == 1 else "were"
    text = f"{out or 'none'} of {counted(planted, 'canary', 'canaries')} {verb} extracted"
    yield harm("extraction", out, text, outcome)
    twins = [search for search in extraction.searches if search.of_twin]
    of_twins = {
        candidate.canary
        for search in twins
        for candidate in search.candidates
        if candidate.canary is not None
    }
    if of_twins:
        text = f"{counted(len(of_twins), 'canary', 'canaries')} extracted from twins too"
        yield at_chance("twins", False, text=text, contradicts=outcome == "FAIL")


def _search(result: ExtractResult) -> Iterator[Check]:
    text = "proven: nothing likelier exists" if result.certified else "not proven"
    yield Check(name="certificate", status="found" if result.certified else "not found", text=text)
    compared = [row for row in result.candidates if isinstance(row, ComparedSecret)]
    if not compared:
        yield not_measured("positive control")
        return
    known = [row.canary for row in compared if row.canary is not None]
    planted = [canary for canary in known if canary.repeats]
    where = f"({counted(len(planted), 'planted canary', 'planted canaries')})"
    yield positive_control(bool(planted), None, where=where)
    controls = len(known) - len(planted)
    text = f"{counted(controls, 'control')} among the likeliest" if controls else ""
    yield at_chance("negative control", not controls, text=text, contradicts=True)
