"""Where numbers come from: versions, machine, threads, seeds, the command and the files it reads.

Versions are read from the installed packages' metadata, so nothing heavy is imported. A plan whose
seed gives secrets back makes a record that is its owner's, and that shows no seed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from remnant.errors import RecordError, RemnantWarning
from remnant.records.arrays import file_sha256

_PACKAGES = ("torch", "numpy", "scipy")
_LARGE = 4 * 2**30  # bytes, whose digest takes seconds
_MOST_FILES = 50  # of a folder that are named one by one


def utc_now() -> str:
    """The time now, UTC, to the second, in ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def is_utc(text: str) -> bool:
    """Whether a text is a time as ``utc_now`` writes it."""
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return False
    return True


def gather(*, device: str, threads: int, seeds: Mapping[str, int]) -> dict[str, Any]:
    """What a later reader needs to know of this process.

    The times and fingerprints of a run are not here: the record keeps them and adds them to
    ``Record.provenance``.

    Args:
        device: The device in words, such as ``"cpu"`` or ``"cuda: NVIDIA H200"``.
        threads: Threads used for arithmetic.
        seeds: Every seed by name.

    Example:
        >>> sorted(gather(device="cpu", threads=2, seeds={"plan": 0}))
        ['device', 'platform', 'processors', 'python', 'seeds', 'threads', 'versions']
    """
    import remnant  # not at the top: the package imports this module while it loads

    return {
        "python": platform.python_version(),
        "versions": {"remnant": remnant.__version__}
        | {package: _version(package) for package in _PACKAGES},
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "device": device,
        "threads": threads,
        "seeds": dict(seeds),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def gives_secrets(plan: Mapping[str, Any]) -> bool:
    """Whether the canaries of a plan can be drawn or dealt again from what the record holds.

    Example:
        >>> gives_secrets({"plan": {"seed": 3}, "secret": {"template": "pin {digits:4}"}})
        True
        >>> gives_secrets({"plan": {"seed": 3}, "data": {"name": "digits"}})
        False
    """
    inner = plan.get("plan")
    own = isinstance(inner, Mapping) and bool({"template", "texts", "images"} & inner.keys())
    return own or "secret" in plan


def without_seeds(value: Any) -> Any:
    """A plan without its seeds, at any depth, for whoever may not draw its secrets again."""
    if isinstance(value, Mapping):
        return {name: without_seeds(inner) for name, inner in value.items() if name != "seed"}
    return [without_seeds(inner) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``remnant``.

    Attributes:
        line: As it was typed, without values that may be secret.
        inputs: The files and folders that it reads, by option; in a folder of models these are
            weights, tokenizer and adapter.
        named: Whether the names of files in folders may be shown.
        started: When it began, UTC.
    """

    line: str
    inputs: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    named: bool = True
    started: str = field(default_factory=utc_now)


_RUNNING: ContextVar[Command | None] = ContextVar("running command", default=None)


@contextmanager
def running(command: Command) -> Iterator[None]:
    """Let records that are written within name this command."""
    token = _RUNNING.set(command)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def running_command() -> Command | None:
    """The command that is running; None in a program of the user's own."""
    return _RUNNING.get()


def command_facts(*, folders: bool = False) -> dict[str, Any]:
    """What the provenance says of the command that is running; nothing where none is.

    Args:
        folders: Whether the files in folders, such as those of a model, are digested too.
    """
    command = running_command()
    if command is None:
        return {}
    return {"command": command.line, "inputs": input_digests(command, folders=folders)}


def used_libraries() -> dict[str, str]:
    """The version of every installed library that this process has loaded; loads none."""
    return {
        name: version(name)
        for module, names in _distributions().items()
        if module in sys.modules
        for name in names
    }


def input_digests(command: Command, *, folders: bool) -> dict[str, str]:
    """The SHA-256 of each file that a command reads, by option and name.

    Args:
        command: The command.
        folders: Whether files in folders are read too: in their order, in pieces, and each once.
    """
    made: dict[str, str] = {}
    for option, paths in command.inputs.items():
        for path in paths:
            if path.is_file():
                made[f"{option} {path.name}" if command.named else option] = _digest_or_not(path)
            elif folders and path.is_dir():
                files = sorted(file for file in path.rglob("*") if file.is_file())
                if command.named and len(files) <= _MOST_FILES:
                    for file in files:
                        made[f"{option} {file.relative_to(path)}"] = _digest_or_not(file)
                else:
                    made[f"{option} ({len(files)} files)"] = joint_digest(files, strict=False)
    return dict(sorted(made.items()))


def _digest_or_not(path: Path) -> str:
    """A digest, or why there is none: what was measured must not be lost for it."""
    try:
        return file_digest(path)
    except RecordError:
        return "cannot be read any more"


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, computed once for as long as the file stays the same.

    Raises:
        RecordError: It cannot be read.
    """
    try:
        about = path.stat()
        return _digest_of(path.resolve(), about.st_size, about.st_mtime_ns)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}.") from error


@cache
def _digest_of(path: Path, size: int, changed: int) -> str:
    if size > _LARGE:
        warnings.warn(
            f"Computing the SHA-256 of {path} ({size / 2**30:.0f} GiB), for the record.",
            RemnantWarning,
            stacklevel=2,
        )
    return file_sha256(path)


def joint_digest(files: list[Path], *, strict: bool = True) -> str:
    """The SHA-256 of the digests of several files, one after another.

    Args:
        files: In their order.
        strict: Whether a file that cannot be read is an error.

    Raises:
        RecordError: A file cannot be read.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update((file_digest(file) if strict else _digest_or_not(file)).encode())
    return digest.hexdigest()
