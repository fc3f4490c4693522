"""The record of ``remnant predict --out FOLDER``: its finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.report.curve import plain_spaces
from remnant.studies.beside.prediction import of_early
from remnant.studies.prediction import early_page
from remnant.studies.prediction.early_result import EarlyResult, NotMeasured
from remnant.studies.prediction.sentences import share_text
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import counted

QUESTION = "early-prediction"
TITLE = early_page.TITLE
SAMPLES_FILE = "samples.csv"
"""Beside the record: one row a sample."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored(QuestionResult):
    """What the record holds; ``measured`` is what the command prints as JSON."""

    ROWS: ClassVar[tuple[str, ...]] = ("measured.riskiest",)

    verdict: Finding | Absent
    measured: EarlyResult | Absent
    scope: Tested | Absent


def stored(result: EarlyResult) -> Stored:
    """Return a result with its finding."""
    truth = result.truth
    not_tested = ["whether these samples are memorised: this is a prediction"]
    if isinstance(truth, NotMeasured):
        missed = ""
        not_tested.append("how many memorised samples the list misses")
    else:
        missed = f" It misses {truth.missed} of {counted(truth.memorised, 'memorised sample')}."
    return Stored(
        verdict=Finding(
            **finding_row(
                headline=f"{result.listed} of {counted(result.n, 'sample')} predicted to be "
                "memorised",
                sentence=plain_spaces(
                    f"The list holds {share_text(result.share)} of the samples: "
                    f"{result.rule}.{missed}"
                ),
                advice="Protect the samples on the list, or leave them out of the training.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(
                f"{counted(result.n, 'sample')} of {counted(result.classes, 'class', 'classes')}",
            ),
            not_tested=tuple(not_tested),
        ),
    )


def page(result: Stored, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield headline(result.verdict, {}, checks=of_early(result))
    measured = result.measured
    blocks = (
        [Missing("The prediction", measured.reason)]
        if isinstance(measured, Absent)
        else early_page.early_blocks(measured)
    )
    yield section("The prediction", blocks)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)
