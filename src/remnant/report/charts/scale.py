"""Axes: where a number falls on the paper, and which numbers are worth a tick."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["linear", "symlog", "apart", "log"]
_GAP = 0.22  # share of the logarithmic part by which 0 stands apart


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps the interval from ``low`` to ``high`` onto pixels, first to last.

    A symlog scale is linear up to ``threshold`` and logarithmic beyond, on both sides of zero.
    An apart scale is logarithmic from 1 on; 0, which has no logarithm, stands apart to the left.
    A log scale begins at the threshold, where everything below it stands too.

    Example:
        >>> Scale(low=0.0, high=10.0, first=100.0, last=200.0)(5.0)
        150.0
    """

    low: float
    high: float
    first: float
    last: float
    kind: Kind = "linear"
    threshold: float = 1.0

    def __call__(self, value: float) -> float:
        """Where the value falls, in pixels."""
        low, here, high = self.bend(self.low), self.bend(value), self.bend(self.high)
        if low == high:  # closer than the bend can tell: there it is straight
            low, here, high = self.low, value, self.high
        share = (here - low) / (high - low)
        return self.first + share * (self.last - self.first)

    def ticks(self, count: int) -> list[float]:
        """About ``count`` round numbers within the scale."""
        if self.kind == "linear":
            return round_numbers(self.low, self.high, count)
        least = 1.0 if self.kind == "apart" else self.threshold
        decades = [d for d in _decades(least, self.high) if d <= self.high]
        if self.kind == "log":
            return [decade for decade in decades if decade >= 0.999 * self.threshold]
        halves = sorted({*decades, *(3 * d for d in decades if 3 * d <= self.high)})
        ticks = halves if len(halves) < count else decades[:: max(1, -(-len(decades) // count))]
        negative = [-tick for tick in reversed(ticks) if -tick >= self.low]
        positive = [tick for tick in ticks if tick >= self.low]
        return [*negative, *([0.0] if self.low <= 0 <= self.high else []), *positive]

    def bend(self, value: float) -> float:
        """Map a value to the axis before it is stretched to pixels."""
        if self.kind == "linear":
            return value
        if self.kind == "apart":
            gap = max(1.0, _GAP * math.log2(max(self.high, 1.0)))
            return gap + math.log2(value) if value >= 1 else gap * value
        if self.kind == "log":
            return math.log10(max(value, self.threshold))
        return math.copysign(math.log1p(abs(value) / self.threshold), value)


def round_numbers(low: float, high: float, count: int) -> list[float]:
    """About ``count`` multiples of 1, 2, 2.5 or 5 times a power of ten, from low to high.

    Example:
        >>> round_numbers(0.42, 0.97, 6)
        [0.5, 0.6, 0.7, 0.8, 0.9]
    """
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    digits = max(0, 2 - math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, digits) for i in range(first, last + 1)]


def lag_scale_kind(lags: list[float]) -> Kind:
    """Symlog where most lags crowd into the first fifth of the axis, linear otherwise."""
    later = sorted(lag for lag in lags if lag > 0)
    return "symlog" if len(later) > 3 and later[len(later) // 2] < later[-1] / 5 else "linear"


def _decades(threshold: float, high: float) -> list[float]:
    first = math.floor(math.log10(threshold))
    return [10.0**p for p in range(first, math.ceil(math.log10(max(high, threshold))) + 1)]
