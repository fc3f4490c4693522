"""The view of a run that asked how exposed planted secrets are, and whether they can be extracted.

No secret is in it: a canary is its name and how often it was planted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from remnant.records import Record
from remnant.report.fields import Fields
from remnant.report.run_view import NotMeasured, Results, RunView, run_fields

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
        saturated: No reference was at or under its cost: read ``bits`` as "at least".
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

    @property
    def highest(self) -> CanaryExposure | None:
        """The most exposed canary; of several the one planted least."""
        return max(self.canaries, key=lambda one: (one.bits, -one.repeats), default=None)

    @property
    def controls_mean(self) -> float | None:
        """Mean exposure of the controls in bits, or None where there are none."""
        return (
            sum(one.bits for one in self.controls) / len(self.controls) if self.controls else None
        )

    @property
    def twin_mean(self) -> float | None:
        """Mean exposure of the canaries in the twin that saw none, or None without a twin."""
        known = [one.twin_bits for one in self.canaries if one.twin_bits is not None]
        return sum(known) / len(known) if known else None

    @property
    def ceiling_in_sight(self) -> bool:
        """Whether a chart can show the ceiling without pressing the canaries to the ground."""
        shown = max(one.bits for one in (*self.canaries, *self.controls))
        return self.ceiling <= max(_IN_SIGHT, _FAR * shown)

    @property
    def ranked(self) -> tuple[CanaryExposure, ...]:
        """Canaries, those planted most and exposed most first; then the controls."""
        return tuple(sorted((*self.canaries, *self.controls), key=lambda o: (-o.repeats, -o.bits)))


@dataclass(frozen=True, slots=True)
class Level:
    """The canaries that were planted equally often; 0 are the controls."""

    repeats: int
    n: int
    mean_bits: float | None
    twin_mean_bits: float | None
    pooled_pvalue: float | None


@dataclass(frozen=True, slots=True)
class SkewNormalFit:
    """Parameters of a skew-normal law."""

    shape: float
    location: float
    scale: float


@dataclass(frozen=True, slots=True)
class MarkedCanary:
    """A canary's place among the costs of the references."""

    name: str
    repeats: int
    cost: float
    bits: float


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
    """One extraction from one model, the likeliest candidate first."""

    member: str
    certified: bool
    nodes: int
    space: int
    tolerance: float | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class ThroughTraining:
    """Exposure of some canaries at some steps of training, and the validation cost."""

    steps: tuple[float, ...]
    names: tuple[str, ...]
    bits: tuple[tuple[float | None, ...], ...]
    validation_bits: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ExposureView(RunView):
    """Everything a report shows of one exposure run.

    Attributes:
        through_training: None where the run did not set out to watch it.
    """

    exposure: Exposure | NotMeasured
    repeats: tuple[Level, ...] | NotMeasured
    costs: Costs | NotMeasured
    extraction: tuple[Search, ...] | NotMeasured
    through_training: ThroughTraining | NotMeasured | None


