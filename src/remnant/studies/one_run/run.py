"""How fast does this training run forget? STAGGERED: canaries planted along one ordinary run."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from remnant.data import AuditData
from remnant.probes import SIGNALS
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext
from remnant.studies.jobs.running import run_jobs
from remnant.studies.one_run.measure import measure_one_run
from remnant.studies.one_run.recipe import OneRunStudy
from remnant.studies.shared.classifiers import (
    CanaryLooks,
    accuracy_of,
    check_classifier,
    check_converged,
    fit_classifiers,
    how_trained,
    judge_jobs,
    kept_losses,
    load_data,
    members_of,
    task_fields,
)
from remnant.studies.shared.image_canaries import Planting, draw_canaries, plant
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import Progress, put_ledger, run_on_images
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution

CHECKPOINT = "checkpoint.safetensors"


def run_one_run(
    study: OneRunStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Run the study in ``folder``: train, probe, measure. Resumes an interrupted run.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    run_on_images(study, folder, execution, progress, check=check_classifier, work=_work)


def _work(
    study: OneRunStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    losses = kept_losses(study, data, execution, record, [study.canaries])
    planting = plant(data, [draw_canaries(study.plan, study.canaries, data, losses)])
    if "scores" not in record.array_names():
        key = f"{study.fingerprint}/{record.data_fingerprint}"
        run_jobs(
            [_job(study, key)],
            shared=planting,
            record=record,
            execution=execution,
            progress=progress,
        )
    put_ledger(record, study.plan.ledger())
    usefulness = task_fields(record.array("run.test_accuracy"), data)
    put_parts(record, task=ClassifierTask(**usefulness))
    measure_one_run(record, study)
    record.finish()


def _job(study: OneRunStudy, key: str) -> Job:
    """Return the job that trains the one model."""
    return Job(
        name="run",
        work=partial(_train, study, key),
        steps=study.plan.total_steps,
        saved=CHECKPOINT,
    )


def _train(study: OneRunStudy, key: str, planting: Planting, context: JobContext) -> None:
    """Train the one model and keep the canaries' log-odds at every checkpoint."""
    fit, population = fit_classifiers(
        study,
        members_of(study, study.plan, planting),
        planting,
        context.execution,
        ask={"signals": CanaryLooks(slice(1), slice(None), study.probe_steps())},
        checkpoint=context.checkpoint(CHECKPOINT, key),
        on_step=context.on_step("run", study.plan.total_steps),
    )
    check_converged(fit.probes["signals"], "run")
    context.output.put_array("run.test_accuracy", accuracy_of(population, planting))
    context.output.update_execution(how_trained("run", fit))
    context.output.put_array("scores", fit.probes["signals"][:, 0, SIGNALS.index("log_odds")])


def estimate_one_run(study: OneRunStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run."""
    data = load_data(study, execution)
    check_classifier(study, data, execution)
    planting = plant(data, [draw_canaries(study.plan, study.canaries, data, None)])
    clock = StepClock(execution.device)
    short = dataclasses.replace(
        study.plan, starts=(0,), window=8, repeats=(1,), canaries=2, never=1, steps=16
    )
    members = members_of(study, short, planting)
    fit, _ = fit_classifiers(study, members, planting, execution, on_step=clock)
    seconds = clock.typical * study.plan.total_steps
    judges = judge_jobs(study, [study.canaries])
    return {
        "members": 1,
        "steps": study.plan.total_steps,
        "memory_mib": round((fit.memory + planting.store.images.nbytes) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": [
            *(planned_job(job, seconds=None) for job in judges),
            planned_job(_job(study, ""), seconds=seconds, stage=1),
        ],
    }
