"""How long the groups of a study take on several workers."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from remnant.studies.jobs.execution import Group


def planned_group(group: Group, *, seconds: float | None, stage: int = 0) -> dict[str, Any]:
    """Return what an estimate says of one group.

    Args:
        group: The group.
        seconds: How long it takes; None where that is not estimated.
        stage: Groups of a stage begin when all of the stage before are done.
    """
    return {
        "name": group.name,
        "stage": stage,
        "models": group.members,
        "steps": group.steps,
        "minutes": None if seconds is None else seconds / 60,
    }


def minutes_on(groups: Sequence[dict[str, Any]], *, workers: int) -> float:
    """Return the minutes that groups take on some workers, each group on the first that is free.

    Groups whose time is not estimated count as 0.

    Args:
        groups: As ``planned_group`` returns them.
        workers: How many groups run at a time.

    Example:
        >>> groups = [{"stage": 0, "minutes": 1.0}, *([{"stage": 1, "minutes": 2.0}] * 3)]
        >>> minutes_on(groups, workers=1), minutes_on(groups, workers=2)
        (7.0, 5.0)
    """
    total = 0.0
    for stage in sorted({group["stage"] for group in groups}):
        free = [0.0] * workers
        for group in groups:
            if group["stage"] == stage:
                heapq.heapreplace(free, free[0] + (group["minutes"] or 0.0))
        total += max(free)
    return total
