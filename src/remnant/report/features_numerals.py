"""M, shares and self-influence in print."""

from __future__ import annotations

import math

from remnant.report.curve import SPACE
from remnant.report.numerals import count_text, power_text
from remnant.report.prediction_numerals import epoch_text
from remnant.report.prediction_view import Estimate

MINUS = "\N{MINUS SIGN}"
_SMALL, _LARGE = 1e-3, 1e6


def number_text(value: float | None) -> str:
    """A number of any size and sign to three digits; a dash where there is none.

    Example:
        >>> number_text(0.01234), number_text(-2.5), number_text(None)
        ('0.0123', '−2.5', '–')
        >>> number_text(-1.5e-13).replace("\\u202f", " "), number_text(75012.0).replace(SPACE, " ")
        ('−1.5 × 10⁻¹³', '75 000')
    """
    if value is None:
        return "–"
    size, sign = abs(value), MINUS if value < 0 else ""
    if 0 < size < _SMALL or size >= _LARGE:
        return sign + power_text(size)
    if size >= 999.5:
        return sign + count_text(int(float(f"{size:.2e}")))
    return f"{sign}{size:.3g}"


def interval_text(found: Estimate) -> str:
    """Both ends of a number."""
    return f"{number_text(found.low)} to {number_text(found.high)}"


def estimate_text(found: Estimate) -> str:
    """A number with its interval, such as ``0.0123 (−0.001 to 0.025)``."""
    return f"{number_text(found.value)} ({interval_text(found)})"


def points_number(value: float) -> str:
    """A difference of two shares in points, such as ``+12.0``."""
    return f"{round(100 * value, 1) + 0.0:+.1f}".replace("-", MINUS)


def points_text(value: float) -> str:
    """A difference of two shares, such as ``+12.0 points``."""
    return f"{points_number(value)}{SPACE}points"


def points_ends(found: Estimate) -> str:
    """Both ends of a difference of shares, without the unit."""
    return f"{points_number(found.low)} to {points_number(found.high)}"


def points_estimate(found: Estimate) -> str:
    """A difference of shares with its interval."""
    return f"{points_text(found.value)} ({points_ends(found)})"


def correlation_text(found: Estimate) -> str:
    """A correlation with its interval, to two digits."""
    value, low, high = (
        f"{round(one, 2) + 0.0:.2f}".replace("-", MINUS)
        for one in (found.value, found.low, found.high)
    )
    return f"{value} ({low} to {high})"


def times_as(before: float, after: float) -> str:
    """How many times as much, or a dash where there was nothing before.

    Example:
        >>> times_as(2.0, 5.0), times_as(0.0, 5.0)
        ('2.5', '–')
    """
    ratio = after / before if before else math.inf
    return number_text(ratio) if math.isfinite(ratio) else "–"


def epochs_ends(found: Estimate) -> str:
    """The first and the last epoch at which training stopped."""
    return f"{epoch_text(found.low)} to {epoch_text(found.high)}"
