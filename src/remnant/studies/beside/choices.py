"""What stands beside a finding about training choices."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import counted
from remnant.studies.beside.checks import at_chance, not_measured, positive_control, task_learnt
from remnant.studies.choices.result import Ends, TrainingChoices, TrainingResult


def beside(result: TrainingResult) -> tuple[Check, ...]:
    """The controls of compared trainings and what contradicts the finding."""
    return tuple(_checks(result))


def _checks(result: TrainingResult) -> Iterator[Check]:
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
