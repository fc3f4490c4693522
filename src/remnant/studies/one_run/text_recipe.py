"""The recipe of a forgetting curve of text from one training run of a language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remnant.errors import PlanError, require
from remnant.plans import StaggeredPlan
from remnant.studies.one_run.recipe import OneRunSettings, StaggeredStudy
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    SequenceSettings,
    TextFileSettings,
    TextSettings,
    named_twice,
)


@dataclass(frozen=True, kw_only=True)
class TextOneRunStudy(StaggeredStudy):
    """A one-run study of text: the plan and everything else that changes its numbers."""

    QUESTION: ClassVar[str] = "text-one-run"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "text",
        "canaries",
        "model",
        "training",
        "attack",
    )

    plan: StaggeredPlan
    data: TextFileSettings | None = None
    text: TextSettings = field(default_factory=lambda: TextSettings(characters=200_000, window=32))
    canaries: SequenceSettings = field(default_factory=lambda: SequenceSettings(tokens=12))
    model: LanguageModelSettings = field(
        default_factory=lambda: LanguageModelSettings(options={"units": 64, "layers": 1})
    )
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 5e-3})
    )
    attack: OneRunSettings = field(default_factory=OneRunSettings)

    def __post_init__(self) -> None:
        require(named_twice(self.data, self.text), error=PlanError, hint="Fix the recipe.")
        self.check_controls()

    @property
    def neighbours(self) -> int:
        """Sequences to relearn from: one run is not searched for residual memory."""
        return 0


RECIPE = Recipe(
    study=TextOneRunStudy,
    example={
        "plan": {
            "canaries": 500,
            "never": 200,
            "starts": (600, 900),
            "window": 100,
            "repeats": (4, 16),
            "per_batch": 16,
            "steps": 1800,
            "batch": 32,
        },
        "data": {"path": "train.jsonl"},
    },
)
