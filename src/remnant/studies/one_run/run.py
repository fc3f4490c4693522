"""How fast does this training run forget? STAGGERED: canaries planted along one ordinary run."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from remnant.progress import Progress
from remnant.records import Record
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, run_jobs
from remnant.studies.one_run.measure import measure_one_run
from remnant.studies.one_run.recipe import StaggeredStudy
from remnant.studies.pipeline import Prepared, StepClock
from remnant.studies.registry import task_of
from remnant.studies.shared.classifiers import how_trained
from remnant.studies.shared.settings import Execution
from remnant.tasks.task import Source

CHECKPOINT = "checkpoint.safetensors"
_JUDGED = "pool_losses"  # the array of the study's judges


def prepare(study: StaggeredStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load and plant what the study's task does.

    The canaries follow from the plan's seed, and the record holds none of them.
    """
    task = task_of(study)
    source = task.load(study, execution, progress)
    planted = task.plant(study, source, execution)
    return Prepared(
        data_fingerprint=task.fingerprint(source, planted),
        seeds=task.seeds(study),
        origins=[source.origin],
        work=lambda record: _work(study, source, planted, execution, record, progress),
        ledger=study.plan.ledger(),
    )


def _work(
    study: StaggeredStudy,
    source: Source,
    planted: Any,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    task = task_of(study)
    judges = task.judges(study)
    if judges:
        if _JUDGED not in record.array_names():
            run_jobs(judges, shared=source.data, record=record, execution=execution, progress=None)
        losses = record.array(_JUDGED)
        planted = task.plant(study, source, execution, pool_losses=losses)
    if "scores" not in record.array_names():
        key = f"{study.fingerprint}/{record.data_fingerprint}"
        run_jobs(
            [_job(study, key)],
            shared=planted,
            record=record,
            execution=execution,
            progress=progress,
        )
    judged = record.array(f"run.{task.USEFUL}")
    record.put_result("task", task.useful(study, source, planted, judged))
    measure_one_run(record, study)


def _job(study: StaggeredStudy, key: str) -> Job:
    """Return the job that trains the one model."""
    return Job(
        name="run",
        work=partial(_train, study, key),
        steps=study.plan.total_steps,
        saved=CHECKPOINT,
    )


def _train(study: StaggeredStudy, key: str, planted: Any, context: JobContext) -> None:
    """Train the one model and keep the canaries' scores at every checkpoint."""
    task = task_of(study)
    trained = task.train(
        study,
        study.plan,
        planted,
        context.execution,
        steps=study.probe_steps(),
        checkpoint=context.checkpoint(CHECKPOINT, key),
        on_step=context.on_step("run", study.plan.total_steps),
    )
    context.output.put_array(f"run.{task.USEFUL}", task.judge(planted, trained.population))
    context.output.update_execution(how_trained("run", trained.fit))
    context.output.put_array("scores", trained.scores[:, 0])


def estimate(study: StaggeredStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run."""
    task = task_of(study)
    source = task.load(study, execution, imagined=True)
    planted = task.plant(study, source, execution)
    short = dataclasses.replace(
        study.plan, starts=(0,), window=8, repeats=(1,), canaries=2, never=1, steps=16
    )
    clock = StepClock(execution.device)
    trained = task.train(study, short, planted, execution, on_step=clock)
    seconds = clock.typical * study.plan.total_steps
    clock(0)
    task.score(planted, trained.population)
    clock(0)
    seconds += (clock.times[-1] - clock.times[-2]) * len(study.probe_steps())
    seconds += source.left_out()
    judges = task.judges(study)
    job = planned_job(_job(study, ""), seconds=seconds, stage=1 if judges else 0)
    return {
        "members": 1,
        "steps": study.plan.total_steps,
        "memory_mib": round((trained.fit.memory + task.held(planted)) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": [*(planned_job(judge, seconds=None) for judge in judges), job],
    }
