"""One process for each device: who gets which, and what happens when one dies."""

from __future__ import annotations

import os
from concurrent.futures import Future

import pytest

from remnant.integrations.workers import device_workers
from remnant.integrations.workers.device_workers import DeviceWorkers
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.jobs import scheduling
from remnant.studies.jobs.execution import Job
from remnant.studies.jobs.scheduling import Distributed

from .conftest import BLOCK, array_files


class Slow:
    """A pool without a process; its jobs are done when the test says so."""

    def __init__(self, *_, **__):
        self.given = []

    def submit(self, function, *arguments):
        future = Future()
        if function.__name__ == "_take":
            future.set_result(None)
        else:
            self.given.append((arguments, future))
        return future

    def shutdown(self, **_):
        pass


def test_each_job_gets_the_first_gpu_that_is_free(monkeypatch, tmp_path):
    monkeypatch.setattr(device_workers, "ProcessPoolExecutor", Slow)
    devices = [f"cuda:{number}" for number in range(4)]
    with DeviceWorkers(devices, threads=2) as workers:
        workers.share("data")

        def submit(name):
            job = Job(name=name, work=print, steps=7)
            return workers.submit(job, execution=Execution(), folder=tmp_path, most=None)

        first = [submit(f"group {number}") for number in range(4)]
        given = [seat.pool.given[0][0][1] for seat in workers._seats]
        assert [order.execution.device for order in given] == devices
        assert {(order.threads, order.steps, order.folder) for order in given} == {(2, 7, tmp_path)}
        first[2].set_result("done")
        assert workers.wait(first, 0.0) == [first[2]]
        assert workers.result(first[2]) == "done"
        again = submit("group 4")
        assert workers._seats[2].future is again, "the GPU that is free, and no other"
        assert workers.facts() == {"device": "cuda:0, cuda:1, cuda:2, cuda:3"}


def test_two_processes_give_the_same_bytes_though_one_is_killed(
    recipe, local, tmp_path, monkeypatch
):
    monkeypatch.setattr(scheduling, "_PAUSE_SECONDS", 0.01)
    lines, killed = [], []
    with Distributed(DeviceWorkers(["cpu", "cpu"], threads=1), say=lines.append) as executor:

        def kill_once(*_):
            workers = executor.workers
            busy = [seat for seat in workers._seats if seat.future and seat.counter.value > 0]
            if not killed and busy:
                (process,) = busy[0].pool._processes.values()
                killed.append(process.pid)
                os.kill(process.pid, 9)

        run_study(
            read_recipe(recipe),
            tmp_path / "run",
            Execution(pool_block=BLOCK, executor=executor),
            progress=kill_once,
        )
    assert killed
    assert [line for line in lines if "the process on cpu ended" in line]
    assert array_files(tmp_path / "run") == array_files(local)


def test_a_study_that_is_refused_starts_no_process(recipe, tmp_path, monkeypatch):
    study = read_recipe(recipe)
    (tmp_path / "run").write_text("no folder")

    def started(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(device_workers, "ProcessPoolExecutor", started)
    with (
        Distributed(DeviceWorkers(["cpu"], threads=1)) as executor,
        pytest.raises(OSError, match="run"),
    ):
        run_study(study, tmp_path / "run", Execution(executor=executor))
