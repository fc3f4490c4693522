"""The recipe of an exposure study of translators: pairs of sentences with a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from remnant.canaries import Template
from remnant.errors import PlanError, require
from remnant.plans import InsertPlan
from remnant.studies.exposure.recipe import check_space
from remnant.studies.shared.pair_settings import (
    PairSecretSettings,
    PairSettings,
    PairsWithSecretsStudy,
    TranslatorSettings,
)
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import (
    MeasureSettings,
    PairFileSettings,
)


@dataclass(frozen=True, kw_only=True)
class TranslationStudy(PairsWithSecretsStudy):
    """One question, whole: the plan and all that changes its numbers."""

    QUESTION: ClassVar[str] = "translation-exposure"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "pairs",
        "secret",
        "model",
        "training",
        "measure",
    )

    plan: InsertPlan
    data: PairFileSettings | None = None
    pairs: PairSettings = field(default_factory=PairSettings)
    secret: PairSecretSettings
    model: TranslatorSettings = field(default_factory=TranslatorSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: MeasureSettings = field(default_factory=MeasureSettings)

    def __post_init__(self) -> None:
        hint = "Name your own files in [data], or two text files."
        require(self.pair_faults(), error=PlanError, hint=hint)
        check_space(self.plan, self.measure, Template(self.secret.template))


RECIPE = Recipe(
    study=TranslationStudy,
    example={
        "plan": {"repeats": (1, 4, 10), "steps": 500},
        "data": {"path": "pairs.jsonl"},
        "pairs": {"source": "train.en", "target": "train.de"},
        "secret": {
            "source": "my number is {digits:4}",
            "template": "meine nummer ist {digits:4}",
        },
    },
)
