"""Numbers as arguments: one for all members or one for each; whole ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from remnant.errors import InvalidInput


def per_member(
    name: str,
    value: Any,
    members: int,
    faults: list[str],
    *,
    least: float = 0.0,
    most: float = float("inf"),
    open_below: bool = False,
    open_above: bool = False,
) -> list[float]:
    """Spread a number over the members, or check that there is one for each.

    Args:
        name: The argument, for faults.
        value: A number, or a sequence, array or tensor of them.
        members: How many.
        faults: Takes what is wrong.
        least, most: Bounds.
        open_below, open_above: Whether a bound itself is outside.

    Returns:
        One per member; zeros where a fault was noted.
    """
    nothing = [0.0] * members
    try:
        numbers = np.array(_plain(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        faults.append(f"{name}={value!r} is not a number or one per member")
        return nothing
    if numbers.ndim == 0:
        numbers = np.full(members, numbers)
    if numbers.shape != (members,):
        faults.append(f"{name} has shape {numbers.shape}, not one value per member ({members})")
        return nothing
    above = (numbers > least) if open_below else (numbers >= least)
    below = (numbers < most) if open_above else (numbers <= most)
    if not bool((np.isfinite(numbers) & above & below).all()):
        low = f"above {least:g}" if open_below else f"at least {least:g}"
        high = (
            "" if most == float("inf") else f" and {'below' if open_above else 'at most'} {most:g}"
        )
        faults.append(f"{name}={value!r} is not finite and {low}{high}")
    return [float(number) for number in numbers]


def _plain(value: Any) -> Any:
    """Return a number, or nested lists of them; NumPy alone would also read text and None.

    Raises:
        TypeError: Something else is in it.
    """
    if hasattr(value, "tolist"):  # of NumPy or PyTorch
        value = value.tolist()
    if isinstance(value, Real):
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(type(value).__name__)
    return [_plain(number) for number in value]


def whole_numbers(name: str, values: Any) -> list[int]:
    """Return whole numbers as plain ``int``; anything else is a fault."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name}={values!r} is not a sequence of whole numbers.")
    numbers = [v.item() if hasattr(v, "item") else v for v in values]  # of NumPy or PyTorch
    wrong = [v for v in numbers if isinstance(v, bool) or not isinstance(v, int)]
    if wrong:
        raise InvalidInput(f"{name} holds {wrong[0]!r}, which is not a whole number.")
    return numbers
