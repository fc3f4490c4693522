"""The record of ``remnant curve --out FOLDER``: its finding, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.report.blocks import Block, Missing, section
from remnant.report.curve import SPACE, Curve, Point, lag_text
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
    first, last = _value(curve, curve.start), _value(curve, curve.end)
    chance = "" if curve.chance is None else f" Guessing gives {_plain(curve.show(curve.chance))}."
    return Stored(
        verdict=Finding(
            **finding_row(
                headline=f"{_plain(curve.label)}: {last} at the last lag",
                sentence=f"It is {first} at lag {_plain(lag_text(curve.start.lag))} and {last} at "
                f"lag {_plain(lag_text(curve.end.lag))}.{chance}",
                advice="Nothing was judged. A recipe with a limit says PASS or FAIL.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(_plain(measured_by(curve)),),
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


def _value(curve: Curve, point: Point) -> str:
    interval = curve.show_interval(point)
    return _plain(curve.show(point.value) + (f" ({interval})" if interval else ""))


def _plain(text: str) -> str:
    """A text with plain spaces, as records and JSON have it."""
    return text.replace(SPACE, " ")
