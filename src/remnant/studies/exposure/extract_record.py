"""The record of ``remnant extract --out``: its finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.studies.beside.exposure import of_extraction
from remnant.studies.exposure.audit_page import EXTRACT_TITLE, extract_page, known_as
from remnant.studies.exposure.audit_result import ExtractResult, FoundSecret
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Tested

QUESTION = "extraction"
TITLE = EXTRACT_TITLE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored(QuestionResult):
    """What the record holds; ``measured`` is what the command prints as JSON."""

    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    verdict: Finding | Absent
    measured: ExtractResult | Absent
    scope: Tested | Absent


def stored(result: ExtractResult) -> Stored:
    """Return a result with its finding."""
    first = result.candidates[0]
    proof = result.sentence[:1].upper() + result.sentence[1:]
    title = "The likeliest secret" if result.certified else "The likeliest secret found"
    return Stored(
        verdict=Finding(
            **finding_row(
                headline=f"{title} costs {_cost(first)} of {result.space_bits:.1f} bits",
                sentence=f"{proof}.{_known(first)}{_queries(result)}",
                advice="If it is a real secret, do not release this model as it is. "
                "How exposed a known secret is, remnant exposure measures.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(f"{result.method}, {len(result.candidates)} of the likeliest secrets",),
            not_tested=(
                "secrets of another form, or after another text",
                "whether a likely secret was in the training data: likely is not memorised",
            ),
        ),
    )


def page(result: Stored, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield headline(result.verdict, {}, checks=of_extraction(result))
    measured = result.measured
    blocks = (
        [Missing("The search", measured.reason)]
        if isinstance(measured, Absent)
        else extract_page(measured)
    )
    yield section("The likeliest secrets", blocks)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)


def _cost(secret: FoundSecret) -> str:
    return "more than all" if secret.bits is None else f"{secret.bits:.1f}"


def _known(secret: FoundSecret) -> str:
    name = known_as(secret)
    return "" if name is None else f" It is {name}."


def _queries(result: ExtractResult) -> str:
    first = result.queries[0] if result.queries else None
    if first is None or first.queries_99 is None:
        return ""
    return f" It comes out within {first.queries_99} samples with a probability of 99 %."
