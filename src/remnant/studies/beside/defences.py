"""What stands beside the outcome of a study of defences."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import bits_text
from remnant.studies.beside.checks import (
    at_chance,
    harm,
    not_measured,
    outcome_of,
    positive_control,
)
from remnant.studies.beside.choices import above_chance
from remnant.studies.choices.result import (
    Defences,
    DefencesResult,
    DefencesVerdict,
    MeasuredRemedy,
)


def beside(result: DefencesResult) -> tuple[Check, ...]:
    """The controls of a study of defences and what contradicts its outcome."""
    defences, outcome = result.defences, outcome_of(result.verdict)
    if isinstance(defences, Absent):
        return (not_measured("positive control"),)
    chosen = result.verdict.cheapest if isinstance(result.verdict, DefencesVerdict) else None
    return tuple(_checks(defences, outcome, chosen))


def _checks(defences: Defences, outcome: Outcome | None, chosen: str | None) -> Iterator[Check]:
    nothing = defences.nothing
    known = nothing.exposure[1] is not None
    found = above_chance(nothing.exposure, defences.limit) if known else None
    yield positive_control(found, outcome, where="without a remedy")
    if nothing.controls is None or nothing.controls[1] is None:
        yield not_measured("negative control")
    else:
        exposed = above_chance(nothing.controls, defences.null_mean_bits)
        text = f"{bits_text(nothing.controls[0])} on average" if exposed else ""
        contradicts = outcome in ("PASS", "FAIL")
        yield at_chance("negative control", not exposed, text=text, contradicts=contradicts)
    for remedy in defences.tried:
        if remedy.label == chosen:
            yield from _chosen(remedy, defences, outcome)


def _chosen(remedy: MeasuredRemedy, defences: Defences, outcome: Outcome | None) -> Iterator[Check]:
    """The remedy that is called the cheapest."""
    if remedy.ranked_first is not None:
        first = remedy.ranked_first[0]
        count = round(first * len(remedy.each))
        text = f"{count or 'none'} of {len(remedy.each)} canaries are the likeliest secret"
        yield harm("extraction", count, text, outcome)
    if remedy.relearnt is None:
        yield not_measured("relearning")
        return
    mean, low, _ = remedy.relearnt
    back = low is not None and low > defences.limit
    text = f"mean exposure {bits_text(mean)} after relearning"
    yield harm("relearning", int(back), text, outcome)
