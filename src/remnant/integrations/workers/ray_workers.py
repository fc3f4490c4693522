"""Jobs as tasks on Ray: a cluster that runs already, or one started on this machine alone.

Nothing is sent to Ray's makers: usage statistics and the dashboard are off. A Ray that is started
here listens on the loopback interface only, keeps its files in a folder that only this user can
read, and is ended and removed with the study. Workers print nothing and their logs hold no data.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from remnant.errors import (
    InvalidInput,
    MissingExtra,
    RemnantError,
    import_failure,
    install_hint,
)
from remnant.integrations.workers.ray_address import AUTO, host_and_port
from remnant.studies.jobs.execution import Execution, Job, Outcome
from remnant.studies.jobs.remote import (
    Fault,
    Order,
    other_software,
    processor,
    run_order,
    software,
)
from remnant.studies.jobs.scheduling import OutOfMemory, Patience, WorkerLost, print_line

START_SECONDS = 4.0  # until the first job begins, as benchmarks/on_ray.py measures it
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_CONNECT_SECONDS = 600.0  # until a machine has started a worker and imported Remnant
_ANSWER_SECONDS = 10.0
_NO_ROOM_SECONDS = 60.0  # without any machine that could run a job
_NOTE_SECONDS = 1.0  # between two reports of a worker's progress
_FOLDER = "remnant-ray-"
_COLOURS = "colorama.initialise"  # comes with Ray
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_NOT_INSTALLED = "--on ray needs Ray, which is not installed."
_FULL_STORE_HINT = (
    "Start Ray with more (ray start --object-store-memory BYTES) and with a disk that has room "
    "for what is spilled, then run the same command again: groups that are done are kept."
)


class Unreachable(InvalidInput):
    """No cluster answers at an address."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a cluster has room for.

    Attributes:
        tasks: How many tasks at a time.
        machines: On how many machines.
    """

    tasks: int
    machines: int


class RayWorkers:
    """Runs each job as a task of a Ray cluster; see ``Workers``.

    Args:
        address: Of a running cluster, such as ``10.0.0.1:6379`` or ``auto``; None: a Ray of this
            machine is started, and ended with the study.
        count: Tasks at a time; None: as many as there are processors, or GPUs, for.
        threads: Threads of a task; it reserves as many processors.
        gpus: GPUs that a task reserves, a share or a whole number; 0: tasks compute on processors.

    Raises:
        MissingExtra: Ray is not installed.
        InvalidInput: No cluster answers, a machine has other versions, or none has the resources.
    """

    shares_disk = False

    def __init__(
        self, address: str | None = None, *, count: int | None, threads: int, gpus: float = 0.0
    ) -> None:
        self.address, self.threads, self.gpus = address, threads, gpus
        self.asked, self.count = count, count or 1
        self._ray: Any = None
        self._folder: Path | None = None
        self._shared: Any = None
        self._board: Any = None
        self._task: Any = None
        self._numbers: dict[Any, int] = {}
        self._next = 0
        self._no_room = Patience(_NO_ROOM_SECONDS)
        self._room_there = Room(self.count, 1)

    def __enter__(self) -> RayWorkers:
        self._ray = _import_ray(local=self.address is None)
        try:
            self._connect()
            self._check_machines()
            self._task = self._ray.remote(
                num_cpus=self.threads, num_gpus=self.gpus, max_retries=0, max_calls=0
            )(_run_task)
            self._board = _board(self._ray)
        except BaseException:
            self._disconnect()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._disconnect()

    def survey(self) -> Room | None:
        """Ask the cluster at the address what it has room for; None where none can be reached.

        Raises:
            InvalidInput: A machine has other versions, or none has the resources of a task.
        """
        self._ray = _import_ray(local=False)
        try:
            self._connect()
            self._check_machines()
        except Unreachable:
            return None
        finally:
            self._disconnect()
        return self._room_there

    def facts(self) -> dict[str, Any]:
        """Return what the record says of them."""
        return {
            "device": "cuda" if self.gpus else "cpu",
            "on": "ray",
            "workers": self.count,
            "machines": self._room_there.machines,
        }

    def share(self, shared: Any) -> None:
        """Put what jobs share into the object store.

        Raises:
            InvalidInput: It has no room.
        """
        with self._room_in_store():
            self._shared = self._ray.put(shared)

    def submit(self, job: Job, *, execution: Execution, folder: Path, most: int | None) -> Any:
        """Hand a job to the cluster."""
        order = Order(
            execution=replace(execution, device="cuda" if self.gpus else "cpu"),
            steps=job.steps,
            threads=self.threads,
            most=most,
            versions=software(),
        )
        self._next += 1
        with self._room_in_store():
            handle = self._task.remote(job.work, self._shared, order, self._board, self._next)
        self._numbers[handle] = self._next
        return handle

    def wait(self, handles: Collection[Any], seconds: float) -> Sequence[Any]:
        """Return the jobs that are done, after so many seconds at most.

        Raises:
            InvalidInput: No machine of the cluster could run them for a minute.
        """
        done, _ = self._ray.wait(list(handles), num_returns=1, timeout=seconds)
        if not done and self._no_room.exhausted(not self._places()):
            raise InvalidInput(
                f"No machine of the Ray cluster has {self._wanted()} any more.",
                hint="Add a machine and run the same command again: groups that are done are kept.",
            )
        found: list[Any] = done
        return found

    def result(self, handle: Any) -> Outcome | Fault:
        """Return what a job has measured.

        Raises:
            WorkerLost: Its worker or its machine is gone.
            OutOfMemory: Ray ended it because the machine's memory was nearly full.
            InvalidInput: The object store has no room for what it measured.
        """
        errors = self._ray.exceptions
        self._numbers.pop(handle, None)
        try:
            with self._room_in_store():
                answer: Outcome | Fault = self._ray.get(handle)
        except errors.OutOfMemoryError as fault:
            raise OutOfMemory("the memory of its machine was nearly full.") from fault
        except errors.NodeDiedError as fault:
            raise WorkerLost("its machine left the cluster.") from fault
        except errors.WorkerCrashedError as fault:
            raise WorkerLost("its worker process was killed or crashed.") from fault
        except errors.ObjectLostError as fault:
            raise WorkerLost("its result was lost with the machine that had it.") from fault
        except (errors.RaySystemError, errors.LocalRayletDiedError) as fault:
            raise WorkerLost("Ray itself failed on its machine.") from fault
        return answer

    def steps_done(self) -> Mapping[Any, int]:
        """Return how many updates the running jobs have done, as far as workers reported."""
        errors = self._ray.exceptions
        try:
            done = self._ray.get(self._board.read.remote(), timeout=_NOTE_SECONDS)
        except (errors.RayActorError, errors.GetTimeoutError):
            return {}  # the progress is not worth a failure
        return {handle: done.get(number, 0) for handle, number in self._numbers.items()}

    def cancel(self, handles: Collection[Any]) -> None:
        """End the tasks of jobs that are running."""
        for handle in handles:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(handle, force=True)

    def _connect(self) -> None:
        """Start a Ray on this machine, or connect to the one at the address."""
        quiet = {
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "configure_logging": False,
        }
        variables = dict.fromkeys(_THREAD_VARIABLES, str(self.threads))
        logging.getLogger("ray").setLevel(logging.ERROR)
        if self.address is not None:
            _check_address(self.address)
            try:
                self._ray.init(address=self.address, runtime_env={"env_vars": variables}, **quiet)
            except BaseException as fault:
                if not self._is_start_fault(fault):  # one of these is a token that is missing
                    raise
                if "version mismatch" in str(fault).lower():
                    raise InvalidInput(
                        f"The Ray cluster at {self.address} has another version of Ray or Python.",
                        hint="Install the same versions on all machines.",
                    ) from fault
                raise _unreachable(self.address) from fault
            return
        self.count = self.asked or max(1, (os.cpu_count() or 1) // self.threads)
        short = "/tmp" if os.path.isdir("/tmp") else None  # a socket's path has 107 characters
        self._folder = _private_folder(short)
        with _environment(variables):
            try:
                self._ray.init(
                    address="local",
                    num_cpus=self.count * self.threads,
                    include_dashboard=False,
                    _temp_dir=str(self._folder / "r"),  # Ray opens this one to everybody
                    **quiet,
                )
            except BaseException as fault:
                _end_children(self._folder)
                if not self._is_start_fault(fault):
                    raise
                said = (str(fault).splitlines() or ["no reason is given"])[0].rstrip(".")
                raise InvalidInput(
                    f"Ray cannot be started on this machine: {said}.",
                    hint="Free memory and disk and try again, or run the same command without "
                    "--on ray.",
                ) from fault

    def _is_start_fault(self, fault: BaseException) -> bool:
        """Whether Ray says that it could not start; where it was too slow it raises Exception."""
        kinds = (RuntimeError, ValueError, OSError, self._ray.exceptions.RayError)
        return isinstance(fault, kinds) or type(fault) is Exception

    def _disconnect(self) -> None:
        if self._ray is not None and self._ray.is_initialized():
            self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _check_machines(self) -> None:
        """Ask every machine what it has, before anything is trained.

        Raises:
            InvalidInput: One has other versions, or none has the resources of a task.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        places = self._places()
        if not places:
            raise InvalidInput(
                f"No machine of the Ray cluster has {self._wanted()}.",
                hint="Lower --threads or --gpus-per-task, or add a machine.",
            )
        nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in places}
        ask = self._ray.remote(num_cpus=0, max_retries=3)(_what_is_there)
        asked = {
            name: ask.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote()
            for node, name in nodes.items()
        }
        ours, kinds = software(), {processor()}
        for name, answer in asked.items():
            try:
                theirs, kind = self._ray.get(answer, timeout=_CONNECT_SECONDS)
            except self._ray.exceptions.RayError as fault:
                raise InvalidInput(
                    f"The machine {name} cannot run Remnant: {_cause(fault)}.",
                    hint="Install the same versions on all machines.",
                ) from fault
            if other := other_software(ours, theirs):
                raise InvalidInput(
                    f"The machine {name} has {other}.", hint="Install the same on all machines."
                )
            kinds.add(kind)
        if len(kinds) > 1:
            print_line(
                f"remnant: the machines have different processors ({'; '.join(sorted(kinds))}): "
                "the last digits of numbers may depend on which one trained a group."
            )
        self._room_there = Room(sum(self._room(node) for node in places), len(places))
        if self.asked is None and self.address is not None:
            self.count = self._room_there.tasks

    def _room(self, node: Mapping[str, Any]) -> int:
        """How many tasks a machine has resources for."""
        has = node["Resources"]
        room = int(has.get("CPU", 0) // self.threads)
        return min(room, int(has.get("GPU", 0) / self.gpus)) if self.gpus else room

    def _places(self) -> list[Mapping[str, Any]]:
        """The machines that could run a task."""
        return [node for node in self._ray.nodes() if node["Alive"] and self._room(node)]

    def _wanted(self) -> str:
        processors = "a processor" if self.threads == 1 else f"{self.threads} processors"
        return f"{processors} and {self.gpus:g} GPU" if self.gpus else processors

    @contextmanager
    def _room_in_store(self) -> Iterator[None]:
        """Turn a full object store into one sentence."""
        errors = self._ray.exceptions
        try:
            yield
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as fault:
            raise InvalidInput("Ray's object store is full.", hint=_FULL_STORE_HINT) from fault
        except errors.RayTaskError as fault:
            if isinstance(fault.cause, errors.ObjectStoreFullError | errors.OutOfDiskError):
                raise InvalidInput("Ray's object store is full.", hint=_FULL_STORE_HINT) from fault
            raise


def _check_address(address: str) -> None:
    """Refuse an address at which nothing answers; Ray itself would try for many minutes.

    Raises:
        InvalidInput: It is no address.
        Unreachable: Nothing answers there.
    """
    if address == AUTO:
        return
    try:
        socket.create_connection(host_and_port(address), _ANSWER_SECONDS).close()
    except OSError as fault:
        raise _unreachable(address) from fault


def _unreachable(address: str) -> Unreachable:
    return Unreachable(
        f"No Ray cluster can be reached at {address}.",
        hint="Start one with ray start --head there, or leave the address out. If it asks for a "
        "token, set RAY_AUTH_MODE=token here too.",
    )


def _private_folder(parent: str | None) -> Path:
    """Make the folder of a Ray of this machine; remove those of studies that were killed."""
    home = Path(parent or tempfile.gettempdir())
    for left in home.glob(f"{_FOLDER}*-*"):
        number = left.name.removeprefix(_FOLDER).partition("-")[0]
        if number.isdecimal() and not _is_alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-", dir=parent))


def _end_children(folder: Path) -> None:
    """End the processes that a Ray which could not start has left, by its folder in their command.

    Ray itself forgets them. Where there is no ``/proc``, it ends them with this process.
    """
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and os.fsencode(folder) in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


def check_installed() -> None:
    """Refuse early where Ray is not installed; it is looked up and not imported.

    Raises:
        MissingExtra: It is not.
    """
    if find_spec("ray") is None:
        raise MissingExtra(_NOT_INSTALLED, hint=install_hint("ray"))


def _import_ray(*, local: bool) -> Any:
    """Import Ray without its telemetry and, for a Ray of this machine, without a network.

    Raises:
        MissingExtra: It is not installed.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # The switch that keeps Ray on the loopback interface of a Mac, which works on Linux too.
    if local:
        os.environ[_CLUSTERS] = "0"
    else:
        os.environ.pop(_CLUSTERS, None)
    coloured = _COLOURS in sys.modules
    try:
        import ray
        from ray._private import ray_constants
    except ImportError as fault:
        raise import_failure(fault, library="Ray", message=_NOT_INSTALLED, extra="ray") from fault
    if not coloured and (colours := sys.modules.get(_COLOURS)) is not None:
        atexit.unregister(colours.reset_all)  # it would end the output with an escape sequence
    ray_constants.ENABLE_RAY_CLUSTER = not local
    return ray


def _board(ray: Any) -> Any:
    """Start the actor that workers report their progress to."""

    class Board:  # inside a function, so that its process need not import PyTorch
        def __init__(self) -> None:
            self.done: dict[int, int] = {}

        def note(self, number: int, done: int) -> None:
            self.done[number] = done

        def read(self) -> dict[int, int]:
            return self.done

    return ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()


def _what_is_there() -> tuple[dict[str, str], str]:
    return software(), processor()


def _run_task(work: Any, shared: Any, order: Order, board: Any, number: int) -> Outcome | Fault:
    said = [0.0]

    def note(done: int) -> None:
        now = time.monotonic()
        if now - said[0] >= _NOTE_SECONDS:
            said[0] = now
            board.note.remote(number, done)

    try:
        return run_order(work, shared, order, note)
    except BaseException as fault:
        if not isinstance(fault, Exception):
            raise
        return Fault.of_crash(fault)  # Ray would write the error's text down


def _cause(fault: RemnantError | Exception) -> str:
    """The last line of an error of Ray's, which is the cause."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(fault).__name__


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
