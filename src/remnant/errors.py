"""The one family of errors: every fault a user can mend is a ``RemnantError``.

Each child says whose move it is and keeps a builtin parent, so that ``except ValueError`` written
by somebody who never heard of Remnant still works. The message names the argument, the value and
the limit; the hint says what to do.
"""

from __future__ import annotations


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


class MissingExtra(RemnantError, ImportError):
    """An optional library is not installed."""


def require(
    faults: list[str], *, error: type[RemnantError] = InvalidInput, hint: str | None = None
) -> None:
    """Raise one error that lists every fault, or return when there is none."""
    if faults:
        raise error("; ".join(faults) + ".", hint=hint)
