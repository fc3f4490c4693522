"""What a forgetting study stores: curves, a decision, and its search for residual memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from remnant.errors import InvalidInput
from remnant.records.typed import Absent, optional
from remnant.report.curve import Curve, Point
from remnant.studies.shared.curves import (
    Comparison,
    CurveResult,
    Ends,
    Traditional,
    Unmeasured,
    bare_curve,
)
from remnant.studies.shared.parts import ClassifierTask, Finding, Gate, Tested

Kind = Literal["noise", "relearn"]
Reading = Literal["comes back", "hidden", "still found", "not found"]
SUCCESSES = ("precision", "tpr", "auc", "accuracy")


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeAfter:
    """From which lag on success is shown to be within the limit; None where from none."""

    lag: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectLast:
    """The last steps, and the examples used in them, for which it is not shown; None for all."""

    steps: int | None
    examples: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayLaw:
    """The law that was fitted to the curve.

    Attributes:
        law: ``exponential`` or ``power``.
        shown: Whether success was shown to fall; if not, the half-life may be anything.
        start: Success at lag 0 by the law.
        half_life: Steps until half of the fall is over.
        floor: The plateau: success after very many steps.
        error: Root mean square distance of the law from the curve.
        trials: Behind the intervals.
    """

    law: str
    shown: bool
    start: float | None = None
    half_life: Ends
    floor: Ends
    error: float | None = None
    trials: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The lag at which the law comes down to the limit.

    Attributes:
        value: None where it never does.
        beyond: Whether that lag is beyond the last one measured.
    """

    value: float | None
    low: float | None
    high: float | None
    beyond: bool

    @property
    def ends(self) -> Ends:
        """The lag with its interval."""
        return Ends(value=self.value, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the curve means for the limit.

    Attributes:
        success, fpr: The measure of success.
        last_lag: The last lag measured.
        batch: Examples a step.
        decay, forecast: Both are there, or neither.
    """

    limit: float
    confidence: float
    success: str = "attack success"
    fpr: float | None = None
    last_lag: float
    batch: int
    safe_after: SafeAfter
    protect_last: ProtectLast
    decay: Unmeasured | DecayLaw
    forecast: Unmeasured | Forecast

    def __post_init__(self) -> None:
        if isinstance(self.decay, Unmeasured) != isinstance(self.forecast, Unmeasured):
            raise InvalidInput(" has a decay without a forecast, or a forecast without a decay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Attack success after the models were disturbed in one way.

    Attributes:
        kind: Weight noise, or relearning on similar examples.
        amount: Scale of the noise, or steps of relearning.
        after, after_low, after_high: Success on the disturbed models.
        rise, rise_low, rise_high: That less the success on the undisturbed models.
        pvalue_after, pvalue_rise: Above chance, and risen; both corrected for their number.
        test_accuracy: Of the disturbed models.
        aa, aa_low, aa_high: Success on the A/A twins after the same; None where there are none.
    """

    kind: Kind
    amount: float
    label: str
    after: float
    after_low: float
    after_high: float
    rise: float
    rise_low: float
    rise_high: float
    pvalue_after: float
    pvalue_rise: float
    reading: Reading
    test_accuracy: float
    aa: float | None = optional()
    aa_low: float | None = optional()
    aa_high: float | None = optional()

    @property
    def success(self) -> Point:
        """Success on the disturbed models with its interval, at an amount of disturbance."""
        return Point(self.amount, self.after, self.after_low, self.after_high)

    @property
    def control(self) -> Point | None:
        """The same on the A/A twins; None where there are none."""
        if self.aa is None:
            return None
        return Point(self.amount, self.aa, self.aa_low, self.aa_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualMemory:
    """Attack success before and after each disturbance; the row ``hidden`` of a record.

    Attributes:
        before, before_low, before_high: Success on the undisturbed models.
        lag: The lag at which they were disturbed.
        draws: Noise draws of each scale.
        neighbours: Examples in the relearning.
    """

    before: float
    before_low: float
    before_high: float
    pvalue_before: float | None = None
    success: str
    fpr: float | None
    chance: float
    confidence: float
    trials: int
    method: str
    lag: float
    draws: int
    neighbours: int
    disturbances: tuple[Disturbance, ...]

    def __post_init__(self) -> None:
        if not self.disturbances:
            raise InvalidInput(".disturbances is empty")

    @property
    def undisturbed(self) -> Point:
        """Success on the undisturbed models."""
        return Point(self.lag, self.before, self.before_low, self.before_high)

    @property
    def curve(self) -> Curve:
        """What success is and how it is printed; its one point is the undisturbed models."""
        return bare_curve(
            (self.undisturbed,), success=self.success, chance=self.chance, fpr=self.fpr
        )

    def of(self, kind: Kind) -> tuple[Disturbance, ...]:
        """The disturbances of one kind."""
        return tuple(row for row in self.disturbances if row.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Canaries lost at some checkpoints and found at a later one: ``measures.Returning`` as stored.

    Attributes:
        checkpoints: How many were scanned.
        reference: Which models determine how many come back by chance.
    """

    canaries: int
    lost: int
    returned: int
    chance_returned: int
    excess: float
    excess_low: float
    excess_high: float
    pvalue: float
    fpr: float | None = None
    strict_fpr: float | None = None
    quiet: int | None = None
    trials: int | None = None
    confidence: float
    method: str | None = None
    checkpoints: int
    reference: str

    @property
    def significant(self) -> bool:
        """Whether more came back than do by chance."""
        return self.pvalue <= 1.0 - self.confidence + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingResult:
    """Everything that a forgetting study stores of its measurements.

    A record also holds each variant's whole curve, a ``CurveResult`` in a row of its own
    (``curve_variant1``, ``curve_variant2``, …); ``compare`` has what pages show of them.

    Attributes:
        curve: Attack success against lag, by the study's own measure.
        curve_aa: The same for the A/A twins, neither of which saw the canaries.
        curve_controls: The same for canaries drawn the same way and never planted.
        curve_precision, curve_tpr, curve_auc, curve_accuracy: By the other measures of success;
            the study's own is absent here.
        traditional: Accuracy and loss on the canaries.
        compare: The study beside its variants.
        decision: What the curve means for the limit.
        hidden: Attack success after the models were disturbed.
        returning: Lost canaries that were found at a later checkpoint.
    """

    VERSION: ClassVar[int] = 1

    verdict: Finding | Gate | Absent
    task: ClassifierTask | Absent
    scope: Tested | Absent
    curve: CurveResult | Absent
    curve_aa: CurveResult | Absent
    curve_controls: CurveResult | Absent
    curve_precision: CurveResult | Absent
    curve_tpr: CurveResult | Absent
    curve_auc: CurveResult | Absent
    curve_accuracy: CurveResult | Absent
    traditional: Traditional | Absent
    compare: Comparison | Absent
    decision: Decision | Absent
    hidden: ResidualMemory | Absent
    returning: Returning | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Version 1 is the only one; what older records lack has a default."""
        return parts

    @property
    def other_measures(self) -> dict[str, CurveResult | Absent]:
        """The measures of success that ``curve`` does not show, by name."""
        own = "precision" if isinstance(self.curve, Absent) else self.curve.success
        return {name: getattr(self, f"curve_{name}") for name in SUCCESSES if name != own}
