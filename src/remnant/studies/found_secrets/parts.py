"""Parts of a scan's result that are measured in the form in which they are shown.

Numbers are shown in full only if the secrets are shown too. With the model and the text before a
secret, anybody can compute the cost and the rank of every secret of its form. An exact cost or rank
therefore identifies the secret, like a digest without a salt. If secrets may not be shown, a result
has exposure in whole bits, the rank to a factor of two, and no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from remnant.records.typed import optional, page_only
from remnant.report.numerals import whole_text
from remnant.studies.exposure.result import CanaryExposure

MANY = 10  # secrets; a mean of fewer reveals too much of each
ONLY_REVEALED = "only with --reveal"


@dataclass(frozen=True, slots=True)
class ShownBits:
    """Bits of exposure as exactly as they are shown.

    Attributes:
        value: A lower bound if ``at_least``.
        digits: After the decimal point.
    """

    value: float
    at_least: bool
    digits: int

    @property
    def text(self) -> str:
        """The bits in words.

        Example:
            >>> ShownBits(7.0, True, 0).text
            'at least 7'
        """
        return f"{'at least ' if self.at_least else ''}{self.value:.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class ShownExposure:
    """The exposure of one secret, as exactly as it is shown.

    Attributes:
        bits, low, high: Of exposure; ``high`` is None where there is no upper end.
        rank_least, rank_most: Bounds of its rank; None if it was not ranked.
        at_least: Whether only the lower bound ``low`` of the exposure is known.
        at_most: Whether only an upper bound of the rank is known.
        digits: After the decimal point; 0 if nothing is exact.
        space: How many secrets it was ranked among.
    """

    bits: float
    low: float
    high: float | None
    rank_least: int | None
    rank_most: int | None
    at_least: bool
    at_most: bool
    digits: int
    space: int

    @property
    def shown_bits(self) -> ShownBits:
        """The exposure, or its lower bound."""
        return ShownBits(self.low if self.at_least else self.bits, self.at_least, self.digits)

    @property
    def standing(self) -> str:
        """Its rank and the number of secrets, or the interval in bits if it has no rank."""
        if self.rank_least is None or self.rank_most is None:
            return self._interval
        rank = whole_text(self.rank_most)
        if self.at_most:
            rank = f"at most {rank}"
        elif self.rank_least != self.rank_most:
            rank = f"{whole_text(self.rank_least)} to {rank}"
        return f"rank {rank} of {whole_text(self.space)}"

    @property
    def _interval(self) -> str:
        low = f"{self.low:.{self.digits}f}"
        if self.high is None:
            return f"{low} bits or more"
        return f"{low} to {self.high:.{self.digits}f} bits"


def shown_exposure(measured: CanaryExposure, space: int, *, reveal: bool) -> ShownExposure:
    """Return the exposure of one secret among ``space``, exactly or in whole bits.

    Guarantees:
        * Without ``reveal`` all ranks with the same exposure in whole bits are shown the same.
        * Bounds stay bounds, and a rank of 1 is shown as such.
    """
    at_least = measured.at_least is not None
    if reveal:
        least = measured.rank if measured.rank_low is None else measured.rank_low
        at_most = measured.low < measured.high
        return ShownExposure(
            *(measured.bits, measured.low, _end(measured.high), least, measured.rank),
            *(at_least, at_most, 2, space),
        )
    bits = float(math.floor(measured.low) if at_least else round(measured.bits))
    low, high = float(math.floor(measured.low)), _up(measured.high)
    least, most = None, None
    if measured.rank is not None:
        if at_least:
            low, high = _bits_between(space, measured.rank_low or 1, measured.rank)
            bits = low
        else:
            bits = float((space * space // measured.rank**2).bit_length() // 2)  # the nearest
            low, high = max(bits - 0.5, 0.0), min(bits + 0.5, math.log2(space))
        least, most = _rank_above(space, high), min(space, _root(space, low, up=False))
    return ShownExposure(bits, low, _end(high), least, most, at_least, at_least, 0, space)


def _end(high: float) -> float | None:
    return None if math.isinf(high) else high


def shown_mean(bits: float, n: int, *, at_least: bool, reveal: bool) -> float:
    """Return a mean or median of exposure over ``n`` secrets, rounded down if it is a lower bound.

    Example:
        >>> shown_mean(7.96, 3, at_least=False, reveal=False)
        8.0
        >>> shown_mean(7.96, 10, at_least=True, reveal=False)
        7.9
    """
    if reveal:
        return bits
    parts = 10 if n >= MANY else 1
    return (math.floor(bits * parts) if at_least else round(bits * parts)) / parts


def mean_digits(n: int, *, reveal: bool) -> int:
    """Return the number of digits after the decimal point of such a mean."""
    return 2 if reveal else int(n >= MANY)


def shown_queries(queries: int | None, *, reveal: bool) -> int | None:
    """Return how many queries are enough, or without ``reveal`` the next power of ten.

    Example:
        >>> shown_queries(161, reveal=False), shown_queries(100, reveal=False)
        (1000, 100)
    """
    if reveal or queries is None:
        return queries
    return 10 ** len(str(max(queries, 1) - 1)) if queries > 1 else 1


def _up(bits: float) -> float:
    return float(math.ceil(bits)) if math.isfinite(bits) else bits


def _bits_between(space: int, least: int, most: int) -> tuple[float, float]:
    """Return whole bits that enclose the ranks from ``least`` to ``most``, by exact arithmetic."""
    return float((space // most).bit_length() - 1), float((-(-space // least) - 1).bit_length())


def _rank_above(space: int, bits: float) -> int:
    """Return the lowest rank with an exposure of at most ``bits``, a multiple of a half."""
    if not math.isfinite(bits) or bits >= math.log2(space):
        return 1
    return _root(space, bits, up=True)


def _root(space: int, bits: float, *, up: bool) -> int:
    """Return ``space / 2 ** bits``, rounded, by exact arithmetic: spaces may be huge.

    Rounded down it is the highest rank with an exposure of at least ``bits``, a multiple of a half.
    """
    doublings = int(2 * bits)
    root = math.isqrt((space * space) >> doublings)
    exact = root * root << doublings == space * space
    return max(1, root + (up and not exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedExtraction:
    """The result of a search for the likeliest secret of a form.

    Attributes:
        extracted: Whether the likeliest secret is this one.
        another_found: Whether it is another secret that was found in the text.
        certified: Whether it is proved that no secret is likelier.
        nodes: Rows passed to the model.
        queries_50, queries_99: Samples until the model returns this secret with a probability of
            50 % and 99 %; without ``reveal`` the next power of ten.
        reason: Why there is no number of samples.
    """

    extracted: bool
    another_found: bool
    certified: bool
    nodes: int
    queries_50: int | None
    queries_99: int | None
    reason: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanByTimes:
    """Secrets of one kind that occur about equally often.

    Attributes:
        times_least, times_most: How often they occur: once, 2 to 3 times, 4 to 7, and so on.
        n: How many they are.
        mean_bits: Their mean exposure; lower bounds enter as they are.
        at_least: Whether some exposures are lower bounds.
    """

    kind: str
    times_least: int
    times_most: int
    n: int
    mean_bits: float
    at_least: bool
    digits: int = page_only(0)

    @property
    def mean(self) -> ShownBits:
        """The mean; a lower bound where some exposures are."""
        return ShownBits(self.mean_bits, self.at_least, self.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCorrelation:
    """Spearman's correlation of how often secrets of a kind occur with their exposure."""

    kind: str
    value: float | None
    value_reason: str | None = optional()
    low: float | None = optional()
    high: float | None = optional()
    n: int | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedKind:
    """Secrets of one kind in the model and in its twin.

    Attributes:
        n: How many were measured in both.
        higher, lower: How many are more and less exposed in the model for certain.
        median_bits, twin_median_bits: Median exposure; lower bounds enter as they are.
        median_at_least, twin_median_at_least: Whether the median may be higher.
    """

    kind: str
    n: int
    higher: int
    lower: int
    median_bits: float
    median_at_least: bool
    twin_median_bits: float
    twin_median_at_least: bool
    digits: int = page_only(0)

    @property
    def undecided(self) -> int:
        """How many are neither more nor less exposed for certain."""
        return self.n - self.higher - self.lower

    @property
    def median(self) -> ShownBits:
        """The median in the model."""
        return ShownBits(self.median_bits, self.median_at_least, self.digits)

    @property
    def twin_median(self) -> ShownBits:
        """The median in the twin."""
        return ShownBits(self.twin_median_bits, self.twin_median_at_least, self.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesTest:
    """A sign-flip test over the files in which secrets first occur; see ``SignFlipTest``."""

    p_value: float | None
    p_value_reason: str | None = optional()
    files: int | None = optional()
    method: str | None = optional()
