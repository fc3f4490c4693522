"""How exactly numbers of found secrets are told: in full to those who may see the secrets.

Who has the model and the text before a secret can work out the cost and the rank of every secret of
its form. An exact cost or rank then tells which one it is, as a digest without a salt would. Others
get whole bits of exposure, and what follows from them: the rank to a factor of two, and no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import bits_between, grouped, rank_among, whole

if TYPE_CHECKING:
    from remnant.studies.canary_exposure import CanaryExposure

MANY = 10  # secrets; a mean of fewer says too much of each
ONLY_REVEALED = "only with --reveal"


@dataclass(frozen=True, slots=True)
class ToldExposure:
    """The exposure of one secret, as exactly as it is told.

    Attributes:
        bits, low, high: Of exposure.
        rank_least, rank_most: Between which its rank is; None where it was not ranked.
        at_least: The exposure is known from below only, by ``low``.
        at_most: The rank is known from above only.
        digits: After the point, in words; 0 where nothing is exact.
        space: How many secrets it was ranked among.
    """

    bits: float
    low: float
    high: float
    rank_least: int | None
    rank_most: int | None
    at_least: bool
    at_most: bool
    digits: int
    space: int

    @property
    def bits_text(self) -> str:
        """Its exposure in words."""
        bits = self.low if self.at_least else self.bits
        return f"{'at least ' * self.at_least}{bits:.{self.digits}f}"

    @property
    def standing(self) -> str:
        """Its rank among how many, or the interval in bits where there is none."""
        if self.rank_least is None or self.rank_most is None:
            return bits_between(self.low, self.high, digits=self.digits)
        rank = grouped(self.rank_most)
        if self.at_most:
            rank = f"at most {rank}"
        elif self.rank_least != self.rank_most:
            rank = f"{grouped(self.rank_least)} to {rank}"
        return rank_among(rank, self.space)

    @property
    def rank_fields(self) -> dict[str, Any]:
        """Its rank as fields of JSON."""
        if self.rank_least is None or self.rank_most is None:
            return {"rank": None, "rank_reason": "sampled"}
        if self.digits:
            return {**whole("rank", self.rank_most), **whole("rank_low", self.rank_least)}
        between = {**whole("rank_least", self.rank_least), **whole("rank_most", self.rank_most)}
        return {"rank": None, "rank_reason": ONLY_REVEALED, **between}


def told_exposure(measured: CanaryExposure, space: int, *, reveal: bool) -> ToldExposure:
    """Return the exposure of one secret among ``space``, exactly or in whole bits.

    Guarantees:
        * Without ``reveal`` ranks of one exposure in whole bits are told alike.
        * Bounds are bounds still, and a rank of 1 is told as such.
    """
    found, at_least = measured.found, measured.at_least is not None
    if reveal:
        least = found.rank if found.rank_low is None else found.rank_low
        at_most = found.low < found.high
        return ToldExposure(
            *(found.bits, found.low, found.high, least, found.rank, at_least, at_most, 2, space)
        )
    bits = float(math.floor(found.low) if at_least else round(found.bits))
    low, high = float(math.floor(found.low)), _up(found.high)
    least, most = None, None
    if found.rank is not None:
        if at_least:
            low, high = _bits_between(space, found.rank_low or 1, found.rank)
            bits = low
        else:
            bits = float((space * space // found.rank**2).bit_length() // 2)  # the nearest
            low, high = max(bits - 0.5, 0.0), min(bits + 0.5, math.log2(space))
        least, most = _rank_above(space, high), min(space, _rank_below(space, low))
    return ToldExposure(bits, low, high, least, most, at_least, at_least, 0, space)


def told_mean(bits: float, n: int, *, at_least: bool, reveal: bool) -> float:
    """Return a mean or median of exposure over ``n`` secrets, rounded down where it is a bound.

    Example:
        >>> told_mean(7.96, 3, at_least=False, reveal=False)
        8.0
        >>> told_mean(7.96, 10, at_least=True, reveal=False)
        7.9
    """
    if reveal:
        return bits
    parts = 10 if n >= MANY else 1
    return (math.floor(bits * parts) if at_least else round(bits * parts)) / parts


def mean_text(bits: float, n: int, *, at_least: bool, reveal: bool) -> str:
    """Return the same in words.

    Example:
        >>> mean_text(7.96, 3, at_least=True, reveal=False)
        'at least 7'
    """
    digits = 2 if reveal else int(n >= MANY)
    told = told_mean(bits, n, at_least=at_least, reveal=reveal)
    return f"{'at least ' * at_least}{told:.{digits}f}"


def told_queries(queries: int | None, *, reveal: bool) -> int | None:
    """Return how many queries are enough, or the next power of ten, which are enough too.

    Example:
        >>> told_queries(161, reveal=False), told_queries(100, reveal=False)
        (1000, 100)
    """
    if reveal or queries is None:
        return queries
    return 10 ** len(str(max(queries, 1) - 1)) if queries > 1 else 1


def _up(bits: float) -> float:
    return float(math.ceil(bits)) if math.isfinite(bits) else bits


def _bits_between(space: int, least: int, most: int) -> tuple[float, float]:
    """Return whole bits between which ranks from ``least`` to ``most`` are, by exact arithmetic."""
    return float((space // most).bit_length() - 1), float((-(-space // least) - 1).bit_length())


def _rank_above(space: int, bits: float) -> int:
    """Return the least rank whose exposure is not more than ``bits``, a multiple of a half."""
    if not math.isfinite(bits) or bits >= math.log2(space):
        return 1
    return _root(space, bits, up=True)


def _rank_below(space: int, bits: float) -> int:
    """Return the highest rank whose exposure is not less than ``bits``, a multiple of a half."""
    return _root(space, bits, up=False)


def _root(space: int, bits: float, *, up: bool) -> int:
    """Return ``space / 2 ** bits`` as a whole number, by exact arithmetic: spaces may be huge."""
    doublings = int(2 * bits)
    found = math.isqrt((space * space) >> doublings)
    exact = found * found << doublings == space * space
    return max(1, found + (up and not exact))
