"""What ``remnant curve`` records: its finding, its scope, and the page of both."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import finding_row
from remnant.report.blocks import Block, section
from remnant.report.numerals import lag_text, plain_spaces
from remnant.studies.beside.forgetting import of_curve
from remnant.studies.command_result import CommandResult, record_page
from remnant.studies.shared.curve_blocks import curve_page, measured_by
from remnant.studies.shared.curves import CurveResult
from remnant.studies.shared.pages import RunFacts
from remnant.studies.shared.result_parts import Finding, Tested

QUESTION = "attack-curve"
TITLE = "Attack success against lag"
CurveCommand = CommandResult[Finding, CurveResult]


def recorded(result: CurveResult) -> CurveCommand:
    """Return a curve with its finding."""
    curve = result.shown()
    last = curve.show_point(curve.end)
    sentence = (
        f"It is {curve.show_point(curve.start)} at lag {lag_text(curve.start.lag)} and {last} at "
        f"lag {lag_text(curve.end.lag)}."
    )
    sentence += "" if curve.chance is None else f" Guessing gives {curve.show(curve.chance)}."
    return CommandResult(
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


def page(result: CurveCommand, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield from record_page(
        result,
        run,
        lambda measured: [section(TITLE, curve_page(measured))],
        heading=TITLE,
        what="The curve",
        checks=of_curve(result),
    )
