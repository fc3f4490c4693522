"""M, shares, differences and self-influence in print."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from remnant.report.blocks import Cell
from remnant.report.curve import SPACE
from remnant.report.numerals import count_text, epoch_text, power_text
from remnant.studies.shared.estimates import Estimate

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


def nats_text(value: float, *, up: bool = False) -> str:
    """A score in sentences: three decimals, or two significant digits where it is small.

    Args:
        value: A finite number.
        up: Round up, for an upper bound.

    Guarantees:
        * Only 0 itself is printed as a zero.
        * With ``up`` the number printed is never less than ``value``.

    Example:
        >>> nats_text(1.1166), nats_text(0.00781), nats_text(-0.00000123), nats_text(0.0)
        ('1.117', '0.0078', '-1.2e-06', '0')
        >>> nats_text(1.1161, up=True)
        '1.117'
    """
    exact = Decimal(value)
    if exact == 0:
        return "0"
    unit = Decimal(1).scaleb(min(-3, exact.adjusted() - 1))
    rounded = exact.quantize(unit, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN)
    return f"{rounded:.3f}" if abs(rounded) >= Decimal("0.01") else f"{float(rounded):.2g}"


def interval_text(estimate: Estimate) -> str:
    """Both ends of a number."""
    return f"{number_text(estimate.low)} to {number_text(estimate.high)}"


def estimate_text(estimate: Estimate) -> str:
    """A number with its interval, such as ``0.0123 (−0.001 to 0.025)``."""
    return f"{number_text(estimate.value)} ({interval_text(estimate)})"


def estimate_cell(estimate: Estimate) -> Cell:
    """The same in a table, with the interval in small print."""
    return Cell(number_text(estimate.value), interval_text(estimate))


def points_number(value: float) -> str:
    """A difference of two shares in points, such as ``+12.0``."""
    return f"{round(100 * value, 1) + 0.0:+.1f}".replace("-", MINUS)


def points_text(value: float) -> str:
    """A difference of two shares, such as ``+12.0 points``."""
    return f"{points_number(value)}{SPACE}points"


def points_ends(estimate: Estimate) -> str:
    """Both ends of a difference of shares, without the unit."""
    return f"{points_number(estimate.low)} to {points_number(estimate.high)}"


def points_estimate(estimate: Estimate) -> str:
    """A difference of shares with its interval."""
    return f"{points_text(estimate.value)} ({points_ends(estimate)})"


def correlation_text(estimate: Estimate) -> str:
    """A correlation with its interval, to two digits."""
    value, low, high = (f"{round(end, 2) + 0.0:.2f}".replace("-", MINUS) for end in estimate)
    return f"{value} ({low} to {high})"


def epochs_ends(estimate: Estimate) -> str:
    """The first and the last epoch at which training stopped."""
    return f"{epoch_text(estimate.low)} to {epoch_text(estimate.high)}"


def capital(text: str) -> str:
    """The same with a capital."""
    return text[:1].upper() + text[1:]
