"""Parts of a scan's result that are measured in the form in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.records.typed import optional, page_only
from remnant.studies.found_secrets.rounding import ShownBits


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
