"""The recipe of a prediction study on text: multiple-choice questions, a model, its adapters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.errors import InvalidInput, PlanError, require
from remnant.plans import ShadowPlan
from remnant.plans.bounds import FromZero, at_least, text
from remnant.population import Lora
from remnant.studies.prediction.recipe import PredictSettings, TruthSettings, check_shadow_study
from remnant.studies.shared.settings import Section, TrainingSettings
from remnant.studies.shared.study import Recipe, SectionedStudy
from remnant.studies.shared.text_settings import ONE_NAME, QuestionFileSettings, named_twice


@dataclass(frozen=True, kw_only=True)
class QuestionSettings(Section, name="questions"):
    """Which multiple-choice questions models are fine-tuned on.

    Attributes:
        name: Data set, or a file in the data folder.
        examples: Questions to use. Not set: all.
        longest: Largest number of tokens of a prompt; longer questions are left out.
        mislabelled: Further questions that are given a wrong answer.
        seed: Determines which questions and which wrong answers are drawn.
    """

    name: Annotated[str, text("a name")] = "arc-easy"
    examples: Annotated[int, at_least(8)] | None = None
    longest: Annotated[int, at_least(8)] = 128
    mislabelled: FromZero = 0
    seed: FromZero = 0


@dataclass(frozen=True, kw_only=True)
class PretrainedSettings(Section, name="model"):
    """Which pretrained model is fine-tuned.

    Attributes:
        folder: Hugging Face folder, by its path or its name in the data folder or in the recipe's
            folder.
    """

    folder: Annotated[str, text("a path")] = "smollm2"


@dataclass(frozen=True, kw_only=True)
class LoraSettings(Section, name="lora"):
    """The adapters that are trained.

    Attributes:
        rank: Rank of the adapters.
        alpha: Scale of the adapters, divided by the rank.
        dropout: Dropout before the adapters.
        modules: Names of the layers that have adapters.
    """

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.05
    modules: tuple[str, ...] = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            self.made()
        except InvalidInput as fault:
            raise PlanError(f"lora: {fault.message}", hint="Fix the recipe.") from fault

    def made(self) -> Lora:
        """Return them as the engine takes them."""
        return Lora(self.rank, self.alpha, self.dropout, self.modules)


@dataclass(frozen=True, kw_only=True)
class TextPredictionStudy(SectionedStudy):
    """One question, whole: the plan and all that changes its numbers."""

    QUESTION: ClassVar[str] = "text-prediction"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "questions",
        "model",
        "lora",
        "training",
        "predict",
        "truth",
    )

    plan: ShadowPlan
    data: QuestionFileSettings | None = None
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    model: PretrainedSettings = field(default_factory=PretrainedSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adamw", options={"lr": 1e-3})
    )
    predict: PredictSettings = field(default_factory=PredictSettings)
    truth: TruthSettings = field(default_factory=TruthSettings)

    def __post_init__(self) -> None:
        require(named_twice(self.data, self.questions), error=PlanError, hint=ONE_NAME)
        check_shadow_study(self.plan, self.predict)


RECIPE = Recipe(
    study=TextPredictionStudy,
    example={"plan": {"models": 100, "steps": 500}, "data": {"path": "questions.jsonl"}},
)
