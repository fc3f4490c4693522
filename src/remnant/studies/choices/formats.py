"""How both pages print bits, shares and differences with their intervals."""

from __future__ import annotations

from remnant.report.numerals import bits_number, bits_text, count_text, percent, times_text
from remnant.studies.choices.result import Band, Interval, TrainedVariant


def bound_text(interval: Interval) -> str:
    """Bits with their unit, such as ``≥ 4.31 bits`` for a lower bound."""
    return f"{_bound(interval)}{bits_text(interval.value)}"


def mean_number(interval: Interval) -> str:
    """Bits without their unit, such as ``≥ 4.31`` for a lower bound."""
    return f"{_bound(interval)}{bits_number(interval.value)}"


def interval_bits(interval: Interval) -> str:
    """Bits with their interval, such as ``4.31 bits (3.02 to 5.80)``."""
    return f"{bound_text(interval)}{_ends(interval)}"


def interval_number(interval: Interval) -> str:
    """Bits with their interval, without the unit."""
    return f"{mean_number(interval)}{_ends(interval)}"


def share_text(share: Interval) -> str:
    """A share with its interval, such as ``50.0 % (12.1 % to 87.9 %)``."""
    if share.low is None or share.high is None:
        return percent(share.value)
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"


def signed_text(difference: Interval, *, digits: int = 2) -> str:
    """A difference in bits with its interval, such as ``+4.31 (+3.02 to +5.80)``.

    Where one side is a lower bound, the ends alone.
    """
    known = difference.low is not None and difference.high is not None
    ends = f"{signed(difference.low, digits)} to {signed(difference.high, digits)}" if known else ""
    if difference.at_least:
        return ends or "–"
    return f"{signed(difference.value, digits)}{f' ({ends})' if ends else ''}"


def signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign, such as ``+4.31``; a dash where there is none."""
    if value is None:
        return "–"
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def planted_text(variant: TrainedVariant) -> str:
    """How often its canaries were planted."""
    if variant.planted is not None:
        return times_text(variant.planted)
    return ", ".join(count_text(uses) for uses in variant.repeats)


def band_text(band: Band) -> str:
    """The exposures of a band, such as ``8.00 to 12.00``."""
    if band.low == band.high:
        return f"ranked first, {bits_number(band.high)}"
    return f"{bits_number(band.low)} to {bits_number(band.high)}"


def _bound(interval: Interval) -> str:
    return "≥ " if interval.at_least else ""


def _ends(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f" ({bits_number(interval.low)} to {bits_number(interval.high)})"
