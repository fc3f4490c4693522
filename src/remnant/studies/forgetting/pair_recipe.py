"""The recipe of a forgetting study on translators: planted pairs of sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remnant.plans import InjectPlan, PoisonPlan
from remnant.studies.forgetting.text_recipe import SequenceStudy, TextAttackSettings
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.pair_settings import (
    PairCanarySettings,
    PairPlantingStudy,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import PairFileSettings
from remnant.studies.shared.variants import Variant


@dataclass(frozen=True, kw_only=True)
class TranslationForgettingStudy(SequenceStudy, PairPlantingStudy):
    """A forgetting study on translators: the plan and everything else that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants. They have A/A twins only where ``attack.calibration`` is ``twins``.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only. Variants are not searched.
    """

    QUESTION: ClassVar[str] = "translation-forgetting"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "pairs",
        "canaries",
        "model",
        "training",
        "attack",
        "hidden",
    )
    CLEAN: ClassVar[str] = "pairs"
    THINGS: ClassVar[str] = "pairs"

    plan: InjectPlan | PoisonPlan
    data: PairFileSettings | None = None
    pairs: PairSettings = field(default_factory=PairSettings)
    canaries: PairCanarySettings = field(default_factory=PairCanarySettings)
    model: TranslatorSettings = field(default_factory=TranslatorSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    attack: TextAttackSettings = field(default_factory=TextAttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[TranslationForgettingStudy], ...] = ()
    hidden: HiddenSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        self.check(self.canaries.references, self.pair_faults())


RECIPE = Recipe(
    study=TranslationForgettingStudy,
    example={
        "plan": {"canaries": 16, "step": 200, "watch_steps": 200, "trials": 8},
        "data": {"path": "pairs.jsonl"},
        "pairs": {"source": "train.en", "target": "train.de"},
    },
)
