"""What a forgetting study stores: curves, a decision, and its search for residual memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from remnant.errors import InvalidInput
from remnant.records.typed import Absent
from remnant.studies.question_result import QuestionResult
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.shared.curves import (
    Comparison,
    CurveResult,
    Ends,
    Traditional,
    Unmeasured,
    check_lags,
)
from remnant.studies.shared.result_parts import ClassifierTask, Finding, Gate, Tested

_ORDERS = 20  # of sets, from which on a p-value can be 5 %
SUCCESSES = ("precision", "tpr", "auc", "accuracy")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackUsed:
    """The attack that the study’s own curve is about.

    Attributes:
        against: ``never-planted`` examples inside the planted model, or its unplanted ``twin``.
        calibration: What scores are compared with: ``references``, ``checkpoint`` or ``none``.
        signal: What is read off a model.
        references: How many reference models; 0 without.
        attacker: Who attacks, in words.
    """

    against: str
    calibration: str
    signal: str
    references: int
    attacker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSet:
    """Whether each planted model finds its own set among the sets of all trials.

    Attributes:
        lags: Steps since planting.
        p_value: That own sets rank so high by chance, at each lag.
        mean_rank: Of the own sets, over the models; 1 is the highest.
        sets: How many there are.
    """

    lags: tuple[float, ...]
    p_value: tuple[float, ...]
    mean_rank: tuple[float, ...]
    sets: int

    def __post_init__(self) -> None:
        check_lags(self.lags, {"p_value": self.p_value, "mean_rank": self.mean_rank})

    @property
    def can_find(self) -> bool:
        """Whether so many sets have enough orders for a p-value of 5 %; three have six."""
        return math.factorial(self.sets) >= _ORDERS


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinLabel:
    """AUC of planted against never-planted examples of the same label, mean over trials."""

    lags: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        check_lags(self.lags, {"value": self.value, "low": self.low, "high": self.high})


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ForgettingResult(QuestionResult):
    """Everything that a forgetting study stores of its measurements.

    A record also holds each variant's whole curve, a ``CurveResult`` in a row of its own
    (``curve_variant1``, ``curve_variant2``, …); ``compare`` has what pages show of them.

    Attributes:
        attack: The attack behind ``curve``; absent in records of version 1, whose attack compares
            the planted model with its unplanted twin.
        curve: Attack success against lag, by the study's own attack and measure.
        curve_aa: The same comparison in unplanted twins, which saw no canary.
        curve_by_references, curve_by_checkpoint, curve_by_none: Planted against never-planted
            examples for the other attackers; the study's own is absent here.
        curve_influence: The same by scores less those of the trial's own twin: the influence of
            planting, which nobody can attack with.
        curve_twin: Planted model against twin on the planted canaries, as in the paper.
        curve_kind: Planted model against twin on examples that neither saw.
        own_set: Whether each planted model finds its own set among all trials' sets.
        within_label: Success among examples of the same label.
        curve_precision, curve_tpr, curve_auc, curve_accuracy: By the other measures of success;
            the study's own is absent here.
        traditional: Accuracy and loss on the canaries.
        compare: The study beside its variants.
        decision: What the curve means for the limit.
        hidden: Attack success after the models were disturbed.
        returning: Lost canaries that were found at a later checkpoint.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("curve",)
    VERSION: ClassVar[int] = 2

    verdict: Finding | Gate | Absent
    task: ClassifierTask | Absent
    scope: Tested | Absent
    attack: AttackUsed | Absent
    curve: CurveResult | Absent
    curve_aa: CurveResult | Absent
    curve_by_references: CurveResult | Absent
    curve_by_checkpoint: CurveResult | Absent
    curve_by_none: CurveResult | Absent
    curve_influence: CurveResult | Absent
    curve_twin: CurveResult | Absent
    curve_kind: CurveResult | Absent
    own_set: OwnSet | Absent
    within_label: WithinLabel | Absent
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
        """Version 1 compared the planted model with its twin; its controls showed the kind."""
        if version == 1 and "curve_controls" in parts:
            return {**parts, "curve_kind": parts["curve_controls"]}
        return parts

    @property
    def inside(self) -> bool:
        """Whether the curve compares examples inside the planted model."""
        return not isinstance(self.attack, Absent) and self.attack.against == "never-planted"

    @property
    def other_attackers(self) -> dict[str, CurveResult]:
        """The curves of the other attackers that were computed, by calibration."""
        curves = {
            "references": self.curve_by_references,
            "checkpoint": self.curve_by_checkpoint,
            "none": self.curve_by_none,
        }
        return {name: curve for name, curve in curves.items() if not isinstance(curve, Absent)}

    @property
    def other_measures(self) -> dict[str, CurveResult | Absent]:
        """The measures of success that ``curve`` does not show, by name."""
        own = "precision" if isinstance(self.curve, Absent) else self.curve.success
        return {name: getattr(self, f"curve_{name}") for name in SUCCESSES if name != own}
