"""The side of a worker: runs one job and collects what it measures."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

import remnant
from remnant import errors
from remnant.data.own_code import explained
from remnant.errors import RemnantError, is_out_of_memory
from remnant.population.memory import at_most
from remnant.studies.jobs.execution import Execution, JobContext, Outcome

_PACKAGES = ("torch", "numpy")
_HOME = Path(remnant.__file__).parent


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a job could not be run, as a worker sends it back.

    Attributes:
        kind: Name of the error's class; ``"memory"`` where memory ran out, ``"crash"`` where the
            job raised an error that is not one of Remnant's.
        message, hint: As in ``RemnantError``.
    """

    kind: str
    message: str
    hint: str | None = None

    @classmethod
    def of_crash(cls, fault: BaseException) -> Fault:
        """Return the kind and place of an unexpected error, without its text.

        The text of another library's error may quote what it was given: a secret.
        """
        frames = [frame for frame in extract_tb(fault.__traceback__) if _is_own(frame.filename)]
        last = frames[-1] if frames else None
        where = f" in remnant/{_within(last.filename)}, line {last.lineno}" if last else ""
        return cls(
            "crash",
            f"{type(fault).__name__}{where} (its text is withheld, since it may hold a secret).",
            "Run the same command without --on to see the whole error; groups that are done are "
            "kept.",
        )

    def error(self) -> RemnantError:
        """Return the error, to be raised where the study is run."""
        kind = getattr(errors, self.kind, RemnantError)
        known = isinstance(kind, type) and issubclass(kind, RemnantError)
        made: RemnantError = (kind if known else RemnantError)(self.message, hint=self.hint)
        return made


@dataclass(slots=True)
class _Collected:
    """The output of a worker: what it took is sent back."""

    arrays: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def put_array(self, name: str, array: ArrayLike) -> None:
        self.arrays[name] = np.asarray(array)

    def update_execution(self, changes: Mapping[str, Any]) -> None:
        self.changes |= changes


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Order:
    """What a worker is asked to do with a job, besides its work and data.

    Attributes:
        execution: Device and switches.
        steps: Updates of the job; only progress of that many is reported.
        threads: Threads to compute with.
        folder: For checkpoints, where the worker can write there.
        most: Members in one pass, at most; None: as many as fit.
        versions: As ``software()`` of the process that runs the study.
    """

    execution: Execution
    steps: int
    threads: int
    folder: Path | None = None
    most: int | None = None
    versions: Mapping[str, str] | None = None


def run_order(
    work: Callable[[Any, JobContext], Any],
    shared: Any,
    order: Order,
    note: Callable[[int], None] | None = None,
) -> Outcome | Fault:
    """Run a job in this process.

    Args:
        work: Of the job.
        shared: What the study's jobs share.
        order: How it is to be run.
        note: Called with the updates done.

    Returns:
        What it measured, or a fault that the user can fix. Other errors are raised.
    """
    if order.versions is not None and (other := other_software(order.versions, software())):
        return Fault("InvalidInput", f"A worker has {other}.", "Install the same on all machines.")
    torch.set_num_threads(order.threads)
    if order.execution.device.startswith("cuda:"):
        torch.cuda.set_device(order.execution.device)
    collected = _Collected()

    def progress(_: str, done: int, of: int) -> None:
        if note is not None and of == order.steps:
            note(done)

    context = JobContext(order.execution, collected, order.folder, progress)
    try:
        with at_most(order.most), explained(order.execution.trusted):
            value = work(shared, context)
    except RemnantError as fault:
        return Fault(type(fault).__name__, fault.message, fault.hint)
    except (MemoryError, RuntimeError) as fault:
        if not is_out_of_memory(fault):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return Fault("memory", "its worker ran out of memory")
    return Outcome(value, collected.arrays, collected.changes)


@cache
def software() -> dict[str, str]:
    """Return the versions that numbers depend on; of Remnant, a digest of its code."""
    digest = hashlib.sha256()
    for path in sorted(_HOME.rglob("*.py")):
        digest.update(path.relative_to(_HOME).as_posix().encode())
        digest.update(path.read_bytes())
    found = {
        "Remnant": f"{remnant.__version__} (code {digest.hexdigest()[:8]})",
        "Python": platform.python_version(),
    }
    return found | {package: _version(package) for package in _PACKAGES}


def processor() -> str:
    """Return the kind of processor, as far as it changes the last bits of a number.

    Example:
        >>> processor().startswith(sys.platform)
        True
    """
    return f"{sys.platform} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def other_software(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Return in which versions a worker differs, in words, or None.

    Example:
        >>> other_software({"torch": "2.13.0"}, {"torch": "2.11.0"})
        'torch 2.11.0 and not 2.13.0'
    """
    differing = [
        f"{name} {theirs.get(name, 'missing')} and not {own}"
        for name, own in ours.items()
        if theirs.get(name) != own
    ]
    return ", ".join(differing) or None


def _is_own(file: str) -> bool:
    return Path(file).is_relative_to(_HOME)


def _within(file: str) -> str:
    """The path of a module inside the package."""
    return Path(file).relative_to(_HOME).as_posix()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
