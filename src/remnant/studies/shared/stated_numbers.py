"""Numbers of a result that may be missing: None, and a field ``NAME_reason`` that says why."""

from __future__ import annotations

import math
from typing import Any

NO_PROBABILITY = "the model gives it no probability"
NO_REFERENCE = "no reference was as cheap"
_LARGEST = 10**4000  # Python writes out no integer of more than 4300 digits


def whole(name: str, number: int) -> dict[str, Any]:
    """An exact integer under this name; None and the reason where it has too many digits.

    Example:
        >>> whole("rank", 3), whole("rank", 10**5000)
        ({'rank': 3}, {'rank': None, 'rank_reason': 'it has more than 4000 digits'})
    """
    if abs(number) < _LARGEST:
        return {name: number}
    return {name: None, f"{name}_reason": "it has more than 4000 digits"}


def finite(name: str, number: float | None, reason: str) -> dict[str, Any]:
    """A number under this name; None and the reason where it is missing or infinite.

    Example:
        >>> finite("cost", 2.5, "unknown"), finite("cost", math.inf, "unknown")
        ({'cost': 2.5}, {'cost': None, 'cost_reason': 'unknown'})
    """
    if number is not None and math.isfinite(number):
        return {name: number}
    return {name: None, f"{name}_reason": reason}
