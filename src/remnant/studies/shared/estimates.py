"""A number with its interval, as results hold it and as pages print it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from remnant.report.blocks import Cell
from remnant.report.numerals import percent


class WithInterval(Protocol):
    """What a measure gives: a number and the ends of its interval."""

    @property
    def value(self) -> float:
        """The number."""
        ...

    @property
    def low(self) -> float:
        """The lower end."""
        ...

    @property
    def high(self) -> float:
        """The upper end."""
        ...


class Estimate(NamedTuple):
    """A number and the ends of its interval; the record holds it as a list of three."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, measured: WithInterval) -> Estimate:
        """Return what a measure gives, without the rest that it says."""
        return cls(measured.value, measured.low, measured.high)

    @property
    def is_share(self) -> bool:
        """Whether all three lie between 0 and 1."""
        return all(0 <= number <= 1 for number in self)


def ends_text(estimate: Estimate) -> str:
    """Both ends with three digits, such as ``0.900 to 0.951``."""
    return f"{estimate.low:.3f} to {estimate.high:.3f}"


def estimate_text(estimate: Estimate) -> str:
    """A number with its interval, such as ``0.931 (0.900 to 0.951)``."""
    return f"{estimate.value:.3f} ({ends_text(estimate)})"


def estimate_cell(estimate: Estimate) -> Cell:
    """The same in a table, with the interval in small print."""
    return Cell(f"{estimate.value:.3f}", ends_text(estimate))


def rate_ends(estimate: Estimate) -> str:
    """Both ends in percent, such as ``2.1 % to 18.5 %``."""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def rate_text(estimate: Estimate) -> str:
    """A share with its interval, such as ``7.7 % (2.1 % to 18.5 %)``."""
    return f"{percent(estimate.value)} ({rate_ends(estimate)})"


def rate_cell(estimate: Estimate) -> Cell:
    """The same in a table, with the interval in small print."""
    return Cell(percent(estimate.value), rate_ends(estimate))
