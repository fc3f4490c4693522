"""``remnant run --dry-run``: what recipes would take, on this machine or on workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.run import naming_recipe

if TYPE_CHECKING:
    from remnant.integrations.workers.ray_workers import RayWorkers
    from remnant.studies import Execution, Study
    from remnant.studies.jobs.scheduling import Distributed

_NAMED = 3  # tasks without an estimate that are named


def print_dry_run(
    studies: Mapping[Path, Study],
    execution: Execution,
    executor: Distributed | None,
    *,
    as_json: bool,
) -> None:
    """Print members, steps, memory and minutes of each study; train nothing.

    Args:
        studies: By recipe file.
        execution: How they would be run.
        executor: What would run their jobs; None: this process.
        as_json: Whether estimates are printed as JSON.

    Raises:
        InvalidInput: The cluster that was named refuses the tasks.
    """
    from remnant.studies import estimate_study
    from remnant.studies.own_code import named_code

    capacity = None if executor is None else _capacity(executor)
    estimates: dict[str, dict[str, Any]] = {}
    for recipe, study in studies.items():
        own = replace(execution, recipe_folder=recipe.parent)
        if not execution.trusted and (names := dict(named_code(study))):
            estimates[recipe.stem] = {"timed": False, "needs_trust": names}
            continue
        with naming_recipe(recipe, of=len(studies)), _threads_of(executor):
            estimate = estimate_study(study, own)
        if capacity is not None:
            timed = [known for known in estimates.values() if known.get("timed", True)]
            estimate = capacity.applied(estimate, first=not timed)
        estimates[recipe.stem] = estimate
    if as_json:
        plain = estimates if len(estimates) > 1 else next(iter(estimates.values()))
        click.echo(json.dumps(plain, indent=2))
        return
    for name, estimate in estimates.items():
        if len(estimates) > 1:
            click.echo(name)
        if not estimate.get("timed", True):
            named = ", ".join(
                f"{field} = {name!r}" for field, name in estimate["needs_trust"].items()
            )
            click.echo("The recipe has no fault. Nothing was timed: its code was not run.")
            click.echo(f"Read the code of {named}, then add --trust FILE.")
            continue
        _show(estimate, execution.device)
        if capacity is not None:
            _show_tasks(estimate, capacity)


@dataclass(frozen=True, slots=True)
class _Capacity:
    """How many jobs run at a time.

    Attributes:
        workers: Jobs that run at full speed; None where that is not known.
        words: The number of workers, in words.
        start_seconds: Before the first job begins.
    """

    workers: int | None
    words: str
    start_seconds: float = 0.0

    def applied(self, estimate: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
        """Return an estimate with the minutes on the workers; the first study starts them."""
        from remnant.studies.jobs.estimating import minutes_on

        minutes = None
        if self.workers is not None:
            minutes = minutes_on(estimate["groups"], workers=self.workers)
            minutes = round(minutes + (self.start_seconds / 60 if first else 0.0), 2)
        return {
            **estimate,
            "workers": self.workers,
            "start_seconds": self.start_seconds if first else 0.0,
            "minutes_on_workers": minutes,
        }


def _capacity(executor: Distributed) -> _Capacity:
    from remnant.integrations.workers.ray_workers import START_SECONDS, RayWorkers

    workers = executor.workers
    if not isinstance(workers, RayWorkers):
        return _Capacity(workers.count, str(workers.count))
    own = _on_this_machine(workers) if workers.address is None else _on_the_cluster(workers)
    return replace(own, start_seconds=START_SECONDS)


def _on_this_machine(workers: RayWorkers) -> _Capacity:
    """Workers of a Ray that is started here, at most as many as there are processors for."""
    processors = os.cpu_count() or 1
    room = max(1, processors // workers.threads)
    if workers.gpus:
        import torch

        room = min(room, int(torch.cuda.device_count() / workers.gpus))
    count = workers.asked or room
    if count <= room:
        return _Capacity(count, str(count))
    return _Capacity(room, f"{count}, of which this machine runs {room} at full speed")


def _on_the_cluster(workers: RayWorkers) -> _Capacity:
    """Workers of a cluster, if it answers; otherwise as many as are asked for."""
    from remnant.studies.shared.wording import counted

    room = workers.survey()
    if room is None:
        silent = f"no Ray cluster can be reached at {workers.address}"
        if workers.asked is None:
            return _Capacity(None, f"not known, because {silent}; pass --workers to assume some")
        return _Capacity(workers.asked, f"{workers.asked} as assumed, because {silent}")
    machines = f"on {counted(room.machines, 'machine')}"
    if workers.asked is None or workers.asked <= room.tasks:
        count = workers.asked or room.tasks
        return _Capacity(count, f"{count} {machines}")
    words = f"{room.tasks} {machines}, which is less than --workers {workers.asked}"
    return _Capacity(room.tasks, words)


@contextmanager
def _threads_of(executor: Distributed | None) -> Iterator[None]:
    """Compute with as many threads as a worker has."""
    import torch

    before = torch.get_num_threads()
    try:
        if executor is not None:
            torch.set_num_threads(executor.threads)
        yield
    finally:
        torch.set_num_threads(before)


def _show(estimate: Mapping[str, Any], device: str) -> None:
    click.echo(f"members  {estimate['members']}")
    click.echo(f"steps    {estimate['steps']}")
    click.echo(f"memory   {estimate['memory_mib']} MiB")
    most = " at most, since models stop early" if estimate.get("at_most") else ""
    minutes = estimate["minutes"] or "under 0.01"
    click.echo(f"minutes  {minutes}{most} (timed on a few steps on {device})")
    untimed = [job["name"] for job in estimate["groups"] if job["minutes"] is None]
    if untimed:
        more = f" and {len(untimed) - _NAMED} more" if len(untimed) > _NAMED else ""
        click.echo(f"untimed  {'; '.join(untimed[:_NAMED])}{more} (these minutes come on top)")


def _show_tasks(estimate: Mapping[str, Any], capacity: _Capacity) -> None:
    """Print how many tasks there are, the largest of them, and the time on the workers."""
    jobs = estimate["groups"]
    largest = max(jobs, key=lambda job: job["models"] * job["steps"])
    stages = len({job["stage"] for job in jobs})
    after = f", in {stages} stages one after another" if stages > 1 else ""
    click.echo(
        f"tasks    {len(jobs)}{after}; the largest trains {largest['models']} models for "
        f"{largest['steps']} steps"
    )
    minutes, start = estimate["minutes_on_workers"], estimate["start_seconds"]
    if minutes is None:
        click.echo(f"workers  {capacity.words}")
        return
    started = f", {start:g} s of them for Ray to start" if start else ""
    click.echo(
        f"workers  {capacity.words}: {minutes} minutes if each is as fast as this process{started}"
    )
