"""Reads and checks the arguments of measures; all faults are collected, then raised together."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require

Floats = NDArray[np.float64]
GATE_CONFIDENCE = 0.8
Success = Literal["accuracy", "precision", "tpr", "auc"]
SUCCESSES: tuple[Success, ...] = ("accuracy", "precision", "tpr", "auc")
NAMES: dict[Success, str] = {
    "accuracy": "accuracy",
    "precision": "precision",
    "tpr": "true-positive rate",
    "auc": "AUC",
}


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


def chance_level(success: Success, fpr: float) -> float:
    """What an attack without knowledge reaches: 0.5, or the FPR itself for a TPR."""
    return fpr if success == "tpr" else 0.5


def out_of_reach(limit: float, success: Success, fpr: float | None) -> str:
    """Why no attack can pass a limit; empty where one can.

    Precision at balanced classes is at most 1/(1 + FPR).

    Example:
        >>> out_of_reach(0.95, "precision", 0.1)
        'the limit of 0.95 is not under 0.909, the maximum of precision at FPR 0.1'
    """
    if success != "precision" or fpr is None or limit < 1.0 / (1.0 + fpr):
        return ""
    return (
        f"the limit of {limit:g} is not under {1.0 / (1.0 + fpr):.3f}, the maximum of precision at "
        f"FPR {fpr:g}"
    )


def check_limit(limit: float, *, chance: float, success: str, most: float = 1.0) -> None:
    """Refuse a limit that nothing can be shown to lie under.

    Args:
        limit: To be checked.
        chance: What an attack without knowledge reaches.
        success: The measure's name, for the sentence.
        most: What no value can pass: 1 for a rate, the ceiling for an exposure in bits.

    Raises:
        InvalidInput: ``limit`` is not a number, at or under chance, or not under ``most``.
    """
    faults: list[str] = []
    if most == 1.0:
        check_share("limit", limit, faults)
    elif isinstance(limit, bool) or not isinstance(limit, (int, float, np.integer, np.floating)):
        faults.append(f"limit={limit!r} is not a number")
    elif not limit < most:
        faults.append(f"limit={limit} is not under {most:.4g}, the most that {success} can show")
    require(
        faults,
        hint="Pass the largest success that is allowed, such as 0.6."
        if most == 1.0
        else "Lower the limit.",
    )
    if limit <= chance:
        raise InvalidInput(
            f"limit={limit:g} is not above chance, which is {chance:.4g} for {success}.",
            hint="An attack that knows nothing reaches chance; allow a little more.",
        )


def check_attack(
    success: str,
    *,
    fpr: float,
    confidence: float,
    rng: np.random.Generator,
    draws: int,
    faults: list[str],
) -> None:
    """Note what is wrong with the settings that all curves have."""
    if success not in SUCCESSES:
        faults.append(f"success={success!r} is not one of {', '.join(SUCCESSES)}")
    check_share("fpr", fpr, faults)
    check_share("confidence", confidence, faults)
    check_rng(rng, faults)
    check_draws(draws, faults)
