"""Reads and checks the arguments of measures; all faults are collected, then raised together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
GATE_CONFIDENCE = 0.8


def real_numbers(given: ArrayLike) -> NDArray[Any]:
    """The array in ``given``, of real numbers in their own type.

    Raises:
        TypeError: It holds something else, such as dates, texts or records, which NumPy would
            make numbers of.
        ValueError: It is no array.
    """
    array = np.asarray(given)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"{array.dtype} is not a type of real numbers")
    return array


def read_floats(
    name: str, given: ArrayLike, ndim: int | None, faults: list[str], *, axes: str = ""
) -> Floats | None:
    """The finite float64 array in ``given``; or None, with the reason added to ``faults``.

    Args:
        name: The argument's name, for the message.
        given: Anything array-like.
        ndim: How many dimensions it must have; None for any number but zero.
        faults: Grows by one sentence part where something is wrong.
        axes: The shape that is wanted, in words, for the message.
    """
    try:
        if np.iscomplexobj(given):
            faults.append(f"{name} holds complex numbers")
            return None
        array = np.asarray(real_numbers(given), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        faults.append(f"{name} is not an array of numbers")
        return None
    if array.ndim == 0 or (ndim is not None and array.ndim != ndim):
        wanted = "at least 1" if ndim is None else str(ndim)
        shape = f"; it must have the shape {axes}" if axes else ""
        faults.append(f"{name} has shape {array.shape}, not {wanted} dimension(s){shape}")
        return None
    if array.size == 0:
        faults.append(f"{name} is empty, with shape {array.shape}")
        return None
    bad = array.size - int(np.isfinite(array).sum())
    if bad:
        faults.append(f"{name} holds {bad} value(s) that are NaN or infinite")
        return None
    return array


def check_share(name: str, given: float, faults: list[str]) -> None:
    """A number strictly between 0 and 1."""
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        faults.append(f"{name}={given!r} is not a number")
    elif not 0.0 < float(given) < 1.0:
        faults.append(f"{name}={given} is not between 0 and 1")


def check_gate_confidence(name: str, given: float, faults: list[str]) -> None:
    """The confidence of a gate: bounds of less than 80 % prove nothing."""
    before = len(faults)
    check_share(name, given, faults)
    if len(faults) == before and given < GATE_CONFIDENCE:
        faults.append(f"{name}={given:g} is under {GATE_CONFIDENCE:g}, the least that a gate takes")


def check_rng(given: object, faults: list[str]) -> None:
    """Randomness comes in as an argument, never from a global seed."""
    if not isinstance(given, np.random.Generator):
        faults.append(f"rng={given!r} is not a numpy.random.Generator")


def check_draws(given: object, faults: list[str]) -> None:
    """At least twenty resamples: fewer cannot hold a variance."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 20:
        faults.append(f"draws={given!r} is not a whole number of at least 20")


def unseen_needed(fpr: float) -> int:
    """How many unseen scores a threshold at ``fpr`` takes before it can flag a single one."""
    return math.ceil(1.0 / fpr - 1e-9)
