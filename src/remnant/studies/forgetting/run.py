"""How fast does a classifier forget examples that it saw? INJECT and POISON on images."""

from __future__ import annotations

from typing import Any

from remnant.data import AuditData
from remnant.progress import Progress
from remnant.records import Record
from remnant.studies.forgetting.grid import GridData, grid_job, grids, time_grid
from remnant.studies.forgetting.measure import measure_forgetting
from remnant.studies.forgetting.recipe import ForgettingStudy, runs_of
from remnant.studies.forgetting.residual_memory_probe import check_neighbours
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Workload, run_jobs
from remnant.studies.pipeline import Prepared
from remnant.studies.shared.classifiers import (
    check_classifier,
    judge_jobs,
    kept_losses,
    load_data,
    task_fields,
)
from remnant.studies.shared.settings import Execution


def prepare(study: ForgettingStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load the images and refuse what cannot be planted or trained."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    return Prepared(
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        origins=[data.origin],
        work=lambda record: _work(study, data, execution, record, progress),
        ledger=study.plan.ledger(examples=len(data.clean)),
    )


def _work(
    study: ForgettingStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    canaries = [part.canaries for part in study.parts().values()]
    losses = kept_losses(study, data, execution, record, canaries)
    key = f"{study.fingerprint}/{record.data_fingerprint}"
    every = [grid_job(runs, key=key) for runs in _grids(study)]
    kept = record.array_names()
    run_jobs(
        [job for job in every if f"{job.name}.signals" not in kept],
        shared=GridData(data, losses),
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(every),
    )
    record.put_result("task", task_fields(record.array("primary.test_accuracy"), data))
    measure_forgetting(record, study)


def estimate(study: ForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    every = _grids(study)
    judges = judge_jobs(study, [part.canaries for part in study.parts().values()])
    timed = [time_grid(runs, data, execution) for runs in every]
    return {
        "members": sum(int(grid["members"]) for grid in timed),
        "steps": sum(int(grid["steps"]) for grid in timed),
        "memory_mib": round(max(grid["bytes"] for grid in timed) / 2**20, 1),
        "minutes": round(sum(grid["seconds"] for grid in timed) / 60, 2),
        "groups": [planned_job(job, seconds=None) for job in judges]
        + [
            planned_job(grid_job(runs, key=""), seconds=grid["seconds"], stage=1)
            for runs, grid in zip(every, timed, strict=True)
        ],
    }


def _grids(study: ForgettingStudy) -> list[dict[str, ForgettingStudy]]:
    """Return the runs to train, sorted into populations; each run is named after its first part."""
    parts = study.parts()
    return grids({name: parts[name] for name in dict.fromkeys(runs_of(parts).values())})


def check_fit(study: ForgettingStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    for part in study.parts().values():
        check_classifier(part, data, execution)
        part.plan.schedule(examples=len(data.clean))  # refuses canaries that do not fit
    if study.hidden is not None:
        check_neighbours(study.plan, study.canaries, study.hidden, data)
