"""What Ray costs on one machine, and what a second worker brings.

    python benchmarks/on_ray.py                         # 32 shadow models in blocks of 4
    python benchmarks/on_ray.py --models 256 --block 16 # a longer study: the start weighs less

The same study (a shadow pool on digits, one thread) is run by this process, on Ray with one worker
and on Ray with two, in turn, ``--rounds`` times. Each run's arrays are compared with the first
run's, byte for byte.

Every job notes its CPU time and when it began and ended. Printed are medians over rounds:

- **jobs, CPU seconds**: of all jobs together. Their ratio to the local run's is what a worker
  of Ray costs while it trains.
- **start**: seconds from the call until the first job begins (Ray starts, PyTorch is imported).
- **between jobs**: seconds that a worker waits from one block of the pool to the next.
- **two workers**: time of the pool with one worker by time with two. *Wall* is by the clock and
  means something on an idle machine only. *CPU* is what the jobs' CPU times give when they
  are handed out in their order to workers that wait for nobody: other programs' turns do not count;
  what two workers at work take from each other does, since the times of both are used.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from remnant.integrations.workers.ray_workers import RayWorkers
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.jobs.estimating import minutes_on
from remnant.studies.jobs.execution import Job, JobContext
from remnant.studies.jobs.scheduling import Distributed


def timed(name: str, work: Any, shared: Any, context: JobContext) -> Any:
    """Run a job and note its process, beginning, end and CPU seconds."""
    began, used = time.time(), time.process_time()
    value = work(shared, context)
    row = [os.getpid(), began, time.time(), time.process_time() - used]
    context.output.update_execution({f"timed.{name}": row})
    return value


class TimedRay(Distributed):
    """Ray, with every job timed."""

    def run(self, jobs: Sequence[Job], **how: Any) -> None:
        keep = how.pop("keep")
        own = {
            dataclasses.replace(job, work=partial(timed, job.name, job.work)): job for job in jobs
        }
        super().run(list(own), keep=lambda job, outcome: keep(own[job], outcome), **how)


class InTurn:
    """This process, with every job timed: what ``run_jobs`` does without an executor."""

    shares_disk = True

    def __init__(self) -> None:
        self.threads = torch.get_num_threads()

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        return {}

    def run(self, jobs: Sequence[Job], **how: Any) -> None:
        from remnant.studies.jobs.remote import Order, run_order

        for job in jobs:
            order = Order(
                execution=dataclasses.replace(how["execution"], executor=None),
                steps=job.steps,
                threads=self.threads,
            )
            work = partial(timed, job.name, job.work)
            how["keep"](job, run_order(work, how["shared"], order))


def run_once(study: Any, folder: Path, workers: int, block: int) -> dict[str, Any]:
    """Run the study with so many workers of Ray, or here (0); return what was timed."""
    called = time.time()
    executor: Any = InTurn()
    if workers:
        executor = TimedRay(RayWorkers(count=workers, threads=1))
    with executor:
        run_study(study, folder, Execution(pool_block=block, executor=executor))
    whole = time.time() - called
    noted = [
        (name, *row)
        for record in (Record.open(folder), Record.open(folder / "pool"))
        for name, row in record.execution.items()
        if name.startswith("timed.")
    ]
    pool = [row for row in noted if row[0] != "timed.targets"]
    by_worker: dict[int, list[Any]] = {}
    for row in sorted(pool, key=lambda row: row[2]):
        by_worker.setdefault(row[1], []).append(row)
    return {
        "whole": whole,
        "cpu": sum(row[4] for row in noted),
        "start": min(row[2] for row in noted) - called,
        "gaps": [
            after[2] - before[3]
            for rows in by_worker.values()
            for before, after in itertools.pairwise(rows)
        ],
        "pool_wall": max(row[3] for row in pool) - min(row[2] for row in pool),
        "pool_cpu": minutes_on(
            [{"stage": 0, "minutes": row[4]} for row in pool], workers=max(workers, 1)
        ),
        "groups_wall": sum(row[3] - row[2] for row in noted),
        "arrays": {
            path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.npy"))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--block", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe = files("remnant.studies") / "recipes" / "digits-prediction.toml"
    study = read_recipe(Path(str(recipe)))
    plan = dataclasses.replace(study.plan, models=options.models, steps=options.steps)
    study = dataclasses.replace(study, plan=plan)
    kinds = {"this process": 0, "Ray, 1 worker": 1, "Ray, 2 workers": 2}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
    loads = []
    first: dict[Any, bytes] | None = None
    for number in range(options.rounds):
        for name, workers in kinds.items():
            with tempfile.TemporaryDirectory() as folder:
                found = run_once(study, Path(folder) / "run", workers, options.block)
            loads.append(os.getloadavg()[0])
            arrays = found.pop("arrays")
            first = first or arrays
            if arrays != first:
                raise SystemExit(f"{name}, round {number + 1}: other arrays than the first run's")
            runs[name].append(found)

    def median(name: str, key: str) -> float:
        return statistics.median(run[key] for run in runs[name])

    print(
        f"{platform.machine()}, {os.cpu_count()} processors, torch {torch.__version__}, 1 thread; "
        f"load average {min(loads):.1f} to {max(loads):.1f} (own processes included); "
        f"{options.rounds} rounds"
    )
    print(
        f"{options.models} models and {study.predict.targets} targets, {options.steps} steps, "
        f"blocks of {options.block}; arrays of all {3 * options.rounds} runs: the same bytes"
    )
    print(f"{'':16}{'whole s':>9}{'jobs CPU s':>14}{'start s':>9}{'between jobs s':>18}")
    for name in kinds:
        gaps = [gap for run in runs[name] for gap in run["gaps"]]
        print(
            f"{name:16}{median(name, 'whole'):9.1f}{median(name, 'cpu'):14.2f}"
            f"{median(name, 'start'):9.2f}{statistics.median(gaps):18.3f}"
        )
    here, one, two = kinds
    ratios = [b["cpu"] / a["cpu"] for a, b in zip(runs[here], runs[one], strict=True)]
    print(f"CPU of groups, Ray with one worker by this process: {statistics.median(ratios):.3f}")
    for key in ("wall", "cpu"):
        pairs = zip(runs[one], runs[two], strict=True)
        ratios = [a[f"pool_{key}"] / b[f"pool_{key}"] for a, b in pairs]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"the pool, two workers by one, {key}: {statistics.median(ratios):.2f} ({each})")


if __name__ == "__main__":
    main()
