"""The recipe of a forgetting study on speech: the corpus, the planted utterances, the attack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.bounds import (
    Count,
)
from remnant.plans.plan import COHORTS
from remnant.studies.forgetting.text_recipe import (
    SequenceStudy,
    TextAttackSettings,
)
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    Cell,
    RecogniserSettings,
    SpeechDataSettings,
    SpeechStudy,
    UtteranceSettings,
)
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.variants import Variant


@dataclass(frozen=True, kw_only=True)
class SpeechCanarySettings(UtteranceSettings, name="canaries"):
    """Which utterances are planted, and among how many they are ranked.

    Canaries are dealt evenly to all combinations of copies, words, voices and speakers.

    Attributes:
        kind: ``spoken``: transcripts of random words that a synthesizer speaks; ``wrong``:
            utterances of the corpus with random words as their transcript.
        words: Words of a transcript, each number for as many canaries.
        commonest: Draw words uniformly from this many of the commonest words of the corpus (of
            synthetic speech: of its text). Not set: from all.
        voices: Of spoken canaries, ``female`` or ``male``.
        speakers: Of spoken canaries, how many speak each: 1, or 2 in turn, both of the same sex.
        references: Utterances of each trial that are drawn the same way and never planted.
    """

    references: Count = 200


@dataclass(frozen=True, kw_only=True)
class SpeechAttackSettings(TextAttackSettings, name="attack"):
    """How exposure is measured, and the limit that the verdict is about.

    Attributes:
        calibration: What is subtracted from the cost of a transcript given its sound: ``twins``,
            its mean cost under the unplanted twins of the other trials; ``references``, its mean
            cost under reference models, each trained on a random part of the clean speech;
            ``none``; or ``influence``, its cost under the trial's own unplanted twin, which no
            attacker has. ``twins`` needs two trials or more. ``twin`` of version 0.2 is read as
            ``influence``.
        reference_models: Reference models, for ``references``.
        fraction: Share of the clean speech that each reference model hears.
        fpr: False-positive rate at which precision and TPR are read.
        confidence: Confidence of the intervals.
        limit: Bits that the mean exposure at the last lag must stay below.
        lags: Lags to measure at, in steps. Empty: a grid up to the last step.
    """


@dataclass(frozen=True, kw_only=True)
class SpeechForgettingStudy(SpeechStudy, SequenceStudy):
    """A forgetting study on speech: the plan and everything else that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants. They have A/A twins only where ``attack.calibration`` is ``twins``.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only. Variants are not searched.
    """

    QUESTION: ClassVar[str] = "speech-forgetting"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "canaries",
        "model",
        "training",
        "attack",
        "hidden",
    )
    CLEAN: ClassVar[str] = "speech"
    THINGS: ClassVar[str] = "utterances"

    plan: PoisonPlan | InjectPlan
    data: SpeechDataSettings = field(default_factory=SpeechDataSettings)
    canaries: SpeechCanarySettings = field(default_factory=SpeechCanarySettings)
    model: RecogniserSettings = field(default_factory=RecogniserSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3}, clip=5.0)
    )
    attack: SpeechAttackSettings = field(default_factory=SpeechAttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[SpeechForgettingStudy], ...] = ()
    hidden: HiddenSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        cells, faults = self.cells, []
        for name, count in (
            ("plan.canaries", self.plan.canaries),
            ("canaries.references", self.canaries.references),
        ):
            kinds = len(cells) if name.startswith("canaries") else len(cells) * self._copies
            if count % kinds:
                faults.append(
                    f"{name}={count} cannot be dealt evenly to {kinds} kinds (copies, words, "
                    "voices, speakers)"
                )
        self.check(self.canaries.references, faults + self.canary_faults())

    @property
    def _copies(self) -> int:
        copies = self.plan.copies
        return len(copies) if isinstance(copies, tuple) else 1

    @property
    def cells(self) -> list[Cell]:
        """The kinds of utterances, apart from how often they are planted."""
        return self.canaries.cells

    def cells_of(self, count: int, *, copies: bool) -> list[Cell]:
        """Return the kind of each of ``count`` canaries or references.

        Args:
            count: How many.
            copies: Whether numbers of copies are dealt to them in turn too: all kinds then get
                each of them as often.
        """
        each = self._copies if copies else 1
        return [self.cells[number // each % len(self.cells)] for number in range(count)]

    @property
    def draw_key(self) -> tuple[int, ...]:
        """The key of everything that is drawn for canaries and references."""
        return (self.plan.seed, COHORTS)

    @property
    def trials(self) -> int:
        """How many trials there are, each with references of its own."""
        return self.plan.trials

    @property
    def canary_sets(self) -> int:
        """How many sets of canaries there are: one a trial, or one for all trials."""
        return self.plan.trials if self.plan.fresh_canaries else 1

    @property
    def canary_cells(self) -> list[Cell]:
        """The kind of each canary of a trial."""
        return self.cells_of(self.plan.canaries, copies=True)

    @property
    def neighbour_cells(self) -> list[Cell]:
        """The kind of each neighbour of a trial."""
        return self.cells_of(self.neighbours, copies=False)

    @property
    def reference_cells(self) -> list[Cell]:
        """The kind of each reference of a trial."""
        return self.cells_of(self.canaries.references, copies=False)


def where(cells: list[Cell], **wanted: Any) -> NDArray[np.intp]:
    """Return the places of the cells that have these values.

    Example:
        >>> where([Cell(7, "male", 1), Cell(10, "male", 1)], words=10).tolist()
        [1]
    """
    return np.flatnonzero(
        [all(getattr(cell, name) == value for name, value in wanted.items()) for cell in cells]
    )


RECIPE = Recipe(
    study=SpeechForgettingStudy,
    example={"plan": {"canaries": 32, "step": 200, "watch_steps": 200, "trials": 8}},
)
