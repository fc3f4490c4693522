"""Which choices of training cause exposure? One canary format under several variants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from remnant.records import Record
from remnant.studies.choices.measure import put_training_results
from remnant.studies.choices.population import (
    population_job,
    populations,
    time_population,
    train_population,
)
from remnant.studies.choices.prepared import PreparedVariant, Runs, prepare_runs
from remnant.studies.choices.recipe import ExposureTrainingStudy
from remnant.studies.exposure.audit import Progress
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, Workload
from remnant.studies.jobs.running import run_jobs
from remnant.studies.shared.recording import joint_fingerprint, put_ledger, run_in_record
from remnant.studies.shared.settings import Execution


def run_exposure_training(
    study: ExposureTrainingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Run the study in ``folder``: train, look, measure. Resumes an interrupted run.

    The canaries follow from the plan's seed and are nowhere written down.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    runs = prepare_runs(study.parts(), execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=joint_fingerprint(run.text_fingerprint for run in runs.values()),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        work=lambda record: _work(study, runs, execution, record, progress),
        origins=[run.origin for run in runs.values()],
    )


def estimate_exposure_training(
    study: ExposureTrainingStudy, execution: Execution
) -> dict[str, Any]:
    """Time a few steps of training and estimate what the study takes; writes nothing."""
    runs = prepare_runs(study.parts(), execution)
    estimates = [time_population(together, execution) for together in populations(runs)]
    every, _ = _jobs(runs, key="", kept=())
    return {
        "members": sum(int(estimate["members"]) for estimate in estimates),
        "steps": sum(int(estimate["steps"]) for estimate in estimates),
        "memory_mib": round(max(estimate["bytes"] for estimate in estimates) / 2**20, 1),
        "minutes": round(sum(estimate["seconds"] for estimate in estimates) / 60, 2),
        "groups": [
            planned_job(job, seconds=estimate["seconds"])
            for job, estimate in zip(every, estimates, strict=True)
        ],
    }


def _work(
    study: ExposureTrainingStudy,
    runs: dict[str, PreparedVariant],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    key = f"{study.fingerprint}/{record.data_fingerprint}"
    every, missing = _jobs(runs, key=key, kept=record.array_names())
    run_jobs(
        missing,
        shared=runs,
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(every),
    )
    first = runs["primary"]
    put_ledger(record, first.plan.ledger(examples=first.planted.examples))
    put_training_results(record, study, runs)
    record.finish()


def _jobs(runs: Runs, *, key: str, kept: Sequence[str]) -> tuple[list[Job], list[Job]]:
    """Return the jobs of the study, and those of them that have something to measure yet."""
    together = populations(runs)
    every, missing = [], []
    for number, job in enumerate(together, start=1):
        names, wanted = list(job), [name for name in job if f"{name}.bits" not in kept]
        named = f"training {number} of {len(together)}" if len(together) > 1 else "training"
        work = partial(_train, names, wanted, named, key)
        every.append(population_job(names, runs, work, named=named))
        missing += every[-1:] if wanted else []
    return every, missing


def _train(
    names: Sequence[str],
    wanted: Sequence[str],
    named: str,
    key: str,
    runs: Runs,
    context: JobContext,
) -> None:
    """Train one population and measure what is wanted of it."""
    together = {name: runs[name] for name in names}
    train_population(together, context, key=key, wanted=wanted, named=named)
