"""One process for each device of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remnant.studies.jobs.execution import Execution, Job, Outcome
from remnant.studies.jobs.remote import Fault, Order, run_order
from remnant.studies.jobs.scheduling import WorkerLost

_here: dict[str, Any] = {}  # in a worker: what jobs share, and the counter of its updates


@dataclass(slots=True, eq=False)
class _Seat:
    """A device, its process, and what runs on it."""

    device: str
    pool: ProcessPoolExecutor
    counter: Any
    future: Future[Outcome | Fault] | None = None


class DeviceWorkers:
    """Runs each job on a device that is free; see ``Workers``.

    Each device has a process of its own. A job's checkpoint is in the run's folder, so that a
    job whose process is killed goes on where it was.

    Args:
        devices: Such as ``["cuda:0", "cuda:1"]``.
        threads: Of each process.
    """

    shares_disk = True

    def __init__(self, devices: Sequence[str], *, threads: int) -> None:
        self.devices, self.threads = tuple(devices), threads
        self._context = multiprocessing.get_context("spawn")
        self._seats: list[_Seat] = []
        self._shared: Any = None

    @property
    def count(self) -> int:
        """How many jobs run at a time."""
        return len(self.devices)

    def __enter__(self) -> DeviceWorkers:
        self._seats = [self._seat(device) for device in self.devices]
        return self

    def __exit__(self, *_: object) -> None:
        for seat in self._seats:
            _end(seat)
        self._seats = []

    def facts(self) -> dict[str, Any]:
        """Return what the record says of them."""
        return {"device": ", ".join(self.devices)}

    def share(self, shared: Any) -> None:
        """Send what jobs share to every process."""
        self._shared = shared
        for sent in [seat.pool.submit(_take, shared) for seat in self._seats]:
            sent.result()

    def submit(
        self, job: Job, *, execution: Execution, folder: Path, most: int | None
    ) -> Future[Outcome | Fault]:
        """Start a job on the first device that is free."""
        place = next(at for at, seat in enumerate(self._seats) if seat.future is None)
        seat = self._seats[place]
        order = Order(
            execution=replace(execution, device=seat.device),
            steps=job.steps,
            threads=self.threads,
            folder=folder,
            most=most,
        )
        seat.counter.value = 0
        try:
            seat.future = seat.pool.submit(_run_here, job.work, order)
        except BrokenProcessPool:  # it ended while it was idle
            seat = self._seats[place] = self._replaced(seat)
            seat.future = seat.pool.submit(_run_here, job.work, order)
        return seat.future

    def wait(self, handles: Collection[Any], seconds: float) -> Sequence[Any]:
        """Return the jobs that are done, after so many seconds at most."""
        return list(wait(handles, timeout=seconds, return_when=FIRST_COMPLETED).done)

    def result(self, handle: Any) -> Outcome | Fault:
        """Return what a job has measured; a process that ended is started anew.

        Raises:
            WorkerLost: Its process ended.
        """
        place = next(at for at, seat in enumerate(self._seats) if seat.future is handle)
        seat = self._seats[place]
        seat.future = None
        try:
            answer: Outcome | Fault = handle.result()
        except BrokenProcessPool as fault:
            self._seats[place] = self._replaced(seat)
            raise WorkerLost(f"the process on {seat.device} ended.") from fault
        return answer

    def steps_done(self) -> Mapping[Any, int]:
        """Return how many updates the running jobs have done."""
        return {seat.future: seat.counter.value for seat in self._seats if seat.future is not None}

    def cancel(self, handles: Collection[Any]) -> None:
        """End the processes of jobs that are running."""
        for place, seat in enumerate(self._seats):
            if seat.future in handles:
                self._seats[place] = self._replaced(seat)

    def _seat(self, device: str) -> _Seat:
        counter = self._context.Value("Q", 0, lock=False)
        pool = ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_begin, initargs=(counter,)
        )
        return _Seat(device, pool, counter)

    def _replaced(self, seat: _Seat) -> _Seat:
        _end(seat)
        made = self._seat(seat.device)
        if self._shared is not None:
            made.pool.submit(_take, self._shared)
        return made


def _end(seat: _Seat) -> None:
    """End a process, also in the middle of a job."""
    processes = list((getattr(seat.pool, "_processes", None) or {}).values())
    seat.pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
        process.join()


def _begin(counter: Any) -> None:
    _here["counter"] = counter


def _take(shared: Any) -> None:
    _here["shared"] = shared


def _count(done: int) -> None:
    _here["counter"].value = done


def _run_here(work: Any, order: Order) -> Outcome | Fault:
    return run_order(work, _here["shared"], order, _count)
