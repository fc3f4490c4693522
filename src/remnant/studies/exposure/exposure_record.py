"""The record of ``remnant exposure --out``: its verdict or finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.studies.beside.exposure import of_audit
from remnant.studies.exposure.audit_page import (
    ADVICE,
    EXPOSURE_TITLE,
    audit_reading,
    set_sections,
)
from remnant.studies.exposure.audit_result import ExposureAuditResult, PrintedCanary
from remnant.studies.exposure.formats import exposure_number
from remnant.studies.exposure.page import TITLES
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import counted, times

QUESTION = "exposure-audit"
TITLE = EXPOSURE_TITLE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored(QuestionResult):
    """What the record holds; ``measured`` is what the command prints as JSON."""

    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    verdict: Finding | ExposureGate | Absent
    measured: ExposureAuditResult | Absent
    scope: Tested | Absent


def stored(result: ExposureAuditResult) -> Stored:
    """Return a result with its verdict, or with the finding of a measurement without a limit."""
    judged = result.verdict
    return Stored(
        verdict=_finding(result) if judged is None else ExposureGate(**judged.row()),
        measured=result,
        scope=Tested(tested=tuple(_tested(result)), not_tested=tuple(_not_tested(result))),
    )


def page(result: Stored, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    measured, verdict = result.measured, result.verdict
    gate = verdict if isinstance(verdict, ExposureGate) else None
    reading = None
    if gate is not None and isinstance(measured, ExposureAuditResult):
        reading = audit_reading(measured, gate)
    yield headline(verdict, TITLES, checks=of_audit(result), reading=reading, advice=ADVICE)
    if isinstance(measured, Absent):
        yield section("Exposure", [Missing("Exposure", measured.reason)])
    else:
        yield from set_sections(measured, limit=None if gate is None else gate.limit)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)


def _finding(result: ExposureAuditResult) -> Finding:
    canaries = [canary for audited in result.sets for canary in audited.canaries]
    controls = [control for audited in result.sets for control in audited.controls]
    sentences = [_highest(canaries, "planted canary", "planted canaries")]
    sentences += [_highest(controls, "control", "controls")]
    sentence = " ".join(filter(None, sentences))
    highest = max((each.estimate for each in canaries), key=lambda bits: bits.value, default=None)
    title = "No canary was planted" if highest is None else _title(result, exposure_number(highest))
    return Finding(
        **finding_row(
            headline=title,
            sentence=sentence or "There is no canary and no control.",
            advice="Nothing was judged. Give a limit with --limit for PASS or FAIL.",
        )
    )


def _title(result: ExposureAuditResult, highest: str) -> str:
    most = max(audited.space_bits for audited in result.sets)
    return f"Highest exposure {highest} bits, of at most {most:.1f}"


def _highest(rows: list[PrintedCanary], one: str, many: str) -> str:
    if not rows:
        return ""
    top = max(rows, key=lambda row: row.estimate.value)
    planted = f", planted {times(top.repeats)}" if top.repeats else ""
    return (
        f"The highest exposure of {counted(len(rows), one, many)} is "
        f"{exposure_number(top.estimate)} bits ({top.name}{planted})."
    )


def _tested(result: ExposureAuditResult) -> Iterator[str]:
    for audited in result.sets:
        canaries = counted(len(audited.canaries), "canary", "canaries")
        among = "all secrets of the template"
        if audited.method == "sampled":
            among = counted(audited.references, "sampled reference")
        yield (
            f"set {audited.set}: {canaries} and {counted(len(audited.controls), 'control')}, "
            f"ranked among {among}"
        )


def _not_tested(result: ExposureAuditResult) -> Iterator[str]:
    yield "another training of the same recipe: this is one model"
    yield "secrets of another form, or in another place of the text"
    if any(audited.method == "sampled" for audited in result.sets):
        yield "exposure above what the references show: such values are lower bounds"
    yield "whether a secret can be extracted: remnant extract searches for it"
