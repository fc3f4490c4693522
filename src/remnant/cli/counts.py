"""Whole numbers and bits in words, and as JSON takes them."""

from __future__ import annotations

import math
from typing import Any

_LARGEST_SHOWN = 10**30
_LARGEST_JSON = 10**4000  # Python writes out no integer of more than 4300 digits


def grouped(number: int) -> str:
    """Return a whole number with its digits in groups of three.

    Example:
        >>> grouped(1000000), grouped(10**40)
        ('1 000 000', 'about 2^132')
    """
    if abs(number) >= _LARGEST_SHOWN:
        return f"about 2^{number.bit_length() - 1}"
    return f"{number:,}".replace(",", " ")


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    Example:
        >>> counted(1, "control"), counted(2000, "control")
        ('1 control', '2 000 controls')
    """
    return f"{grouped(number)} {thing}{'' if number == 1 else 's'}"


def often(repeats: int) -> str:
    """Return how often a canary is planted.

    Example:
        >>> often(0), often(1), often(16)
        ('never', 'once', '16 times')
    """
    return {0: "never", 1: "once"}.get(repeats, f"{grouped(repeats)} times")


def space_text(space: int) -> str:
    """Return the size of a space, and its bits.

    Example:
        >>> space_text(10000)
        '10 000 secrets (13.3 bits)'
    """
    return f"{counted(space, 'secret')} ({math.log2(space):.1f} bits)"


def space_fields(space: int) -> dict[str, Any]:
    """Return the size of a space as fields of JSON, an exact integer where one can be written."""
    return {**whole("space", space), "space_bits": math.log2(space)}


def whole(name: str, number: int) -> dict[str, Any]:
    """Return an exact integer under this name, or null and the reason."""
    if abs(number) < _LARGEST_JSON:
        return {name: number}
    return {name: None, f"{name}_reason": "it has more than 4000 digits"}


def finite(name: str, number: float | None, reason: str) -> dict[str, Any]:
    """Return a number under this name; where it is none, or infinite, null and the reason.

    Example:
        >>> finite("high", math.inf, "no reference was cheaper")
        {'high': None, 'high_reason': 'no reference was cheaper'}
    """
    if number is not None and math.isfinite(number):
        return {name: number}
    return {name: None, f"{name}_reason": reason}


def bits_between(low: float, high: float, *, digits: int = 2) -> str:
    """Return an interval in bits.

    Example:
        >>> bits_between(3.1, 5.2), bits_between(3.1, math.inf)
        ('3.10 to 5.20 bits', '3.10 bits or more')
    """
    if math.isinf(high):
        return f"{low:.{digits}f} bits or more"
    return f"{low:.{digits}f} to {high:.{digits}f} bits"


def rank_among(rank: str, space: int) -> str:
    """Return a rank, already in words, with what it is a rank among.

    Example:
        >>> rank_among("12", 10**6), rank_among("at most 12", 10**40)
        ('rank 12 of 1 000 000', 'rank at most 12 of about 2^132')
    """
    return f"rank {rank} of {grouped(space)}"


def aligned(rows: list[list[str]], *, left: set[int]) -> list[str]:
    """Return a table's lines; columns in ``left`` begin together, the others end together.

    Example:
        >>> aligned([["name", "bits"], ["canary 1", "2.5"]], left={0})
        ['name      bits', 'canary 1   2.5']
    """
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(wide[at]) if at in left else cell.rjust(wide[at])
            for at, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]
