"""The parts of a text-forgetting study that are its own: canaries and attack."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.errors import PlanError, require
from remnant.studies.settings import among, number, whole_number

KINDS = ("random", "text")
CALIBRATIONS = ("twin", "references", "none")


@dataclass(frozen=True, kw_only=True)
class TextCanarySettings:
    """What is planted: sequences of tokens, and how many they are ranked among.

    Attributes:
        kind: ``random``: tokens drawn at random, which nothing predicts; ``text``: passages of the
            held-out text, which a model predicts in part.
        tokens: Of a canary. It stands at the end of its window, after clean text; ``None`` makes it
            as long as the window allows: all but the first token, which nothing predicts.
        references: Sequences of each trial that are drawn alike and never planted.
        commonest: Random tokens are drawn uniformly from so many, the commonest of the text;
            ``None`` for the whole vocabulary.
    """

    kind: str = "random"
    tokens: int | None = None
    references: int = 500
    commonest: int | None = None

    def __post_init__(self) -> None:
        faults = among("canaries.kind", self.kind, KINDS)
        faults += whole_number("canaries.references", self.references, 1)
        if self.tokens is not None:
            faults += whole_number("canaries.tokens", self.tokens, 1)
        if self.commonest is not None:
            faults += whole_number("canaries.commonest", self.commonest, 2)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class TextAttackSettings:
    """How exposure is measured, and the limit that the verdict is about.

    Attributes:
        calibration: What is subtracted from a sequence's loss: ``twin``, its loss under the trial's
            unplanted twin; ``references``, its mean loss under reference models, each trained on a
            random part of the clean text; ``none``.
        reference_models, fraction: How many of these, and the part; only for ``references``.
        fpr: Of precision and TPR.
        confidence: Of the intervals.
        limit: Bits; the verdict asks whether mean exposure at the last lag is under it.
        lags: At which lags to measure; a grid up to the last step, if not given.
    """

    calibration: str = "twin"
    reference_models: int = 11
    fraction: float = 0.8
    fpr: float = 0.1
    confidence: float = 0.95
    limit: float = 3.0
    lags: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.lags, list):
            object.__setattr__(self, "lags", tuple(self.lags))
        faults = among("attack.calibration", self.calibration, CALIBRATIONS)
        faults += whole_number("attack.reference_models", self.reference_models, 1)
        for name in ("fraction", "fpr", "confidence"):
            value = getattr(self, name)
            if not number(value) or not 0 < value < 1:
                faults.append(f"attack.{name}={value!r} is not between 0 and 1")
        if not number(self.limit) or not self.limit > 0:
            faults.append(f"attack.limit={self.limit!r} is not a number of bits above 0")
        if not isinstance(self.lags, tuple) or any(whole_number("", lag, 0) for lag in self.lags):
            faults.append(f"attack.lags={self.lags!r} are not whole numbers from 0")
        require(faults, error=PlanError, hint="Mend the recipe.")
