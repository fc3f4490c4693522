"""What a study of forgetting of speech stores: exposure curves, groups, error rates, sounds."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.report.curve import Curve
from remnant.studies.shared.curves import (
    Comparison,
    Numbers,
    bare_curve,
    check_lags,
    points,
)
from remnant.studies.shared.result_parts import SpeechTask
from remnant.studies.text_forgetting.result import SequenceResult


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
