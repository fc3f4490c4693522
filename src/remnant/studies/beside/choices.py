"""What stands beside a finding about training choices, and beside the outcome of defences."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import bits_text, counted
from remnant.studies.beside.checks import (
    at_chance,
    harm,
    not_measured,
    outcome_of,
    positive_control,
    task_learnt,
)
from remnant.studies.choices.result import (
    Defences,
    DefencesResult,
    DefencesVerdict,
    Ends,
    ExposureTrainingResult,
    MeasuredRemedy,
    TrainingChoices,
)


def beside(result: ExposureTrainingResult) -> tuple[Check, ...]:
    """The controls of compared trainings and what contradicts the finding."""
    return tuple(_checks(result))


def _checks(result: ExposureTrainingResult) -> Iterator[Check]:
    training = result.training
    if isinstance(training, Absent):
        yield not_measured("positive control")
        return
    chance = training.null_mean_bits
    exposed = [row.label for row in training.variants if above_chance(row.exposure, chance)]
    known = any(row.exposure[1] is not None for row in training.variants)
    many = len(training.variants)
    where = f"in {len(exposed)} of {counted(many, 'variant')}"
    control = positive_control(bool(exposed) if known else None, None, where=where)
    # Differences between variants none of which remembers anything are no finding about memory.
    yield (
        control
        if exposed or not known
        else Check(name=control.name, status=control.status, text=control.text, contradicts=True)
    )
    yield _negative(training)
    searched = training.searched
    if searched:
        out = sum(sum(row.extracted_each or ()) for row in searched)
        of = sum(len(row.each) for row in searched)
        text = f"{out or 'none'} of {counted(of, 'canary', 'canaries')} extracted"
        yield Check(name="extraction", status="found" if out else "not found", text=text)
    yield from task_learnt(result.task, None)


def _negative(training: TrainingChoices) -> Check:
    measured = [row for row in training.variants if row.controls is not None]
    known = [row for row in measured if row.controls is not None and row.controls[1] is not None]
    if not known:
        return not_measured("negative control")
    exposed = [row for row in known if above_chance(row.controls, training.null_mean_bits)]
    text = f"{len(exposed)} of {counted(len(known), 'variant')}" if exposed else ""
    return at_chance("negative control", not exposed, text=text, contradicts=True)


def above_chance(ends: Ends | None, chance: float) -> bool:
    """Whether the whole interval of a mean exposure is above chance."""
    return ends is not None and ends[1] is not None and ends[1] > chance


def of_defences(result: DefencesResult) -> tuple[Check, ...]:
    """The controls of a study of defences and what contradicts its outcome."""
    defences, outcome = result.defences, outcome_of(result.verdict)
    if isinstance(defences, Absent):
        return (not_measured("positive control"),)
    chosen = result.verdict.cheapest if isinstance(result.verdict, DefencesVerdict) else None
    return tuple(_remedy_checks(defences, outcome, chosen))


def _remedy_checks(
    defences: Defences, outcome: Outcome | None, chosen: str | None
) -> Iterator[Check]:
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
