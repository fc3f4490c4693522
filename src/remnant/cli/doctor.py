"""``remnant doctor``: what is installed, what is missing, and where it can compute."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, version

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.terminal import show
from remnant.errors import extra_requirements, install_command

_REQUIRED = ("torch", "numpy", "scipy", "safetensors", "jinja2", "click", "tqdm")
# What a library that does not fit another one raises while it is imported.
_BROKEN = (ImportError, OSError, RuntimeError, AttributeError, TypeError, ValueError, NameError)
_LEAST_PYTHON = (3, 10)
_DEVELOPMENT = "dev"  # the extra of those who work on Remnant itself
_PROGRAMS = {
    "flite": "synthetic voices: speech-forgetting, speech-one-run, remnant speech make",
    "espeak-ng": "synthetic voices: speech-forgetting, speech-one-run, remnant speech make",
}


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of this package.

    Attributes:
        name: As it is installed by.
        missing: Its libraries that are missing or too old, empty where it is installed.
        install: The command that installs it, empty where it is installed.
    """

    name: str
    missing: tuple[str, ...]
    install: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found on this machine.

    Attributes:
        faults: What is required and broken, one sentence each.
        versions: Of Python, Remnant and the libraries that it requires; None of a missing one.
        platform: The operating system.
        extras: Those of this package.
        gpus: Names of the GPUs that PyTorch sees.
        device: What ``--device auto`` takes.
        processors, threads: Of this machine, and those that PyTorch computes with.
        programs: Paths of other programs by name; None of a missing one.
        writable: Whether files can be written, by folder.
    """

    faults: tuple[str, ...]
    versions: dict[str, str | None]
    platform: str
    extras: tuple[Extra, ...]
    gpus: tuple[str, ...]
    device: str
    processors: int
    threads: int | None
    programs: dict[str, str | None]
    writable: dict[str, bool]


@click.command(cls=Command, short_help="Check the installation: versions, extras, devices.")
@declared.as_json
@click.pass_context
def doctor(context: click.Context, /, as_json: bool) -> None:
    """Print versions, extras with the command that installs each, devices and write access.

    The exit code is 0 unless something that Remnant requires is missing or broken; then it is 1.

    \b
    Example:
      remnant doctor
    """
    found = examined()
    if as_json:
        click.echo(json.dumps({"ready": not found.faults, **asdict(found)}, indent=2))
    else:
        show("\n".join(_lines(found)))
    context.exit(1 if found.faults else 0)


def examined() -> Findings:
    """Look at this machine."""
    import remnant

    versions: dict[str, str | None] = {
        "Python": platform.python_version(),
        "remnant": remnant.__version__,
    }
    faults = []
    if sys.version_info < _LEAST_PYTHON:
        faults.append(f"Python {versions['Python']} is older than 3.10.")
    for name in _REQUIRED:
        versions[name] = _version(name)
        try:
            import_module(name)
        except _BROKEN as fault:
            faults.append(f"{name} cannot be loaded: {declared.first_line(fault)}.")
    writable = {
        "this folder": _is_writable(os.curdir),
        "the temporary folder": _is_writable(None),
    }
    if not writable["the temporary folder"]:
        where = os.environ.get("TMPDIR", "/tmp")
        faults.append(f"{where}, the temporary folder, cannot be written.")
    try:
        gpus, threads = _computing()
    except RuntimeError as fault:
        gpus, threads = (), None
        faults.append(f"The GPU cannot be used: {declared.first_line(fault)}.")
    return Findings(
        faults=tuple(faults),
        versions=versions,
        platform=platform.platform(),
        extras=tuple(map(_extra, _extras())),
        gpus=gpus,
        device="cuda" if gpus else "cpu",
        processors=os.cpu_count() or 1,
        threads=threads,
        programs={name: shutil.which(name) for name in _PROGRAMS},
        writable=writable,
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _computing() -> tuple[tuple[str, ...], int | None]:
    """The GPUs that PyTorch sees, and the threads that it computes with."""
    try:
        import torch
    except _BROKEN:  # a fault that is named already
        return (), None
    names = [torch.cuda.get_device_name(place) for place in range(declared.gpus_seen())]
    return tuple(names), torch.get_num_threads()


def _extras() -> list[str]:
    try:
        names = metadata("remnant").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
    return sorted(name for name in names if name != _DEVELOPMENT)


def _extra(name: str) -> Extra:
    missing = tuple(wanted for wanted in extra_requirements(name) if not _is_installed(wanted))
    return Extra(name, missing, install_command(name) if missing else "")


def _is_installed(requirement: str) -> bool:
    """Whether a library is installed, and at least as new as it must be."""
    name, _, least = requirement.partition(">=")
    there = _version(name.strip())
    return there is not None and _numbers(there) >= _numbers(least)


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    Example:
        >>> _numbers("2.13.0+cpu"), _numbers("")
        ((2, 13, 0), ())
    """
    leading = re.match(r"\d+(?:\.\d+)*", text.strip())
    return tuple(map(int, leading[0].split("."))) if leading else ()


def _is_writable(folder: str | None) -> bool:
    """Whether a file can be made in a folder; None stands for the temporary one."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _lines(found: Findings) -> list[str]:
    from remnant.studies.shared.wording import counted

    lines = [f"{name:<12} {number or 'missing'}" for name, number in found.versions.items()]
    lines += ["", "Extras"]
    for extra in found.extras:
        state = f"missing ({', '.join(extra.missing)}): {extra.install}"
        lines.append(f"  {extra.name:<10} {state if extra.missing else 'installed'}")
    lines += ["", "Devices"]
    cpu = counted(found.processors, "processor")
    cpu += "" if found.threads is None else f", {counted(found.threads, 'thread')}"
    lines.append(f"  cpu        {cpu}")
    lines += [f"  cuda:{place}     {name}" for place, name in enumerate(found.gpus)]
    lines += [] if found.gpus else ["  cuda       none"]
    lines += [f"  --device auto takes {found.device}.", "", "Programs"]
    for name, path in found.programs.items():
        lines.append(f"  {name:<10} {path or f'missing; needed for {_PROGRAMS[name]}'}")
    lines += ["", "Files can be written"]
    for place, can in found.writable.items():
        lines.append(f"  {place:<22} {'yes' if can else 'no; name another with --out'}")
    lines += ["", *(found.faults or ("Everything that Remnant requires is there.",))]
    return lines
