"""Runs jobs on workers: hands them out, tries again what failed, keeps what is done.

What a worker is (a process on a GPU of this machine, a task on a Ray cluster) is defined by
``Workers``; everything else is here, and does not change a number.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from remnant.errors import RemnantError
from remnant.studies.jobs.execution import Execution, Job, Outcome
from remnant.studies.jobs.remote import Fault

TRIES = 3  # of a job whose workers are lost
_PAUSE_SECONDS = 0.5  # between two looks at the progress of workers


class WorkerLost(RemnantError, RuntimeError):
    """A worker ended before its job was done; the message says how."""


class OutOfMemory(RemnantError, MemoryError):
    """A worker's memory did not suffice for its job."""


class Workers(Protocol):
    """Processes that run jobs.

    Attributes:
        count: How many jobs run at a time.
        threads: Of each.
        shares_disk: Whether they read and write the run's folder.
    """

    def __enter__(self) -> Any: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def threads(self) -> int: ...  # noqa: D102
    @property
    def shares_disk(self) -> bool: ...  # noqa: D102

    def share(self, shared: Any) -> None:
        """Send what the jobs that follow share, once."""
        ...

    def submit(self, job: Job, *, execution: Execution, folder: Path, most: int | None) -> Hashable:
        """Start a job and return a handle of it."""
        ...

    def wait(self, handles: Collection[Any], seconds: float) -> Sequence[Any]:
        """Return the handles that are done, after so many seconds at most."""
        ...

    def result(self, handle: Any) -> Outcome | Fault:
        """Return what a job that is done has measured.

        Raises:
            WorkerLost: Its worker ended.
            OutOfMemory: Its worker was ended for want of memory.
        """
        ...

    def steps_done(self) -> Mapping[Any, int]:
        """Return how many updates the running jobs have done, by handle, as far as known."""
        ...

    def cancel(self, handles: Collection[Any]) -> None:
        """End jobs that are running."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what the record says of them."""
        ...


def print_line(line: str) -> None:
    """Print a line on standard error, above a progress bar where there is one."""
    if "tqdm" in sys.modules:
        sys.modules["tqdm"].tqdm.write(line, file=sys.stderr)
    else:
        print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """A job that waits or runs.

    Attributes:
        job: The job.
        number: 1 for the first attempt.
        most: Members in one pass, at most.
    """

    job: Job
    number: int = 1
    most: int | None = None


class Distributed:
    """Runs jobs on workers; see ``Executor``. Workers are started with the first job.

    Guarantees:
        * A job whose worker is lost is run again, up to three times in all.
        * A job that runs out of memory is run again with half of the members in each pass; that
          changes no byte on a CPU. A single member that does not fit ends the study.
        * A fault of one job ends the study. Jobs that are done are kept.

    Args:
        workers: Run the jobs.
        say: Called with a line for each job that failed.
    """

    def __init__(self, workers: Workers, *, say: Callable[[str], None] = print_line) -> None:
        self.workers = workers
        self._say = say
        self._shared: Any = None
        self._started = False

    def __enter__(self) -> Distributed:
        return self

    def __exit__(self, *fault: object) -> None:
        if self._started:
            self.workers.__exit__(*fault)
            self._started = False
            self._shared = None

    @property
    def threads(self) -> int:
        """Of each worker."""
        return self.workers.threads

    @property
    def shares_disk(self) -> bool:
        """Whether workers read and write the run's folder."""
        return self.workers.shares_disk

    def facts(self) -> dict[str, Any]:
        """Return what the record says of the workers."""
        return self.workers.facts()

    def run(
        self,
        jobs: Sequence[Job],
        *,
        shared: Any,
        execution: Execution,
        folder: Path,
        keep: Callable[[Job, Outcome], None],
        on_size: Callable[[int], None],
    ) -> None:
        """Run all jobs; see ``Executor.run``.

        Raises:
            WorkerLost: A job lost its worker for the third time.
            OutOfMemory: A job does not fit a worker's memory, member by member.
            RemnantError: A job's own fault.
        """
        if not jobs:
            return
        if not self._started:  # not before: a study that is refused or complete needs no worker
            self.workers.__enter__()
            self._started = True
        if shared is not self._shared:
            self.workers.share(shared)
            self._shared = shared
        plain = replace(execution, executor=None)
        waiting = deque(map(_Attempt, jobs))
        running: dict[Any, _Attempt] = {}
        size = 0
        on_size(0)
        try:
            while waiting or running:
                while waiting and len(running) < self.workers.count:
                    attempt = waiting.popleft()
                    handle = self.workers.submit(
                        attempt.job, execution=plain, folder=folder, most=attempt.most
                    )
                    running[handle] = attempt
                for handle in self.workers.wait(list(running), _PAUSE_SECONDS):
                    attempt = running.pop(handle)
                    again = self._received(attempt, handle, keep)
                    if again is None:
                        size += attempt.job.size
                    else:
                        waiting.appendleft(again)
                done = self.workers.steps_done()
                on_size(size + sum(_size_done(a, done.get(h, 0)) for h, a in running.items()))
        finally:
            self.workers.cancel(list(running))

    def _received(
        self, attempt: _Attempt, handle: Any, keep: Callable[[Job, Outcome], None]
    ) -> _Attempt | None:
        """Keep what a job measured, or return the attempt that follows."""
        job = attempt.job
        try:
            answer = self.workers.result(handle)
            if isinstance(answer, Fault):
                if answer.kind == "memory":
                    raise OutOfMemory(f"{answer.message}.")
                if answer.kind == "crash":
                    raise RemnantError(
                        f"Group {job.name!r} failed: {answer.message}", hint=answer.hint
                    )
                raise answer.error()
        except OutOfMemory as fault:
            return self._with_less_memory(attempt, fault)
        except WorkerLost as fault:
            return self._after_a_loss(attempt, fault)
        keep(job, answer)
        return None

    def _with_less_memory(self, attempt: _Attempt, fault: OutOfMemory) -> _Attempt:
        job = attempt.job
        before = attempt.most or job.members
        if before <= 1:
            raise OutOfMemory(
                f"Group {job.name!r} failed with one model at a time: {fault.message}",
                hint="Run fewer workers on each machine, close other programs there, or use "
                "machines with more memory; groups that are done are kept.",
            ) from fault
        most = before // 2
        self._say(
            f"remnant: group {job.name!r} failed: {fault.message} It is run again with "
            f"{most} of {job.members} models at a time."
        )
        return replace(attempt, most=most)

    def _after_a_loss(self, attempt: _Attempt, fault: WorkerLost) -> _Attempt:
        job = attempt.job
        if attempt.number >= TRIES:
            raise WorkerLost(
                f"Group {job.name!r} failed {TRIES} times; the last time {fault.message}",
                hint="Look at the machine's memory and logs, then run the same command again: "
                "groups that are done are kept.",
            ) from fault
        self._say(
            f"remnant: group {job.name!r} failed: {fault.message} It is run again "
            f"(attempt {attempt.number + 1} of {TRIES})."
        )
        return replace(attempt, number=attempt.number + 1)


def _size_done(attempt: _Attempt, steps: int) -> int:
    return min(steps, attempt.job.steps) * attempt.job.members


class Patience:
    """Says when something has lasted too long.

    Args:
        seconds: How long it may last.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def exhausted(self, lasts: bool) -> bool:
        """Note whether it lasts now; return whether it has lasted for longer than it may."""
        if not lasts:
            self._since = None
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now - self._since > self._seconds
