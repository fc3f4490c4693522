"""The questions that a recipe can ask, and what a recipe of each may hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from remnant.plans import (
    FeaturePlan,
    InjectPlan,
    InsertPlan,
    PoisonPlan,
    ShadowPlan,
    StaggeredPlan,
)
from remnant.plans.insert_epochs import InsertEpochsPlan
from remnant.studies.exposure import ExposureStudy
from remnant.studies.exposure_settings import (
    LanguageModelSettings,
    MeasureSettings,
    SecretSettings,
    TextSettings,
)
from remnant.studies.exposure_training import ExposureTrainingStudy
from remnant.studies.exposure_training_settings import (
    FollowSettings,
    TrainedMeasureSettings,
    TrainedSecretSettings,
)
from remnant.studies.features import FeatureStudy
from remnant.studies.features_settings import (
    AugmentSettings,
    FeatureCanarySettings,
    InfluenceSettings,
    OtherImageSettings,
    PatchSettings,
    ScoreSettings,
)
from remnant.studies.forgetting import ForgettingStudy
from remnant.studies.hidden_settings import HiddenSettings
from remnant.studies.one_run import OneRunStudy
from remnant.studies.prediction import PredictionStudy
from remnant.studies.prediction_settings import PlantedSettings, PredictSettings, TruthSettings
from remnant.studies.settings import (
    AttackSettings,
    CanarySettings,
    DataSettings,
    ModelSettings,
    OneRunSettings,
    TrainingSettings,
)
from remnant.studies.text_forgetting import TextForgettingStudy
from remnant.studies.text_forgetting_settings import TextAttackSettings, TextCanarySettings
from remnant.studies.text_prediction import TextPredictionStudy
from remnant.studies.text_prediction_settings import (
    LoraSettings,
    PretrainedSettings,
    QuestionSettings,
)
from remnant.studies.translation import TranslationStudy
from remnant.studies.translation_settings import (
    PairSecretSettings,
    PairSettings,
    TranslatorSettings,
)

Study = (
    ForgettingStudy
    | ExposureStudy
    | TranslationStudy
    | ExposureTrainingStudy
    | OneRunStudy
    | TextForgettingStudy
    | PredictionStudy
    | TextPredictionStudy
    | FeatureStudy
)


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What a recipe of one question may hold.

    Attributes:
        study: What is made of it.
        plans, sections: Kinds of plan, and the sections beside it.
        compares, varies, grids: Whether it may have ``compare``, ``variants``, ``grid``.
    """

    study: Callable[..., Study]
    plans: dict[str, type]
    sections: dict[str, type]
    compares: bool = False
    varies: bool = False
    grids: bool = False

    @property
    def top(self) -> tuple[str, ...]:
        """What may stand at the recipe's top level."""
        others: tuple[str, ...] = ("label", "title", "compare") if self.compares else ()
        others += ("variants",) if self.varies else ()
        others += ("grid",) if self.grids else ()
        return ("question", *others, "plan", *self.sections)


QUESTIONS = {
    "forgetting": Question(
        study=ForgettingStudy,
        plans={"inject": InjectPlan, "poison": PoisonPlan},
        sections={
            "data": DataSettings,
            "canaries": CanarySettings,
            "model": ModelSettings,
            "training": TrainingSettings,
            "attack": AttackSettings,
            "hidden": HiddenSettings,
        },
        compares=True,
    ),
    "one-run": Question(
        study=OneRunStudy,
        plans={"staggered": StaggeredPlan},
        sections={
            "data": DataSettings,
            "canaries": CanarySettings,
            "model": ModelSettings,
            "training": TrainingSettings,
            "attack": OneRunSettings,
        },
    ),
    "text-forgetting": Question(
        study=TextForgettingStudy,
        plans={"inject": InjectPlan, "poison": PoisonPlan},
        sections={
            "text": TextSettings,
            "canaries": TextCanarySettings,
            "model": LanguageModelSettings,
            "training": TrainingSettings,
            "attack": TextAttackSettings,
        },
        compares=True,
    ),
    "prediction": Question(
        study=PredictionStudy,
        plans={"shadow": ShadowPlan},
        sections={
            "data": DataSettings,
            "canaries": PlantedSettings,
            "model": ModelSettings,
            "training": TrainingSettings,
            "predict": PredictSettings,
            "truth": TruthSettings,
        },
    ),
    "text-prediction": Question(
        study=TextPredictionStudy,
        plans={"shadow": ShadowPlan},
        sections={
            "questions": QuestionSettings,
            "model": PretrainedSettings,
            "lora": LoraSettings,
            "training": TrainingSettings,
            "predict": PredictSettings,
            "truth": TruthSettings,
        },
    ),
    "unique-features": Question(
        study=FeatureStudy,
        plans={"feature": FeaturePlan},
        sections={
            "data": DataSettings,
            "patch": PatchSettings,
            "canaries": FeatureCanarySettings,
            "images": OtherImageSettings,
            "score": ScoreSettings,
            "influence": InfluenceSettings,
            "augment": AugmentSettings,
            "model": ModelSettings,
            "training": TrainingSettings,
        },
        varies=True,
    ),
    "exposure": Question(
        study=ExposureStudy,
        plans={"insert": InsertPlan},
        sections={
            "text": TextSettings,
            "secret": SecretSettings,
            "model": LanguageModelSettings,
            "training": TrainingSettings,
            "measure": MeasureSettings,
        },
    ),
    "translation-exposure": Question(
        study=TranslationStudy,
        plans={"insert": InsertPlan},
        sections={
            "pairs": PairSettings,
            "secret": PairSecretSettings,
            "model": TranslatorSettings,
            "training": TrainingSettings,
            "measure": MeasureSettings,
        },
    ),
    "exposure-training": Question(
        study=ExposureTrainingStudy,
        plans={"insert": InsertEpochsPlan},
        sections={
            "text": TextSettings,
            "secret": TrainedSecretSettings,
            "model": LanguageModelSettings,
            "training": TrainingSettings,
            "measure": TrainedMeasureSettings,
            "follow": FollowSettings,
        },
        compares=True,
        grids=True,
    ),
}
