"""The recipe of a forgetting curve of pairs of sentences from one training run of a translator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remnant.errors import PlanError, require
from remnant.plans import StaggeredPlan
from remnant.studies.one_run.recipe import OneRunSettings, StaggeredStudy
from remnant.studies.shared.pair_settings import (
    DrawnPairSettings,
    PairPlantingStudy,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import PairFileSettings


@dataclass(frozen=True, kw_only=True)
class TranslationOneRunStudy(StaggeredStudy, PairPlantingStudy):
    """A one-run study of translators: the plan and everything else that changes its numbers."""

    QUESTION: ClassVar[str] = "translation-one-run"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "pairs",
        "canaries",
        "model",
        "training",
        "attack",
    )

    plan: StaggeredPlan
    data: PairFileSettings | None = None
    pairs: PairSettings = field(default_factory=PairSettings)
    canaries: DrawnPairSettings = field(default_factory=DrawnPairSettings)
    model: TranslatorSettings = field(default_factory=TranslatorSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    attack: OneRunSettings = field(default_factory=OneRunSettings)

    def __post_init__(self) -> None:
        require(self.pair_faults(), error=PlanError, hint="Fix the recipe.")
        self.check_controls()

    @property
    def neighbours(self) -> int:
        """Pairs to relearn from: one run is not searched for residual memory."""
        return 0


RECIPE = Recipe(
    study=TranslationOneRunStudy,
    example={
        "plan": {
            "canaries": 300,
            "never": 100,
            "starts": (200, 350),
            "window": 100,
            "repeats": (2, 8),
            "batch": 48,
            "per_batch": 12,
            "steps": 800,
        },
        "data": {"path": "pairs.jsonl"},
        "pairs": {"source": "train.en", "target": "train.de"},
    },
)
