"""What a study of forgetting of speech stores: exposure curves, groups, error rates, sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from remnant.records.typed import Absent
from remnant.report.curve import Curve
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.shared.curves import (
    Comparison,
    CurveResult,
    Numbers,
    bare_curve,
    check_lags,
    points,
)
from remnant.studies.shared.parts import Finding, Gate, SpeechTask, Tested
from remnant.studies.text_forgetting.result import ExposureCurveResult


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechForgettingResult:
    """Everything that a study of forgetting of speech stores of its measurements.

    A record also holds each variant's whole curve, an ``ExposureCurveResult`` in a row of its own
    (``curve_variant1``, ``curve_variant2``, …); ``compare`` has what pages show of them.

    Attributes:
        curve_exposure: Mean exposure of the canaries in the models that heard them.
        curve_exposure_aa: The same in the A/A twins, which did not.
        curve: Precision of an attack that distinguishes planted from never-planted utterances.
        curve_tpr, curve_auc, curve_accuracy: The same attack by other measures.
        curve_aa: Precision in the A/A twins.
        by_uses, by_words, by_voice, by_speakers: Exposure of groups of canaries.
        errors: Error rate and cost of the canaries.
        compare: The study beside its variants.
        sounds: Three canaries to listen to.
        hidden: Attack success and exposure after the models were disturbed.
        returning: Lost canaries that were found at a later checkpoint.
    """

    VERSION: ClassVar[int] = 1

    verdict: Finding | Gate | Absent
    task: SpeechTask | Absent
    scope: Tested | Absent
    curve_exposure: ExposureCurveResult | Absent
    curve_exposure_aa: ExposureCurveResult | Absent
    curve: CurveResult | Absent
    curve_tpr: CurveResult | Absent
    curve_auc: CurveResult | Absent
    curve_accuracy: CurveResult | Absent
    curve_aa: CurveResult | Absent
    by_uses: Comparison | Absent
    by_words: Comparison | Absent
    by_voice: Comparison | Absent
    by_speakers: Comparison | Absent
    errors: ErrorRates | Absent
    compare: Comparison | Absent
    sounds: PlantedSounds | Absent
    hidden: ResidualMemory | Absent
    returning: Returning | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Version 1 is the only one; what older records lack has a default."""
        return parts

    @property
    def attack_success(self) -> tuple[CurveResult, ...]:
        """Attack success by every measure that was taken."""
        measures = (self.curve, self.curve_tpr, self.curve_auc, self.curve_accuracy)
        return tuple(curve for curve in measures if isinstance(curve, CurveResult))

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
