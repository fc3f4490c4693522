"""Scores as they are printed: never rounded to nothing."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal


def nats(value: float, *, up: bool = False) -> str:
    """A score with three decimals, or with two significant digits where it is small.

    Args:
        value: A finite number.
        up: Round up, for an upper bound.

    Guarantees:
        * Only 0 itself is printed as a zero.
        * With ``up`` the number printed is never less than ``value``.

    Example:
        >>> nats(1.1166), nats(0.00781), nats(-0.00000123), nats(0.0), nats(1.1161, up=True)
        ('1.117', '0.0078', '-1.2e-06', '0', '1.117')
    """
    exact = Decimal(value)
    if exact == 0:
        return "0"
    unit = Decimal(1).scaleb(min(-3, exact.adjusted() - 1))
    rounded = exact.quantize(unit, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN)
    return f"{rounded:.3f}" if abs(rounded) >= Decimal("0.01") else f"{float(rounded):.2g}"
