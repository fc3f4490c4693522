"""How a study is run: device, data folder, and its jobs, one after another or by an executor.

A study trains its models in *jobs*: a block of a shadow pool, the population of a grid, a
trial's twins, reference models. A job is a function of the study's data and the job's own
arguments. What it returns, and what it puts into its output, does not depend on who runs it.

Each job is kept when it is done. The process that runs the study is the only one that writes to its
record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike

from remnant.data.own_code import TrustedFile
from remnant.data.own_files import OwnFiles
from remnant.progress import Part
from remnant.progress import Progress as Progress
from remnant.records import Record

if TYPE_CHECKING:
    from remnant.population import Checkpoint


Keep = Callable[["Job", Any], None]


class JobOutput(Protocol):
    """Takes what a job has measured: the record itself, or what a worker sends back."""

    def put_array(self, name: str, array: ArrayLike) -> None:
        """Take an array under a name."""
        ...

    def update_execution(self, changes: Mapping[str, Any]) -> None:
        """Take what the record says of how the job was trained."""
        ...


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a study is run; none of it may change the numbers.

    Attributes:
        device: Where models compute.
        data_folder: Holds the data sets.
        checkpoint_seconds: Least time between two checkpoints.
        compiled: Whether convolutional models are compiled on a GPU.
        pool_folder: Of the shadow pool; by default ``pool`` in the run's own folder.
        pool_block: Models of a shadow pool that are trained and stored together.
        recipe_folder: Of the recipe, where there is one.
        executor: Runs the study's jobs; None: this process, one after another.
        reveal: Whether the record may hold canaries for its page to show.
        trusted: Files whose code a recipe may run.
    """

    device: str = "cpu"
    data_folder: Path | None = None
    checkpoint_seconds: float = 30.0
    compiled: bool = False
    pool_folder: Path | None = None
    pool_block: int = 32
    recipe_folder: Path | None = None
    executor: Executor | None = None
    reveal: bool = False
    trusted: tuple[TrustedFile, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the executor out: a worker that gets this runs jobs itself."""
        return self.__dict__ | {"executor": None}

    def own_files(self, settings: Any) -> OwnFiles:
        """Return where the user's own files are.

        Relative paths start at the data folder or, without one, at the recipe's folder.

        Args:
            settings: A section with ``path`` and ``held_out``.
        """
        home = self.recipe_folder if self.data_folder is None else self.data_folder
        return OwnFiles(path=settings.path, held_out=settings.held_out, folder=home)

    def threads(self) -> int:
        """Return how many threads each job computes with."""
        if self.executor is not None:
            return self.executor.threads
        import torch  # which a recipe is checked without

        return torch.get_num_threads()

    def facts(self) -> dict[str, Any]:
        """Return what the record says of it."""
        facts = {"device": self.device, "compiled": self.compiled}
        return facts if self.executor is None else facts | self.executor.facts()


@dataclass(frozen=True, slots=True, eq=False)
class JobContext:
    """Where one job runs.

    Attributes:
        execution: Device and switches of this place.
        output: Takes the job's arrays.
        folder: For checkpoints; None where none are written.
        progress: The progress callback.
    """

    execution: Execution
    output: JobOutput
    folder: Path | None
    progress: Progress | None

    def checkpoint(self, file: str, key: str) -> Checkpoint | None:
        """Return where a training is saved, if it is.

        Args:
            file: Name of the checkpoint's file; the job has the same in ``saved``.
            key: What the training is of.
        """
        if self.folder is None:
            return None
        from remnant.population.checkpoint import Checkpoint

        seconds = self.execution.checkpoint_seconds
        return Checkpoint(self.folder / file, seconds=seconds, key=key)

    def on_step(self, stage: str, steps: int) -> Callable[[int], None] | None:
        """Return what a training calls after each step."""
        return None if self.progress is None else Part(self.progress, stage, steps)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Job:
    """A part of a study that is trained together and kept when it is done.

    Attributes:
        name: In words, such as ``"models 33 to 64 of 96"``.
        work: Called with what the study's jobs share and with the context. A function of a module,
            or a ``functools.partial`` of one, so that it can be sent to another process.
        members: How many models it trains.
        steps: How many updates each of them has, at most.
        saved: Name of its checkpoint's file; the checkpoint is removed when the job is kept.
    """

    name: str
    work: Callable[[Any, JobContext], Any]
    members: int = 1
    steps: int = 1
    saved: str = ""

    @property
    def size(self) -> int:
        """Updates of all its models together."""
        return self.members * self.steps


@dataclass(frozen=True, slots=True)
class Workload:
    """How much there is to train.

    Attributes:
        jobs: How many jobs.
        size: Updates of all their models together.
    """

    jobs: int = 0
    size: int = 0

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> Workload:
        """Return that of some jobs."""
        return cls(len(jobs), sum(job.size for job in jobs))

    def __add__(self, other: Workload) -> Workload:
        return Workload(self.jobs + other.jobs, self.size + other.size)

    def __sub__(self, other: Workload) -> Workload:
        return Workload(self.jobs - other.jobs, self.size - other.size)


class Executor(Protocol):
    """Runs jobs somewhere else and returns what they have measured.

    Attributes:
        threads: Of each worker.
        shares_disk: Whether workers read and write the run's folder.
    """

    def __enter__(self) -> Any: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def threads(self) -> int: ...  # noqa: D102
    @property
    def shares_disk(self) -> bool: ...  # noqa: D102

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
        """Run all jobs, in any order.

        Args:
            jobs: Those of one stage; none needs what another one returns.
            shared: What all of them need, such as the data; it is sent once.
            execution: Device and switches.
            folder: For checkpoints, where workers can write there.
            keep: Called in this process with each job that is done.
            on_size: Called with the updates done so far.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """Return what the record says of it: where jobs ran, and the threads of each worker."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a worker sends back of one job.

    Attributes:
        value: What its work returned.
        arrays: What it put into its output, in that order.
        changes: What the record is to say of how it was trained.
    """

    value: Any
    arrays: dict[str, Any]
    changes: dict[str, Any]


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
    from remnant.population.checkpoint import remove_checkpoint  # a recipe is checked without it

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
