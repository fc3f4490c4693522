"""The record of ``remnant curve --out FOLDER``: its finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.report.curve import lag_text, plain_spaces
from remnant.studies.beside.forgetting import of_curve
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.curve_blocks import curve_page, measured_by
from remnant.studies.shared.curves import CurveResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Tested

QUESTION = "attack-curve"
TITLE = "Attack success against lag"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored(QuestionResult):
    """What the record holds; ``measured`` is what the command prints as JSON."""

    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    verdict: Finding | Absent
    measured: CurveResult | Absent
    scope: Tested | Absent


def stored(result: CurveResult) -> Stored:
    """Return a curve with its finding."""
    curve = result.shown()
    last = curve.show_point(curve.end)
    sentence = (
        f"It is {curve.show_point(curve.start)} at lag {lag_text(curve.start.lag)} and {last} at "
        f"lag {lag_text(curve.end.lag)}."
    )
    sentence += "" if curve.chance is None else f" Guessing gives {curve.show(curve.chance)}."
    return Stored(
        verdict=Finding(
            **finding_row(
                headline=plain_spaces(f"{curve.label}: {last} at the last lag"),
                sentence=plain_spaces(sentence),
                advice="Nothing was judged. A recipe with a limit says PASS or FAIL.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(plain_spaces(measured_by(curve)),),
            not_tested=("other attacks: these are the scores of one",),
        ),
    )


def page(result: Stored, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield headline(result.verdict, {}, checks=of_curve(result))
    measured = result.measured
    blocks = (
        [Missing("The curve", measured.reason)]
        if isinstance(measured, Absent)
        else curve_page(measured)
    )
    yield section(TITLE, blocks)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)
