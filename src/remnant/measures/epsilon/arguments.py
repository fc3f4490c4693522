"""Checks of the arguments that bounds on epsilon share."""

from __future__ import annotations

import math

import numpy as np


def check_delta(given: float, faults: list[str], *, zero: bool = True) -> None:
    """A δ from 0 (where ``zero``) up to, but not including, 1."""
    if _is_no_number(given):
        faults.append(f"delta={given!r} is not a number")
    elif not (0.0 <= given < 1.0) or (given == 0.0 and not zero):
        wanted = "from 0 up to, but not including, 1" if zero else "between 0 and 1"
        faults.append(f"delta={given} is not {wanted}")


def check_positive(name: str, given: float, faults: list[str]) -> None:
    """A finite number above 0."""
    if _is_no_number(given) or not (math.isfinite(given) and given > 0.0):
        faults.append(f"{name}={given!r} is not a finite number above 0")


def check_count(name: str, given: int, low: int, high: int | None, faults: list[str]) -> None:
    """A whole number from ``low`` to ``high``; None has no upper end."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        faults.append(f"{name}={given!r} is not a whole number")
    elif given < low or (high is not None and given > high):
        wanted = f"at least {low}" if high is None else f"between {low} and {high}"
        faults.append(f"{name}={given} is not {wanted}")


def check_one_run_confidence(given: float, faults: list[str]) -> None:
    """A confidence from 0.5 up to, but not including, 1: what one-run bounds hold for."""
    if _is_no_number(given) or not 0.5 <= given < 1.0:
        faults.append(f"confidence={given!r} is not from 0.5 up to, but not including, 1")


def _is_no_number(given: object) -> bool:
    return isinstance(given, bool) or not isinstance(given, int | float | np.number)
