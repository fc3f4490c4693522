"""The errors of the package: every fault that a user can fix is a ``RemnantError``.

Each subclass names the kind of fault and keeps a builtin parent, so that ``except ValueError`` in
code that does not know Remnant still works. The message names the argument, the value and
the limit; the hint says what to do.
"""

from __future__ import annotations

import errno
import re
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError


class RemnantError(Exception):
    """A fault with one clear sentence and, where there is one, the next step.

    Attributes:
        message: What is wrong.
        hint: What to do about it.
        faults: What is wrong, one entry for each fault.

    Example:
        >>> print(InvalidInput("fpr=2 is not between 0 and 1.", hint="Pass a share, such as 0.1."))
        fpr=2 is not between 0 and 1. Pass a share, such as 0.1.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.faults: tuple[str, ...] = (message.removesuffix("."),)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} {self.hint}"


class InvalidInput(RemnantError, ValueError):
    """An argument, array or file is not what was asked for."""


class MissingField(InvalidInput):
    """A file can be read, and lacks a field or an array that is asked for by its name."""


class NotEnoughEvidence(RemnantError, ValueError):
    """The data are sound but too few for the claim."""


class PlanError(RemnantError, ValueError):
    """A plan or recipe contradicts itself, or does not fit its data."""


class UnsupportedModel(RemnantError, TypeError):
    """The model does something this backend cannot do exactly."""


class RecordError(RemnantError, OSError):
    """A run folder cannot be written, is damaged, or belongs to another plan or version."""

    def __str__(self) -> str:
        return RemnantError.__str__(self)


class RemnantWarning(UserWarning):
    """Something was wrong and was worked around; the message is one sentence."""


class MissingExtra(RemnantError, ImportError):
    """An optional library is not installed."""


def import_failure(fault: ImportError, *, library: str, message: str, extra: str) -> MissingExtra:
    """Return the error for an optional library that could not be imported.

    Args:
        fault: What the import raised.
        library: As it is called where it is installed from.
        message: What to say where it is not installed.
        extra: The extra of this package that installs it.
    """
    if isinstance(fault, ModuleNotFoundError):
        return MissingExtra(message, hint=install_hint(extra))
    said = (str(fault).splitlines() or ["no reason is given"])[0].rstrip(".")
    return MissingExtra(
        f"{library} is installed but cannot be loaded: {said}.",
        hint="Close other programs if memory is short; otherwise install it again.",
    )


def install_hint(*extras: str) -> str:
    """Return a sentence with the command that installs extras, in a clone and out of one.

    The package is on no index, so that ``pip install remnant[extra]`` would not find it. Outside
    of a clone the command names the libraries themselves.

    Example:
        >>> "pip install" in install_hint("data")
        True
    """
    command, libraries = _install(extras)
    if libraries:
        return f"Run {command} (the extra{'s' * (len(extras) > 1)} {','.join(extras)})."
    return f"Run {command} in your clone of Remnant."


def install_command(*extras: str) -> str:
    """Return the command that installs extras, in a clone and out of one.

    Example:
        >>> install_command("data").startswith("pip install ")
        True
    """
    return _install(extras)[0]


def _install(extras: tuple[str, ...]) -> tuple[str, list[str]]:
    """The command, and the libraries that it names; none in a clone."""
    in_clone = f"pip install -e '.[{','.join(extras)}]'"
    if (Path(__file__).resolve().parents[2] / "pyproject.toml").is_file():
        return in_clone, []
    libraries = list(dict.fromkeys(name for own in extras for name in extra_requirements(own)))
    named = " ".join(f"'{library}'" for library in libraries)
    return (f"pip install {named}" if libraries else in_clone), libraries


def extra_requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, by the metadata of the installed package."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = requires("remnant") or []
    except PackageNotFoundError:
        return []
    libraries = []
    for requirement in requirements:
        library, _, condition = requirement.partition(";")
        if re.fullmatch(rf"\s*extra\s*==\s*['\"]{extra}['\"]\s*", condition):
            inner = re.fullmatch(r"\s*remnant\[(.+)\]\s*", library)
            libraries += (
                [name for part in inner[1].split(",") for name in extra_requirements(part)]
                if inner
                else [library.strip()]
            )
    return libraries


def require(
    faults: list[str], *, error: type[RemnantError] = InvalidInput, hint: str | None = None
) -> None:
    """Raise one error that lists every fault, or return when there is none."""
    if faults:
        raised = error("; ".join(faults) + ".", hint=hint)
        raised.faults = tuple(faults)
        raise raised


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL_HINT = "Free some space, then run the same command again."


def is_disk_full(error: OSError) -> bool:
    """Whether a write failed for lack of space, by a quota or by a limit on the size of files."""
    return error.errno in _DISK_FULL


def write_error(path: Path, error: OSError, *, hint: str | None = None) -> RecordError:
    """Return the error for a file that could not be written.

    Args:
        path: The file.
        error: What the system said.
        hint: What to do where the disk is not full.
    """
    if is_disk_full(error):
        return disk_full(path, error.strerror)
    return RecordError(f"{path} cannot be written: {error.strerror or error}.", hint=hint)


def disk_full(path: Path, reason: str | None = None) -> RecordError:
    """Return the error for a full disk."""
    said = f" ({reason})" if reason else ""
    return RecordError(f"{path} cannot be written: the disk is full{said}.", hint=DISK_FULL_HINT)


# What NumPy raises for files that are no arrays of its own.
NO_ARRAYS = (
    *(OSError, ValueError, EOFError, MemoryError, SyntaxError, TokenError, TypeError),
    *(OverflowError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


def is_out_of_memory(fault: BaseException) -> bool:
    """Whether memory ran out; PyTorch's error is recognised without importing it.

    Example:
        >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
        True
    """
    return (
        isinstance(fault, MemoryError)
        or type(fault).__name__ == "OutOfMemoryError"
        or "allocate memory" in str(fault)
    )
