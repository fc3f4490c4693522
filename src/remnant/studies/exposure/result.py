"""What an exposure study found. It holds no secret: a canary is its name and its repeats."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from remnant.errors import InvalidInput
from remnant.measures.exposure.by_rank import is_found
from remnant.records.typed import Absent, in_memory, none_as, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.result_parts import Gate, LanguageTask, Tested


@dataclass(frozen=True, slots=True)
class ExposureBits:
    """An exposure, or a mean of several, in bits.

    Attributes:
        value: The exposure; the lower bound where ``at_least``.
        low, high: Ends of its interval; None where there is no such end.
        at_least: True where only a lower bound is known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class RepeatsExposure:
    """All canaries that were planted equally often.

    Attributes:
        repeats: How often; 0 stands for the controls.
        n: How many there are.
        mean_bits: Their mean exposure.
        at_least: True if some of their exposures are only lower bounds.
        mean_low: Lower bound of the mean: such exposures enter with ``CanaryExposure.at_least``.
            Without them it is ``mean_bits``.
        median_bits: Exposure of the median canary, with the same lower bounds; None in older
            records. By chance it is 1 bit.
        p_value: Of the pooled test that none of them was memorised; ``None`` if it cannot be done.
        p_value_reason: Then, why not.
    """

    repeats: int
    n: int
    mean_bits: float
    at_least: bool
    mean_low: float
    p_value: float | None
    p_value_reason: str | None = optional()
    median_bits: float | None = optional()

    @property
    def mean(self) -> ExposureBits:
        """The mean; a lower bound where some exposures are."""
        return ExposureBits(self.mean_low, at_least=self.at_least)

    @property
    def median(self) -> ExposureBits | None:
        """The median; a lower bound where some exposures are."""
        if self.median_bits is None:
            return None
        return ExposureBits(self.median_bits, at_least=self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryExposure:
    """The exposure of one canary, or of a control, in one model.

    It goes from the measurement to the gate, the record and the page.

    Attributes:
        name: Such as ``"canary 1"`` or ``"control 1"``.
        trial: Of a study, counted from 0, or the number of a set. A canary is compared with the
            controls of its own trial.
        repeats: How often it was planted; 0 for a control.
        uses: How often training used it; 0 too where nobody counted.
        bits: The exposure; "at least ``low``" where it is saturated.
        low, high: The exact exposure lies between these: for certain where it has a rank, with 95 %
            confidence where it was sampled. Infinite where there is no such end.
        rank: Among all secrets, where it was counted; ties count against the canary.
        cost: ``-log2 p`` from the first hole to the template's end; calibrated by the reference
            models where there are some. Infinite where the model gives it no probability.
        saturated: No reference was as cheap: the references cannot show more.
        skew_normal_bits: Extrapolated from the references, where that was done.
        twin_bits: Exposure of the same canary in the twin, which was trained on none.
        tied: True where most sampled references at or under it cost exactly as much, which widens
            its interval; None otherwise.
        rank_low: Lower bound of the rank; lower than ``rank`` where a budget ended the walk, or
            costs are too close to be distinguished.
        ended: A budget ended the walk, so that only bounds of the rank are known.
    """

    name: str
    trial: int
    repeats: int
    uses: int
    bits: float
    low: float = none_as(-math.inf)
    high: float = none_as(math.inf)
    rank: int | None
    cost: float = none_as(math.inf)
    saturated: bool
    skew_normal_bits: float | None
    twin_bits: float | None
    tied: bool | None = optional()
    rank_low: int | None = in_memory(None)
    ended: bool = in_memory(False)

    @property
    def sampled(self) -> bool:
        """Whether its interval is one of 95 % confidence, by sampling."""
        return self.rank is None

    @property
    def method(self) -> Literal["exact", "sampled"]:
        """How it was measured."""
        return "sampled" if self.sampled else "exact"

    @property
    def exact(self) -> bool:
        """Whether the rank is known, up to costs that are too close to be distinguished."""
        return not self.sampled and not self.ended

    @property
    def at_least(self) -> float | None:
        """Lower bound of the exposure, where ``bits`` is no estimate of it; else None.

        That is so where no reference was as cheap, and where a budget ended the walk.
        """
        return self.low if self.ended or self.saturated else None

    @property
    def shown(self) -> float:
        """The exposure in bits; the lower bound where it is saturated."""
        return self.low if self.saturated and math.isfinite(self.low) else self.bits

    @property
    def estimate(self) -> ExposureBits:
        """The exposure with its interval."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return ExposureBits(self.shown, low, high, self.saturated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposures:
    """The exposure of every canary and control.

    Attributes:
        template: The pattern, holes unfilled.
        space: How many secrets it can produce.
        ceiling_bits: ``log2(space)``, the exposure of the likeliest secret.
        reason: Why this method.
        tolerance: Bits within which two costs count as equal, where known.
        nodes: Rows passed to the models; None in older records.
        null_mean_bits: Mean exposure of canaries that were never planted.
        given: What a translator was given, each secret's ``"source"`` or the ``"beginning"`` of
            all; None for a language model.
    """

    template: str
    space: int
    ceiling_bits: float
    method: Literal["exact", "sampled"]
    reason: str
    tolerance: float | None
    nodes: int | None = None
    null_mean_bits: float
    canaries: tuple[CanaryExposure, ...]
    controls: tuple[CanaryExposure, ...]
    given: Literal["source", "beginning"] | None = None

    @property
    def highest(self) -> CanaryExposure | None:
        """The most exposed canary; of several the one planted least."""
        return most_exposed(self.canaries)

    @property
    def controls_mean(self) -> ExposureBits | None:
        """Mean exposure of the controls; None where there are none."""
        if not self.controls:
            return None
        mean = sum(control.shown for control in self.controls) / len(self.controls)
        return ExposureBits(mean, at_least=any(control.saturated for control in self.controls))

    @property
    def twin_mean(self) -> float | None:
        """Mean exposure of the canaries in the twin, in bits; None without a twin."""
        known = [canary.twin_bits for canary in self.canaries if canary.twin_bits is not None]
        return sum(known) / len(known) if known else None

    @property
    def ranked(self) -> tuple[CanaryExposure, ...]:
        """Canaries, those planted most and exposed most first; then the controls."""
        return tuple(
            sorted((*self.canaries, *self.controls), key=lambda row: (-row.repeats, -row.shown))
        )

    @property
    def several_trials(self) -> bool:
        """Whether there was more than one trial."""
        return len({row.trial for row in (*self.canaries, *self.controls)}) > 1

    def least_planted(self, count: int) -> tuple[CanaryExposure, ...]:
        """The canaries that were planted least: those a gate judges, if it judges so many."""
        return tuple(sorted(self.canaries, key=lambda canary: canary.repeats)[:count])


def most_exposed(canaries: Sequence[CanaryExposure]) -> CanaryExposure | None:
    """The most exposed canary; of several the one planted least."""
    return max(canaries, key=lambda canary: (canary.shown, -canary.repeats), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The canaries that were planted equally often; 0 are the controls.

    Attributes:
        mean_at_least: Lower bound of the mean, where some exposures are saturated; else None.
        mean_low, mean_high: Interval over training runs; None where there was one.
        median_bits: Of the same exposures, saturated ones with their lower ends; None in older
            records.
        pooled_pvalue: Against chance; None where it cannot be tested.
        control_pvalue: Against the controls of the same models; None for these.
    """

    repeats: int
    n: int
    mean_bits: float | None
    mean_at_least: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    median_bits: float | None = None
    twin_mean_bits: float | None = None
    pooled_pvalue: float | None = None
    control_pvalue: float | None = None

    @property
    def shown(self) -> float | None:
        """The mean in bits; the lower bound where some exposures are saturated."""
        return self.mean_bits if self.mean_at_least is None else self.mean_at_least

    @property
    def mean(self) -> ExposureBits | None:
        """The mean with its interval."""
        if self.shown is None:
            return None
        least = self.mean_at_least is not None
        return ExposureBits(self.shown, self.mean_low, self.mean_high, least)

    @property
    def median(self) -> ExposureBits | None:
        """The median; a lower bound where some exposures are saturated."""
        if self.median_bits is None:
            return None
        return ExposureBits(self.median_bits, at_least=self.mean_at_least is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureByRepeats:
    """Mean exposure by how often canaries were planted, one entry a level in every field.

    Attributes:
        repeats: Rising; 0 are the controls.
        n: How many canaries, or controls, there are.
        mean_bits, mean_at_least, mean_low, mean_high, median_bits, twin_mean_bits, pooled_pvalue,
            control_pvalue: See ``Level``. Fields that older records lack are None.
    """

    repeats: tuple[int, ...]
    n: tuple[int, ...]
    mean_bits: tuple[float | None, ...]
    mean_at_least: tuple[float | None, ...] | None = optional()
    mean_low: tuple[float | None, ...] | None = optional()
    mean_high: tuple[float | None, ...] | None = optional()
    median_bits: tuple[float | None, ...] | None = optional()
    twin_mean_bits: tuple[float | None, ...]
    pooled_pvalue: tuple[float | None, ...]
    control_pvalue: tuple[float | None, ...] | None = optional()

    def __post_init__(self) -> None:
        for name, column in self._columns().items():
            if len(column) != len(self.repeats):
                raise InvalidInput(
                    f".{name} has {len(column)} entries for {len(self.repeats)} repeats."
                )
        if any(later <= earlier for earlier, later in pairwise(self.repeats)):
            raise InvalidInput(".repeats do not rise.")

    def _columns(self) -> dict[str, tuple[Any, ...]]:
        columns = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def levels(self) -> tuple[Level, ...]:
        """One row a level."""
        columns = self._columns()
        rows = zip(*columns.values(), strict=True)
        return tuple(Level(**dict(zip(columns, row, strict=True))) for row in rows)

    @property
    def controls(self) -> Level | None:
        """The controls; None where there are none."""
        return next((level for level in self.levels if level.repeats == 0), None)

    @property
    def controls_are_exposed(self) -> bool:
        """Whether controls are more exposed than chance explains."""
        return self.controls is not None and is_found(self.controls.pooled_pvalue)

    @property
    def against_controls(self) -> bool:
        """Whether canaries are compared with the controls: these have more than chance."""
        compared = any(level.control_pvalue is not None for level in self.levels)
        return compared and self.controls_are_exposed

    def p_value(self, level: Level) -> float | None:
        """The p-value of a level: of controls, and usually of canaries, against chance."""
        if self.against_controls and level.repeats:
            return level.control_pvalue
        return level.pooled_pvalue


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewNormalLaw:
    """Parameters of a skew-normal law."""

    shape: float
    location: float
    scale: float

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise InvalidInput(".scale is not above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMark:
    """The mark of a canary in the histogram of the references.

    Attributes:
        cost: In bits; None where the model gives it no probability (only in older records).
        at_least: Lower bound of its exposure, where it is saturated; else None.
    """

    name: str
    repeats: int
    cost: float | None
    bits: float
    at_least: float | None = None

    @property
    def estimate(self) -> ExposureBits:
        """Its exposure."""
        if self.at_least is None:
            return ExposureBits(self.bits)
        return ExposureBits(self.at_least, at_least=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCosts:
    """Histogram of the references' costs in one model, in bits.

    Attributes:
        edges: Of the bins, rising; one more than counts.
        ks_pvalue: Of the Kolmogorov-Smirnov test of the law; None where it was not tested.
        marked: Canaries of the same model.
        member: Which model.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_references: int
    skew_normal: SkewNormalLaw | None
    ks_pvalue: float | None
    marked: tuple[CostMark, ...]
    member: str

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise InvalidInput(
                f".edges has {len(self.edges)} entries for {len(self.counts)} counts."
            )
        if any(later <= earlier for earlier, later in pairwise(self.edges)):
            raise InvalidInput(".edges do not rise.")

    @property
    def bins(self) -> tuple[CostBin, ...]:
        """One row a bin."""
        return tuple(map(CostBin, self.edges, self.edges[1:], self.counts))

    @property
    def unmarked(self) -> tuple[str, ...]:
        """Names of the canaries that have no cost: the model gives them no probability."""
        return tuple(canary.name for canary in self.marked if canary.cost is None)


@dataclass(frozen=True, slots=True)
class CostBin:
    """One bin of a histogram: its ends in bits, and how many references are in it."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A secret that a search returned.

    Attributes:
        bits: Its cost; None where the model gives it no probability.
        canary, repeats: Which canary it is and how often that was planted; None if it is none.
    """

    bits: float | None
    canary: str | None
    repeats: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One search of one model, the likeliest candidate first.

    Attributes:
        asked: How many secrets were to be returned; None in older records.
        certified: Proven: no likelier secret exists.
        nodes: Rows passed to the model.
        tolerance: Bits within which two costs count as equal, where known.
    """

    member: str
    asked: int | None = None
    certified: bool
    nodes: int
    space: int
    tolerance: float | None
    candidates: tuple[Candidate, ...]

    @property
    def of_twin(self) -> bool:
        """Whether the model is a twin, which was trained on no canary."""
        return self.member.startswith("twin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractions:
    """All searches of a study."""

    searches: tuple[Search, ...]

    @property
    def of_planted(self) -> tuple[Search, ...]:
        """The searches of models that were trained on canaries."""
        return tuple(search for search in self.searches if not search.of_twin)

    @property
    def extracted(self) -> frozenset[str]:
        """Names of the canaries that were extracted from models trained on them."""
        return frozenset(
            candidate.canary
            for search in self.of_planted
            for candidate in search.candidates
            if candidate.canary is not None
        )

    @property
    def guesses(self) -> int | None:
        """How many secrets a search was to return; None in older records."""
        known = [search.asked for search in self.of_planted if search.asked is not None]
        return max(known, default=None)

    @property
    def proven(self) -> int:
        """How many searches of models trained on canaries are certified."""
        return sum(search.certified for search in self.of_planted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureGate(Gate):
    """The outcome of the exposure gate; see ``ExposureJudgement``.

    Everything that ``Gate`` has not is None in older records.
    """

    share: float | None = None
    judged: int | None = None
    above: int | None = None
    share_low: float | None = None
    share_high: float | None = None
    p_value: float | None = None
    control: int | None = None
    trainings: int | None = None
    chance: float | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExposureResult(QuestionResult):
    """What an exposure study, or a translation study, found.

    Attributes:
        repeats: Mean exposure by how often canaries were planted.
        costs: Of the references in the first model.
        extraction: What a search could extract.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("exposure.canaries", "exposure.controls")

    verdict: ExposureGate | Absent
    exposure: Exposures | Absent
    repeats: ExposureByRepeats | Absent
    costs: ReferenceCosts | Absent
    extraction: Extractions | Absent
    task: LanguageTask | Absent
    scope: Tested | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Return the parts; those that hold nothing are absent."""
        empty = {
            name: {"absent": reason}
            for name, reason in _NOTHING_IN.items()
            if _is_empty(parts.get(name))
        }
        return parts | empty


_NOTHING_IN = {
    "exposure": "it holds no canary",
    "repeats": "it holds no canary",
    "costs": "no reference with a finite cost was sampled",
    "extraction": "no search was made",
}
_ROWS = ("canaries", "controls", "n", "counts", "searches")  # what may be empty in such a part


def _is_empty(part: Any) -> bool:
    """Whether all lists of rows in a part are empty, or hold only zeros."""
    rows = [part[name] for name in _ROWS if name in part] if isinstance(part, Mapping) else []
    return bool(rows) and all(isinstance(row, list) and not any(row) for row in rows)
