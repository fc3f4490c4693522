"""The one family of errors: every fault a user can mend is a ``RemnantError``.

Each child says whose move it is and keeps a builtin parent, so that ``except ValueError`` written
by somebody who never heard of Remnant still works. The message names the argument, the value and
the limit; the hint says what to do.
"""

from __future__ import annotations

import errno
from pathlib import Path


class RemnantError(Exception):
    """A fault with one clear sentence and, where there is one, the next step.

    Example:
        >>> print(InvalidInput("fpr=2 is not between 0 and 1.", hint="Pass a share, such as 0.1."))
        fpr=2 is not between 0 and 1. Pass a share, such as 0.1.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} {self.hint}"


class InvalidInput(RemnantError, ValueError):
    """An argument, array or file is not what was asked for."""


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


def import_failure(fault: ImportError, *, library: str, message: str, hint: str) -> MissingExtra:
    """Return the error for an optional library that could not be imported.

    Args:
        fault: What the import raised.
        library: As it is called where it is installed from.
        message, hint: What to say where it is not installed.
    """
    if isinstance(fault, ModuleNotFoundError):
        return MissingExtra(message, hint=hint)
    said = (str(fault).splitlines() or ["no reason is given"])[0].rstrip(".")
    return MissingExtra(
        f"{library} is installed but cannot be loaded: {said}.",
        hint="Close other programs if memory is short; otherwise install it again.",
    )


def require(
    faults: list[str], *, error: type[RemnantError] = InvalidInput, hint: str | None = None
) -> None:
    """Raise one error that lists every fault, or return when there is none."""
    if faults:
        raise error("; ".join(faults) + ".", hint=hint)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_FULL_HINT = "Free some space, then run the same command again: it continues from there."


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
    """Return the error for a full disk: what is stored stays, and the same command continues."""
    said = f" ({reason})" if reason else ""
    return RecordError(f"{path} cannot be written: the disk is full{said}.", hint=_DISK_FULL_HINT)
