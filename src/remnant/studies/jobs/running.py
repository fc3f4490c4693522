"""Runs the jobs of a study, one after another or by an executor, and keeps each when it is done.

The process that runs the study is the only one that writes to its record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remnant.population import remove_checkpoint
from remnant.records import Record
from remnant.studies.jobs.execution import (
    Execution,
    Job,
    JobContext,
    Keep,
    Outcome,
    Progress,
    Workload,
)

JOBS = "groups"  # in a record's execution: how many of them are done, in words


def run_jobs(
    jobs: Sequence[Job],
    *,
    shared: Any,
    record: Record,
    execution: Execution,
    progress: Progress | None,
    keep: Keep | None = None,
    whole: Workload | None = None,
    later: Workload | None = None,
    study: Record | None = None,
) -> None:
    """Run all jobs of one stage of a study and keep what they measure.

    Guarantees:
        * Everything is written by this process, and a job is kept as soon as it is done.
        * Arrays do not depend on the executor, the number of its workers, or the order in which
          jobs are done.

    Args:
        jobs: Those that are not kept yet; none needs what another one returns.
        shared: What all of them need, such as the data.
        record: Gets the arrays that jobs put on their output.
        execution: Device, and who runs them.
        progress: The progress callback.
        keep: Called with each job that is done and with what its work returned.
        whole: The workload of the whole study; by default these jobs and ``later``.
        later: The workload of the stages that follow.
        study: The record that says how many jobs are done, where it is another one.
    """
    rest = later or Workload()
    total = whole or Workload.of(jobs) + rest
    left = [Workload.of(jobs) + rest]
    noted = study or record

    def done(job: Job, value: Any) -> None:
        if keep is not None:
            keep(job, value)
        if job.saved:
            remove_checkpoint(record.folder / job.saved)
        left[0] -= Workload(1, job.size)
        kept = total.jobs - left[0].jobs
        noted.update_execution({JOBS: f"{kept} of {total.jobs}"})

    if jobs:
        kept = total.jobs - left[0].jobs
        noted.update_execution({JOBS: f"{kept} of {total.jobs}"})
    if execution.executor is None:
        for job in jobs:
            context = JobContext(execution, record, record.folder, progress)
            done(job, job.work(shared, context))
        return

    def receive(job: Job, outcome: Outcome) -> None:
        record.update_execution(outcome.changes)
        for name, array in outcome.arrays.items():
            record.put_array(name, array)
        done(job, outcome.value)

    before = total.size - left[0].size

    def on_size(size: int) -> None:
        if progress is not None:
            progress("study", before + size, total.size)

    execution.executor.run(
        jobs,
        shared=shared,
        execution=execution,
        folder=record.folder,
        keep=receive,
        on_size=on_size,
    )
    noted.update_execution(execution.executor.facts())  # known once workers were started
