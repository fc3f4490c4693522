"""How long the jobs of a study take on several workers."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from remnant.studies.jobs.execution import Job


def planned_job(job: Job, *, seconds: float | None, stage: int = 0) -> dict[str, Any]:
    """Return what an estimate says of one job.

    Args:
        job: The job.
        seconds: How long it takes; None where that is not estimated.
        stage: Jobs of a stage begin when all of the stage before are done.
    """
    return {
        "name": job.name,
        "stage": stage,
        "models": job.members,
        "steps": job.steps,
        "minutes": None if seconds is None else seconds / 60,
    }


def minutes_on(jobs: Sequence[dict[str, Any]], *, workers: int) -> float:
    """Return the minutes that jobs take on some workers, each job on the first that is free.

    Jobs whose time is not estimated count as 0.

    Args:
        jobs: As ``planned_job`` returns them.
        workers: How many jobs run at a time.

    Example:
        >>> jobs = [{"stage": 0, "minutes": 1.0}, *([{"stage": 1, "minutes": 2.0}] * 3)]
        >>> minutes_on(jobs, workers=1), minutes_on(jobs, workers=2)
        (7.0, 5.0)
    """
    total = 0.0
    for stage in sorted({job["stage"] for job in jobs}):
        free = [0.0] * workers
        for job in jobs:
            if job["stage"] == stage:
                heapq.heapreplace(free, free[0] + (job["minutes"] or 0.0))
        total += max(free)
    return total
