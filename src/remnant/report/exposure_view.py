"""The view of a run that asked how exposed planted secrets are, and whether they can be extracted.

No secret is in it: a canary is its name and how often it was planted.
"""

from __future__ import annotations

from dataclasses import dataclass

from remnant.report.run_view import NotMeasured, RunView

_IN_SIGHT = 40.0
_FAR = 3.0
_MOST_NAMED = 14


@dataclass(frozen=True, slots=True)
class CanaryExposure:
    """One canary, or a control, which is one with no repeats.

    Attributes:
        trial: Counted from 0.
        repeats: How often it was planted.
        uses: How often training saw it.
        low, high: Between these the exact exposure lies; None where there is no such end.
        rank: In the whole space, where it was counted.
        cost: In bits; None is a probability of zero.
        saturated: No reference was at or under its cost: it is at least ``low``.
        skew_normal_bits: Extrapolated from the references, where that was done.
        twin_bits: The same canary in the twin that never saw any.
    """

    name: str
    trial: int
    repeats: int
    uses: int
    bits: float
    low: float | None
    high: float | None
    rank: int | None
    cost: float | None
    saturated: bool
    skew_normal_bits: float | None
    twin_bits: float | None

    @property
    def told(self) -> float:
        """The exposure in bits; where it is saturated, what it is at least."""
        return self.low if self.saturated and self.low is not None else self.bits


@dataclass(frozen=True, slots=True)
class Exposure:
    """The exposure of every canary and control.

    Attributes:
        template: The pattern, holes unfilled.
        space: How many secrets it can produce.
        ceiling: ``log2(space)``, in bits.
        method: ``"exact"`` or ``"sampled"``.
        reason: Why this method.
        tolerance: Bits within which two costs count as equal, where known.
        null_mean: Mean exposure, in bits, of canaries that nobody planted.
        given: What a translator was given, each secret's ``"source"`` or the ``"beginning"`` of
            all; None for a language model.
    """

    template: str
    space: int
    ceiling: float
    method: str
    reason: str
    tolerance: float | None
    null_mean: float
    canaries: tuple[CanaryExposure, ...]
    controls: tuple[CanaryExposure, ...]
    given: str | None = None

    @property
    def highest(self) -> CanaryExposure | None:
        """The most exposed canary; of several the one planted least."""
        return max(self.canaries, key=lambda one: (one.told, -one.repeats), default=None)

    @property
    def controls_mean(self) -> float | None:
        """Mean exposure of the controls in bits, or None where there are none."""
        return (
            sum(one.told for one in self.controls) / len(self.controls) if self.controls else None
        )

    @property
    def controls_at_least(self) -> bool:
        """Whether that mean is no more than what it is at least."""
        return any(one.saturated for one in self.controls)

    @property
    def twin_mean(self) -> float | None:
        """Mean exposure of the canaries in the twin that saw none, or None without a twin."""
        known = [one.twin_bits for one in self.canaries if one.twin_bits is not None]
        return sum(known) / len(known) if known else None

    @property
    def ceiling_in_sight(self) -> bool:
        """Whether a chart can show the ceiling without pressing the canaries to the ground."""
        shown = max(one.told for one in (*self.canaries, *self.controls))
        return self.ceiling <= max(_IN_SIGHT, _FAR * shown)

    @property
    def ranked(self) -> tuple[CanaryExposure, ...]:
        """Canaries, those planted most and exposed most first; then the controls."""
        return tuple(sorted((*self.canaries, *self.controls), key=lambda o: (-o.repeats, -o.told)))


@dataclass(frozen=True, slots=True)
class Level:
    """The canaries that were planted equally often; 0 are the controls.

    Attributes:
        mean_low, mean_high: Over training runs; None where there was one.
        at_least: What the mean is at least, where some exposures are saturated; else None.
        pooled_pvalue: Against chance.
        control_pvalue: Against the controls of the same models; None for these.
    """

    repeats: int
    n: int
    mean_bits: float | None
    twin_mean_bits: float | None
    pooled_pvalue: float | None
    mean_low: float | None = None
    mean_high: float | None = None
    at_least: float | None = None
    control_pvalue: float | None = None

    @property
    def told(self) -> float | None:
        """The mean; where it is not known, what it is at least."""
        return self.mean_bits if self.at_least is None else self.at_least


@dataclass(frozen=True, slots=True)
class SkewNormalFit:
    """Parameters of a skew-normal law."""

    shape: float
    location: float
    scale: float


@dataclass(frozen=True, slots=True)
class MarkedCanary:
    """A canary's place among the costs of the references.

    Attributes:
        at_least: What its exposure is at least, where it is saturated; else None.
    """

    name: str
    repeats: int
    cost: float
    bits: float
    at_least: float | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """Histogram of what the references cost in one model, in bits.

    Attributes:
        marked: Canaries with their place on the same axis.
        unmarked: Names of those that have none: their probability is zero.
        member: Which model.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_references: int
    skew_normal: SkewNormalFit | None
    ks_pvalue: float | None
    marked: tuple[MarkedCanary, ...]
    unmarked: tuple[str, ...]
    member: str

    @property
    def named(self) -> tuple[MarkedCanary, ...]:
        """The canaries that a chart has room to name: those most exposed."""
        return tuple(sorted(self.marked, key=lambda one: -one.bits)[:_MOST_NAMED])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A secret that was pulled out: its cost, and the canary it is, if it is one."""

    bits: float | None
    canary: str | None
    repeats: int | None


@dataclass(frozen=True, slots=True)
class Search:
    """One extraction from one model, the likeliest candidate first.

    Attributes:
        asked: How many secrets it was asked for; None where that is not recorded.
    """

    member: str
    certified: bool
    nodes: int
    space: int
    tolerance: float | None
    candidates: tuple[Candidate, ...]
    asked: int | None = None

    @property
    def of_twin(self) -> bool:
        """Whether the model is a twin, which saw no canary."""
        return self.member.startswith("twin")


@dataclass(frozen=True, slots=True)
class ExposureView(RunView):
    """Everything a report shows of one exposure run."""

    exposure: Exposure | NotMeasured
    repeats: tuple[Level, ...] | NotMeasured
    costs: Costs | NotMeasured
    extraction: tuple[Search, ...] | NotMeasured
