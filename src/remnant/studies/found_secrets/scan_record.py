"""The record of ``remnant scan --out``: its verdict or finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.studies.beside.found_secrets import beside
from remnant.studies.found_secrets import page as scan_page
from remnant.studies.found_secrets.result import ScanResult
from remnant.studies.found_secrets.verdict import (
    ADVICE,
    NO_PROOF,
    NOT_SEARCHED,
    REMOVE,
    TITLES,
)
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Gate, Tested
from remnant.studies.shared.wording import counted

QUESTION = "found-secrets"
TITLE = scan_page.TITLE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored(QuestionResult):
    """What the record holds; ``measured`` is what the command prints as JSON."""

    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    verdict: Gate | Finding | Absent
    measured: ScanResult | Absent
    scope: Tested | Absent


def stored(result: ScanResult) -> Stored:
    """Return a result with the verdict of its gate, or else its finding."""
    return Stored(
        verdict=result.verdict or _finding(result),
        measured=result,
        scope=Tested(tested=tuple(_tested(result)), not_tested=tuple(_not_tested(result))),
    )


def page(result: Stored, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield headline(result.verdict, TITLES, checks=beside(result), advice=ADVICE)
    measured = result.measured
    if isinstance(measured, Absent):
        yield section("What was found", [Missing("The scan", measured.reason)])
    else:
        yield from scan_page.sections(measured)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)


def _finding(result: ScanResult) -> Finding:
    found = {kind: count for kind, count in result.kinds.items() if count.secrets}
    files = counted(len(result.files), "file")
    if not found:
        return Finding(
            **finding_row(
                headline="No secret was found",
                sentence=f"{files} searched for {', '.join(result.kinds)}.",
                advice=NO_PROOF,
            )
        )
    kinds = ", ".join(f"{kind} {count.secrets}" for kind, count in found.items())
    exposed = "" if result.exposure is None else _exposed(result)
    return Finding(
        **finding_row(
            headline=f"{counted(len(result.secrets), 'secret')} found",
            sentence=f"{files}: {kinds}.{exposed}",
            advice=REMOVE,
        )
    )


def _exposed(result: ScanResult) -> str:
    exposure = result.exposure
    if exposure is None or not exposure.measured:
        return " None could be measured in the model."
    extracted = sum(tried.extracted for tried in exposure.tried)
    tried = f", {extracted} of {len(exposure.tried)} extracted" if exposure.tried else ""
    most = exposure.measured[0].shown
    highest = "" if most is None else f", the highest exposure is {most.shown_bits.text} bits"
    return f" In the model {len(exposure.measured)} were measured{highest}{tried}."


def _tested(result: ScanResult) -> Iterator[str]:
    characters = sum(file.characters for file in result.files)
    read = f"{counted(len(result.files), 'file')} with {counted(characters, 'character')}"
    yield f"{read}, searched for {', '.join(result.kinds)}"
    if result.exposure is not None:
        many = counted(len(result.exposure.secrets), "secret")
        yield f"exposure of {many} in a model, the most frequent first"


def _not_tested(result: ScanResult) -> Iterator[str]:
    yield NOT_SEARCHED
    yield "secrets that the detectors miss"
    if not result.secrets:
        yield "whether a model memorised a secret that was not found"
    elif result.exposure is None:
        yield "whether a model memorised them: --model measures that"
    elif result.twin is None and not result.exposure.calibrated:
        yield "whether they were likely before training: --twin compares with another model"
    if result.skipped:
        yield f"skipped because they are not text: {counted(len(result.skipped), 'file')}"
