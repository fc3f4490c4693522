"""Which training choices expose a secret, and which remedies do not? One run for both.

All variants are trained in as few populations as they allow, and measured. Remedies that change
trained models are applied to those that were trained as planned.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from remnant.errors import PlanError
from remnant.population import Population
from remnant.records import Record
from remnant.studies.choices.measure import put_results
from remnant.studies.choices.population import (
    population_job,
    populations,
    time_population,
    train_population,
)
from remnant.studies.choices.post_training import changed_models, relearnt_models
from remnant.studies.choices.prepared import PreparedVariant, Runs, prepare_runs
from remnant.studies.choices.probe import measure_run
from remnant.studies.choices.recipe import BASE, DefencesStudy, ExposureTrainingStudy
from remnant.studies.choices.sanitising import (
    disagreeing_rows,
    placeholder_template,
    sanitised,
    without_rows,
)
from remnant.studies.exposure.audit import Progress
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock, joint_fingerprint
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.variants import Remedy

Study = ExposureTrainingStudy | DefencesStudy


def prepare(study: Study, execution: Execution, progress: Progress | None) -> Prepared:
    """Plant the text of every training.

    The canaries follow from the plan's seed and are nowhere written down.
    """
    runs = planted_runs(study, execution)
    base = runs[BASE]
    return Prepared(
        data_fingerprint=joint_fingerprint(run.text_fingerprint for run in runs.values()),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        origins=[run.origin for run in runs.values()],
        work=lambda record: _work(study, runs, execution, record, progress),
        ledger=base.plan.ledger(examples=base.planted.examples),
    )


def estimate(study: Study, execution: Execution) -> dict[str, Any]:
    """Time a few steps of training and estimate what the study takes; writes nothing.

    Remedies that change trained models are counted as the measurement of their models.
    """
    runs, remedies = planted_runs(study, execution), study.named()
    halves = [name for name, remedy in remedies.items() if _sanitises(remedy, "disagreement")]
    for name in halves:  # which rows will be left out is not known, and takes no time
        none = [np.array([], dtype=np.int64)] * study.plan.trials
        runs[name] = dataclasses.replace(runs[name], replaced=without_rows(runs[name], none))
    together = populations(runs)
    estimates = [time_population(own, execution) for own in together]
    afterwards = [remedy.settings for remedy in remedies.values() if remedy.settings.afterwards]
    first = next(i for i, own in enumerate(together) if BASE in own)
    base, share = estimates[first], runs[BASE].plan.members / estimates[first]["members"]
    more = sum((rule.steps or 0) + (rule.relearn or 0) for rule in afterwards)
    training = share * (base["seconds"] - base["measuring"])  # of the models trained as planned
    each = [estimate["seconds"] for estimate in estimates]
    # Remedies of trained models are in the job of these.
    each[first] += training / base["steps"] * more + share * base["measuring"] * len(afterwards)
    planned = [  # halves one after another, then the populations
        planned_job(_halves(name, remedies[name], runs[name]), seconds=training, stage=stage)
        for stage, name in enumerate(halves)
    ]
    every, _ = _jobs(study, runs)
    planned += [
        planned_job(job, seconds=seconds, stage=len(halves))
        for job, seconds in zip(every, each, strict=True)
    ]
    return {
        "members": sum(int(estimate["members"]) for estimate in estimates)
        + 2 * study.plan.trials * len(halves),
        "steps": sum(int(estimate["steps"]) for estimate in estimates) + more,
        "memory_mib": round(max(estimate["bytes"] for estimate in estimates) / 2**20, 1),
        "minutes": round((sum(each) + training * len(halves)) / 60, 2),
        "groups": planned,
    }


def planted_runs(study: Study, execution: Execution) -> dict[str, PreparedVariant]:
    """Plant the text of every training; refuse what cannot be planted, trained or ranked.

    Returns:
        The training as planned, its variants, and all remedies that train from the start, by name.

    Raises:
        RemnantError: Anything the user can fix, before anything is written.
    """
    remedies = study.named()
    if isinstance(study, DefencesStudy) and not remedies:
        raise PlanError(
            "The recipe has no [[remedy]], so there is nothing to compare with doing nothing.",
            hint="Add one or more: a label, a kind and the fields of that kind.",
        )
    sanitises = any(_sanitises(remedy, "scan") for remedy in remedies.values())
    runs = prepare_runs(
        study.parts(), execution, also=[placeholder_template()] if sanitises else []
    )
    for name, remedy in remedies.items():
        if name in runs:
            runs[name] = _in_its_way(runs[name], remedy)
            runs[name].schedule()  # refuses an order that does not fit
    return runs


def _in_its_way(run: PreparedVariant, remedy: Remedy[DefencesStudy]) -> PreparedVariant:
    """The run of a remedy with what no field of a training says."""
    settings = remedy.settings
    if settings.kind == "early-stopping":
        every = settings.every or math.ceil(run.epoch_steps)
        return dataclasses.replace(run, stopping=(every, settings.value("patience")))
    if settings.kind == "order":
        return dataclasses.replace(run, clean_last=settings.steps)
    return sanitised(run) if _sanitises(remedy, "scan") else run


def _sanitises(remedy: Remedy[DefencesStudy], by: str) -> bool:
    settings = remedy.settings
    return bool(settings.kind == "sanitising" and settings.value("by") == by)


def _with_rows_left_out(
    study: Study, runs: Mapping[str, PreparedVariant], execution: Execution, record: Record
) -> dict[str, PreparedVariant]:
    """The runs, those that are sanitised by disagreement with the rows that this leaves out.

    The record has the rows, so that they are found once.
    """
    made = dict(runs)
    for name, remedy in study.named().items():
        if not _sanitises(remedy, "disagreement"):
            continue
        run = runs[name]
        if f"{name}.replaced" not in record.array_names():
            halves = _halves(name, remedy, run)
            run_jobs([halves], shared=runs, record=record, execution=execution, progress=None)
        made[name] = dataclasses.replace(run, replaced=record.array(f"{name}.replaced"))
    return made


def _halves(name: str, remedy: Remedy[DefencesStudy], run: PreparedVariant) -> Job:
    """Return the job that trains halves of the data, to find the rows that are left out."""
    return Job(
        name=f"halves of {name}",
        work=partial(_leave_out, name, remedy.settings.value("share")),
        members=2 * run.plan.trials,
        steps=max(1, run.plan.steps // 2),
    )


def _leave_out(name: str, share: float, runs: Runs, context: JobContext) -> None:
    """Find the rows that sanitising by disagreement leaves out."""
    run, begun = runs[name], time.perf_counter()
    dropped = disagreeing_rows(run, context.execution, share=share)
    seconds = (time.perf_counter() - begun) / run.plan.trials
    context.output.update_execution({f"{name}.seconds_after": seconds})
    context.output.put_array(f"{name}.replaced", without_rows(run, dropped))


def _work(
    study: Study,
    runs: Mapping[str, PreparedVariant],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    runs = _with_rows_left_out(study, runs, execution, record)
    key = f"{study.fingerprint}/{record.data_fingerprint}"
    every, unfinished = _jobs(study, runs, key=key, kept=record.array_names())
    run_jobs(
        unfinished,
        shared=runs,
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(every),
    )
    put_results(record, study, runs)


def _jobs(
    study: Study, runs: Runs, *, key: str = "", kept: Sequence[str] = ()
) -> tuple[list[Job], list[Job]]:
    """Return the jobs of the study, and those of them that have something to measure yet.

    Args:
        study: What is run.
        runs: All of its trainings.
        key: Of the checkpoints.
        kept: Names of the arrays that the record has already.
    """
    together, remedies = populations(runs), study.named()
    every, unfinished = [], []
    for number, own in enumerate(together, start=1):
        names, missing = list(own), [name for name in own if f"{name}.bits" not in kept]
        later = {
            name: remedy
            for name, remedy in remedies.items()
            if BASE in own and remedy.settings.afterwards and f"{name}.bits" not in kept
        }
        stage = f"training {number} of {len(together)}" if len(together) > 1 else "training"
        work = partial(_train, names, missing, later, stage, key, bool(remedies))
        every.append(population_job(names, runs, work, named=stage))
        unfinished += every[-1:] if missing or later else []
    return every, unfinished


def _train(
    names: Sequence[str],
    wanted: Sequence[str],
    later: Mapping[str, Remedy[DefencesStudy]],
    stage: str,
    key: str,
    timed: bool,
    runs: Runs,
    context: JobContext,
) -> None:
    """Train one population, measure what is wanted of it, then apply and measure remedies."""
    together = {name: runs[name] for name in names}
    timer = _Timer(context.execution, stage, context.progress) if timed else None
    watched = context if timer is None else dataclasses.replace(context, progress=timer)
    population, members = train_population(together, watched, key=key, wanted=wanted, named=stage)
    for name, remedy in later.items():
        _apply(name, remedy, runs[BASE], members[BASE], population, context)
    models = sum(run.plan.members for run in together.values())
    if timer is not None and (seconds := timer.seconds) is not None:
        context.output.update_execution({f"{name}.seconds": seconds / models for name in names})


def _apply(
    name: str,
    remedy: Remedy[DefencesStudy],
    run: PreparedVariant,
    members: slice,
    population: Population,
    context: JobContext,
) -> None:
    """Apply a remedy to the models trained as planned, and measure them."""
    execution, progress = context.execution, context.progress
    own = dataclasses.replace(run, study=dataclasses.replace(run.study, label=remedy.label))
    begun = time.perf_counter()
    models = changed_models(remedy.settings, own, members, population, execution)
    seconds = (time.perf_counter() - begun) / len(models)
    everybody = slice(0, len(models))
    if remedy.settings.value("relearn"):
        relearnt = relearnt_models(remedy.settings, own, models, execution)
        again = measure_run(own, everybody, relearnt, execution, progress)
        for array in ("low", "high", "saturated", "bits"):
            context.output.put_array(f"{name}.relearnt.{array}", again[array])
    for array, values in measure_run(own, everybody, models, execution, progress).items():
        context.output.put_array(f"{name}.{array}", values)
    context.output.update_execution({f"{name}.seconds_after": seconds})


class _Timer:
    """Times the steps of one stage, and passes progress on."""

    def __init__(self, execution: Execution, stage: str, progress: Progress | None) -> None:
        self._clock, self._stage, self._progress = StepClock(execution.device), stage, progress
        self._steps = 0

    def __call__(self, stage: str, done: int, of: int) -> None:
        """Note a step, if it is one of the stage."""
        if stage == self._stage:
            self._clock(done)
            self._steps = done
        if self._progress is not None:
            self._progress(stage, done, of)

    @property
    def seconds(self) -> float | None:
        """Of all steps by the median step; None where fewer than two steps were seen."""
        return self._clock.typical * self._steps if len(self._clock.times) > 1 else None
