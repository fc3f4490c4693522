"""What studies of forgetting of sequences store: exposure curves, groups, comparisons, sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from remnant.errors import InvalidInput
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.shared.curves import (
    Comparison,
    Curve,
    CurveResult,
    Numbers,
    Point,
    Traditional,
    Unmeasured,
    bare_curve,
    check_lags,
    check_levels,
    levels,
    points,
)
from remnant.studies.shared.result_parts import Finding, Gate, LanguageTask, SpeechTask, Tested


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeAfter:
    """From which lag on exposure is shown to be within the limit; None where from none.

    Attributes:
        tested: How many lags were tested, from the last one backward.
    """

    lag: float | None
    reason: str
    limit: float | None = optional()
    confidence: float | None = optional()
    tested: int | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureCurveResult:
    """Mean exposure at each lag; one entry of ``value``, ``low`` and ``high`` a lag.

    Attributes:
        label: A variant's name, or how often the canaries were seen; None for the study's own.
        uses: How often these canaries were seen; None where they are all of them.
        success: Always ``"exposure"``.
        chance: Mean exposure of a sequence that was never planted, in bits.
        n_canaries, n_references: Of each trial.
        ceiling: The maximum that so many references can show, in bits.
        lags: Steps since planting, rising.
        median: Exposure of the median canary at each lag; None in older records.
        saturated: Share of the canaries at the ceiling, at each lag.
        per_trial: Mean exposure of each trial, one row a lag.
        steps_to: The lag at which exposure falls to a level in bits, by level.
        safe_after: From which lag on the limit holds, or why that was not judged.
        found, found_at: As in ``CurveResult``.
    """

    label: str | None = optional()
    uses: int | None = optional()
    success: str = "exposure"
    chance: float | None
    confidence: float | None = None
    method: str | None = None
    trials: int | None = None
    n_canaries: int
    n_references: int
    ceiling: float
    lags: tuple[float, ...]
    value: Numbers
    low: Numbers | None = optional()
    high: Numbers | None = optional()
    median: Numbers | None = optional()
    saturated: tuple[float, ...]
    per_trial: tuple[Numbers, ...] | None = optional()
    steps_to: dict[str, float | None] | None = optional()
    safe_after: Unmeasured | SafeAfter
    found: bool | None = optional()
    found_at: float | None = optional()

    def __post_init__(self) -> None:
        names = ("value", "low", "high", "median", "saturated", "per_trial")
        check_lags(self.lags, {name: getattr(self, name) for name in names})
        check_levels(self.steps_to)

    @property
    def curve(self) -> Curve:
        """The curve as pages show it."""
        return Curve(
            success=self.success,
            points=points(self.lags, self.value, self.low, self.high),
            chance=self.chance,
            fpr=None,
            confidence=self.confidence,
            trials=self.trials,
            n_seen=None,
            n_unseen=None,
            method=self.method or None,
            steps_to=levels(self.steps_to),
        )

    @property
    def peak(self) -> Point:
        """The lag at which the canaries are most exposed."""
        return max(self.curve.points, key=lambda point: point.value or 0.0)

    @property
    def safe_reason(self) -> str:
        """From which lag on the limit holds, in a sentence."""
        if isinstance(self.safe_after, Unmeasured):
            return f"From which lag on the limit holds is not shown: {self.safe_after.reason}."
        return self.safe_after.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ByUses:
    """Exposure by how often canaries were seen."""

    title: str
    success: str = "exposure"
    chance: float | None = None
    series: tuple[ExposureCurveResult, ...]

    def __post_init__(self) -> None:
        if not self.series:
            raise InvalidInput(".series is empty")

    @property
    def curves(self) -> tuple[tuple[str, Curve], ...]:
        """Label and curve of each number of uses."""
        return tuple((series.label or "", series.curve) for series in self.series)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureAt:
    """Mean exposure at one lag with its interval, and that of the median canary, in bits."""

    value: float
    low: float
    high: float
    median: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    """Exposure by one calibration.

    Attributes:
        name: As ``attack.calibration`` has it.
        said: What is done to each cost, as the end of a sentence.
        attacker: Whether somebody can do so; nobody has a trial's own twin.
        start, end: Exposure at the first and at the last lag.
    """

    name: str
    said: str
    attacker: bool
    start: ExposureAt
    end: ExposureAt


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCalibration:
    """Exposure at the first and the last lag by every calibration that the run's arrays allow.

    Attributes:
        own: The study's own calibration.
        lags: The first and the last lag.
        rows: One a calibration.
    """

    own: str
    lags: tuple[float, float]
    rows: tuple[CalibrationRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SequenceResult(QuestionResult):
    """What studies of forgetting of text and of speech store alike.

    A record also holds each variant's whole curve, an ``ExposureCurveResult`` in a row of its own
    (``curve_variant1``, ``curve_variant2``, …); ``compare`` has what pages show of them.

    Attributes:
        curve_exposure: Mean exposure of the canaries in the models that had them.
        curve_exposure_aa: The same in the A/A twins, which did not.
        calibrations: Exposure by every calibration; absent in records of version 0.2.
        curve: Precision of an attack that distinguishes planted from never-planted sequences.
        curve_tpr, curve_auc, curve_accuracy: The same attack by other measures.
        curve_aa: Precision in the A/A twins.
        compare: The study beside its variants.
        hidden: Attack success and exposure after the models were disturbed.
        returning: Lost canaries that were found at a later checkpoint.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("curve_exposure",)

    verdict: Finding | Gate | Absent
    scope: Tested | Absent
    curve_exposure: ExposureCurveResult | Absent
    curve_exposure_aa: ExposureCurveResult | Absent
    calibrations: ByCalibration | Absent
    curve: CurveResult | Absent
    curve_tpr: CurveResult | Absent
    curve_auc: CurveResult | Absent
    curve_accuracy: CurveResult | Absent
    curve_aa: CurveResult | Absent
    compare: Comparison | Absent
    hidden: ResidualMemory | Absent
    returning: Returning | Absent

    @property
    def attack_success(self) -> tuple[CurveResult, ...]:
        """Attack success by every measure that was taken."""
        measures = (self.curve, self.curve_tpr, self.curve_auc, self.curve_accuracy)
        return tuple(curve for curve in measures if isinstance(curve, CurveResult))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TextForgettingResult(SequenceResult):
    """Everything that a study of forgetting of text stores of its measurements.

    Attributes:
        by_uses: Exposure by how often canaries were seen.
        traditional: Accuracy and loss on the canaries.
    """

    task: LanguageTask | Absent
    by_uses: ByUses | Absent
    traditional: Traditional | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TranslationForgettingResult(TextForgettingResult):
    """Everything that a study of forgetting of translators stores: a sequence is a target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """What a recogniser hears of the canaries, in the twin that saw them and in the other one.

    Attributes:
        lags: Steps since planting.
        seen_error, unseen_error: Character error rate at each lag, by greedy decoding.
        seen_bits, unseen_bits: Cost of a character at each lag, in bits.
    """

    lags: tuple[float, ...]
    seen_error: Numbers
    unseen_error: Numbers
    seen_bits: Numbers
    unseen_bits: Numbers

    def __post_init__(self) -> None:
        names = ("seen_error", "unseen_error", "seen_bits", "unseen_bits")
        check_lags(self.lags, {name: getattr(self, name) for name in names})

    @property
    def curves(self) -> tuple[tuple[str, Curve], ...]:
        """The error rates as curves with their labels."""
        sides = {"Twin that heard them": self.seen_error, "Twin that did not": self.unseen_error}
        return tuple(
            (
                label,
                bare_curve(
                    points(self.lags, column, None, None), success="error_rate", chance=None
                ),
            )
            for label, column in sides.items()
        )

    @property
    def rows(self) -> tuple[ErrorRow, ...]:
        """One row a lag."""
        columns = (self.seen_error, self.unseen_error, self.seen_bits, self.unseen_bits)
        return tuple(ErrorRow(*row) for row in zip(self.lags, *columns, strict=True))


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Error rates and costs of the canaries at one lag."""

    lag: float
    seen_error: float | None
    unseen_error: float | None
    seen_bits: float | None
    unseen_bits: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedSound:
    """A canary that can be heard; stored only where ``--reveal`` was given.

    Attributes:
        array: Name of the record's array with the samples, 16-bit whole numbers.
        rate: Samples a second.
        transcript: What it was planted with.
        uses: How often the first trial's planted member used it.
    """

    array: str
    rate: int
    transcript: str
    uses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedSounds:
    """Canaries that can be heard."""

    sounds: tuple[PlantedSound, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SpeechForgettingResult(SequenceResult):
    """Everything that a study of forgetting of speech stores of its measurements.

    Attributes:
        by_uses, by_words, by_voice, by_speakers: Exposure of groups of canaries.
        errors: Error rate and cost of the canaries.
        sounds: Three canaries to listen to.
    """

    task: SpeechTask | Absent
    by_uses: Comparison | Absent
    by_words: Comparison | Absent
    by_voice: Comparison | Absent
    by_speakers: Comparison | Absent
    errors: ErrorRates | Absent
    sounds: PlantedSounds | Absent

    @property
    def groups(self) -> dict[str, Comparison]:
        """The groups of canaries that were compared, by key."""
        own = {
            "uses": self.by_uses,
            "words": self.by_words,
            "voice": self.by_voice,
            "speakers": self.by_speakers,
        }
        return {key: part for key, part in own.items() if isinstance(part, Comparison)}