def read_exposure(record: Record) -> ExposureView:
    """Read an exposure run's record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    watched = bool(results.raw("through_training"))
    return ExposureView(
        **run_fields(record, results),
        exposure=results.read("exposure", _exposure),
        repeats=results.read("repeats", _repeats),
        costs=results.read("costs", _costs),
        extraction=results.read("extraction", _extraction),
        through_training=results.read("through_training", _training) if watched else None,
    )


def _exposure(found: Mapping[str, Any]) -> Exposure | NotMeasured:
    fields = Fields(found, name="exposure")
    if fields.text("method") not in ("exact", "sampled"):
        fields.note(".method", "is neither exact nor sampled")
    read = Exposure(
        template=fields.text("template"),
        space=fields.whole("space"),
        ceiling=fields.number("ceiling_bits"),
        method=fields.text("method"),
        reason=fields.text("reason"),
        tolerance=fields.number_or_none("tolerance"),
        null_mean=fields.number("null_mean_bits"),
        canaries=tuple(_canary(one) for one in fields.each("canaries")),
        controls=tuple(_canary(one) for one in fields.each("controls")),
    )
    fields.check()
    return read if read.canaries or read.controls else NotMeasured("it holds no canary")


def _canary(one: Fields) -> CanaryExposure:
    return CanaryExposure(
        name=one.text("name"),
        trial=one.whole("trial"),
        repeats=one.whole("repeats"),
        uses=one.whole("uses"),
        bits=one.number("bits"),
        low=one.number_or_none("low"),
        high=one.number_or_none("high"),
        rank=one.whole_or_none("rank"),
        cost=one.number_or_none("cost"),
        saturated=one.flag("saturated"),
        skew_normal_bits=one.number_or_none("skew_normal_bits"),
        twin_bits=one.number_or_none("twin_bits"),
    )


def _repeats(found: Mapping[str, Any]) -> tuple[Level, ...] | NotMeasured:
    fields = Fields(found, name="repeats")
    repeats, n = fields.wholes("repeats"), fields.wholes("n")
    columns = {
        key: fields.numbers_or_none(key) for key in ("mean_bits", "twin_mean_bits", "pooled_pvalue")
    }
    fields.same_length(repeats=repeats, n=n, **columns)
    if any(later <= earlier for earlier, later in pairwise(repeats)):
        fields.note(".repeats", "do not rise")
    fields.check()
    rows = zip(repeats, n, *columns.values(), strict=True)
    return tuple(Level(*row) for row in rows) or NotMeasured("it holds no canary")


def _costs(found: Mapping[str, Any]) -> Costs | NotMeasured:
    fields = Fields(found, name="costs")
    edges, counts = fields.numbers("edges"), fields.wholes("counts")
    if len(edges) != len(counts) + 1:
        fields.note(".edges", f"has {len(edges)} entries for {len(counts)} counts")
    if any(later <= earlier for earlier, later in pairwise(edges)):
        fields.note(".edges", "do not rise")
    law = None
    if fields.has("skew_normal"):
        inner = fields.inner("skew_normal")
        law = SkewNormalFit(*(inner.number(key) for key in ("shape", "location", "scale")))
        if law.scale <= 0:
            inner.note(".scale", "is not above 0")
    marked = fields.each("marked")
    read = Costs(
        edges=edges,
        counts=counts,
        n_references=fields.whole("n_references"),
        skew_normal=law,
        ks_pvalue=fields.number_or_none("ks_pvalue"),
        marked=tuple(
            MarkedCanary(
                *(one.text("name"), one.whole("repeats"), one.number("cost"), one.number("bits"))
            )
            for one in marked
            if one.has("cost")
        ),
        unmarked=tuple(one.text("name") for one in marked if not one.has("cost")),
        member=fields.text("member"),
    )
    fields.check()
    return read if any(counts) else NotMeasured("no reference with a finite cost was sampled")


def _extraction(found: Mapping[str, Any]) -> tuple[Search, ...] | NotMeasured:
    fields = Fields(found, name="extraction")
    searches = tuple(
        Search(
            member=one.text("member"),
            certified=one.flag("certified"),
            nodes=one.whole("nodes"),
            space=one.whole("space"),
            tolerance=one.number_or_none("tolerance"),
            candidates=tuple(
                Candidate(
                    candidate.number_or_none("bits"),
                    candidate.text_or_none("canary"),
                    candidate.whole_or_none("repeats"),
                )
                for candidate in one.each("candidates")
            ),
        )
        for one in fields.each("searches")
    )
    fields.check()
    return searches or NotMeasured("no search was made")


def _training(found: Mapping[str, Any]) -> ThroughTraining | NotMeasured:
    fields = Fields(found, name="through_training")
    steps, names = fields.numbers("steps"), fields.texts("names")
    bits, validation = fields.rows("bits"), fields.numbers_or_none("validation_bits")
    fields.same_length(steps=steps, bits=bits, validation_bits=validation)
    for i, row in enumerate(bits):
        if len(row) != len(names):
            fields.note(f".bits[{i}]", f"has {len(row)} entries for {len(names)} names")
    if any(later <= earlier for earlier, later in pairwise(steps)):
        fields.note(".steps", "do not rise")
    fields.check()
    return ThroughTraining(steps, names, bits, validation) if steps else NotMeasured("no step yet")
