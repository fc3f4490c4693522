"""The recipe of a forgetting curve of speech from one training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remnant.errors import PlanError, require
from remnant.plans import StaggeredPlan
from remnant.plans.plan import UTTERANCES
from remnant.studies.one_run.recipe import OneRunSettings, StaggeredStudy
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    Cell,
    RecogniserSettings,
    SpeechDataSettings,
    SpeechStudy,
    UtteranceSettings,
)
from remnant.studies.shared.study import Recipe


@dataclass(frozen=True, kw_only=True)
class SpeechOneRunStudy(StaggeredStudy, SpeechStudy):
    """A one-run study of speech: the plan and everything else that changes its numbers."""

    QUESTION: ClassVar[str] = "speech-one-run"
    SECTIONS: ClassVar[tuple[str, ...]] = ("data", "canaries", "model", "training", "attack")

    plan: StaggeredPlan
    data: SpeechDataSettings = field(default_factory=SpeechDataSettings)
    canaries: UtteranceSettings = field(default_factory=UtteranceSettings)
    model: RecogniserSettings = field(default_factory=RecogniserSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3}, clip=5.0)
    )
    attack: OneRunSettings = field(default_factory=OneRunSettings)

    def __post_init__(self) -> None:
        require(self.canary_faults(), error=PlanError, hint="Fix the recipe.")
        self.check_controls()

    @property
    def draw_key(self) -> tuple[int, ...]:
        """The key of everything that is drawn for canaries.

        It is not that of the plan, which draws at random which canaries are planted when: what a
        canary is must not depend on that.
        """
        return (self.plan.seed, UTTERANCES)

    @property
    def canary_cells(self) -> list[Cell]:
        """The kind of each canary, planted or not: all kinds in turn."""
        cells = self.canaries.cells
        return [cells[number % len(cells)] for number in range(self.plan.canaries)]


RECIPE = Recipe(
    study=SpeechOneRunStudy,
    example={"plan": {"canaries": 300, "never": 60, "starts": (200, 400), "window": 100}},
)
