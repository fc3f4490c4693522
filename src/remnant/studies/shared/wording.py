"""Words that verdicts and messages share; numbers are those of pages, with plain spaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from remnant.report import numerals
from remnant.report.numerals import plain_spaces


def times(many: int) -> str:
    """How often, in words.

    Example:
        >>> times(1), times(4), times(2500)
        ('once', '4 times', '2 500 times')
    """
    return plain_spaces(numerals.times_text(many))


def counted(many: int, thing: str, several: str | None = None) -> str:
    """A number of things, the word in its right form.

    Example:
        >>> counted(1, "variant"), counted(3, "variant"), counted(2000, "canary", "canaries")
        ('1 variant', '3 variants', '2 000 canaries')
    """
    return plain_spaces(numerals.counted(many, thing, several))


def listed(words: Sequence[str], joint: str = "and") -> str:
    """Words in a row.

    Example:
        >>> listed(["1"]), listed(["1", "4", "16"]), listed(["red", "blue"], "or")
        ('1', '1, 4 and 16', 'red or blue')
    """
    *others, last = words
    return f"{', '.join(others)} {joint} {last}" if others else last


def each_times(numbers: Iterable[int]) -> str:
    """How often, for several numbers: each once, in order.

    Example:
        >>> each_times([1]), each_times([4, 1, 4]), each_times([16, 4])
        ('once', '1, 4 times', '4, 16 times')
    """
    several = sorted(set(numbers))
    if len(several) == 1:
        return times(several[0])
    return f"{', '.join(plain_spaces(numerals.count_text(each)) for each in several)} times"


def about(number: int) -> str:
    """A whole number, no smaller, to two digits; a power of ten where it is very large.

    Example:
        >>> about(97), about(3776), about(3_868_086), about(4 * 10**18)
        ('97', '3 800', '3 900 000', '10^19')
    """
    digits = len(str(number))
    if digits > 12:
        return f"10^{digits - 1 if number == 10 ** (digits - 1) else digits}"
    unit = 10 ** max(digits - 2, 0)
    return f"{-(-number // unit) * unit:,}".replace(",", " ")


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
