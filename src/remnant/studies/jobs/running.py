"""Runs the groups of a study, one after another or by an executor, and keeps each when it is done.

The process that runs the study is the only one that writes to its record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remnant.population import remove_checkpoint
from remnant.records import Record
from remnant.studies.jobs.execution import (
    Execution,
    Group,
    Keep,
    Outcome,
    Progress,
    Site,
    Workload,
)

GROUPS = "groups"  # in a record's execution: how many of them are done, in words


def run_groups(
    groups: Sequence[Group],
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
    """Run all groups of one stage of a study and keep what they measure.

    Guarantees:
        * Everything is written by this process, and a group is kept as soon as it is done.
        * Arrays do not depend on the executor, the number of its workers, or the order in which
          groups are done.

    Args:
        groups: Those that are not kept yet; none needs what another one returns.
        shared: What all of them need, such as the data.
        record: Gets the arrays that groups put on their shelf.
        execution: Device, and who runs them.
        progress: The progress callback.
        keep: Called with each group that is done and with what its work returned.
        whole: The workload of the whole study; by default these groups and ``later``.
        later: The workload of the stages that follow.
        study: The record that says how many groups are done, where it is another one.
    """
    rest = later or Workload()
    total = whole or Workload.of(groups) + rest
    left = [Workload.of(groups) + rest]
    noted = study or record

    def done(group: Group, value: Any) -> None:
        if keep is not None:
            keep(group, value)
        if group.saved:
            remove_checkpoint(record.folder / group.saved)
        left[0] -= Workload(1, group.size)
        kept = total.groups - left[0].groups
        noted.update_execution({GROUPS: f"{kept} of {total.groups}"})

    if groups:
        kept = total.groups - left[0].groups
        noted.update_execution({GROUPS: f"{kept} of {total.groups}"})
    if execution.executor is None:
        for group in groups:
            site = Site(execution, record, record.folder, progress)
            done(group, group.work(shared, site))
        return

    def receive(group: Group, outcome: Outcome) -> None:
        record.update_execution(outcome.changes)
        for name, array in outcome.arrays.items():
            record.put_array(name, array)
        done(group, outcome.value)

    before = total.size - left[0].size

    def on_size(size: int) -> None:
        if progress is not None:
            progress("study", before + size, total.size)

    execution.executor.run(
        groups,
        shared=shared,
        execution=execution,
        folder=record.folder,
        keep=receive,
        on_size=on_size,
    )
    noted.update_execution(execution.executor.facts())  # known once workers were started
