"""The recipe of an exposure study of translators: pairs of sentences with a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.canaries import Template
from remnant.canaries.holes import Hole, split
from remnant.errors import InvalidInput, PlanError, require
from remnant.plans import InsertPlan
from remnant.plans.bounds import one_of
from remnant.studies.exposure.recipe import check_space
from remnant.studies.shared.pair_settings import (
    PairSettings,
    TranslatorSettings,
    TranslatorStudy,
)
from remnant.studies.shared.settings import Section, TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import (
    MeasureSettings,
    PairFileSettings,
)

GIVEN = ("source", "beginning")


@dataclass(frozen=True, kw_only=True)
class PairSecretSettings(Section, name="secret"):
    """The sentence and its translation that are planted, with a secret in it.

    Attributes:
        source: The sentence. Its holes, if any, are those of ``template`` and are filled with the
            same secret.
        template: The translation, whose secret is ranked.
        given: What the encoder is given: the whole ``source``, with the secret in it, as in
            training, or its ``beginning``, up to the first hole. A model that copies numbers shows
            exposure with ``source`` without memorising any; the controls reveal this.
    """

    source: str
    template: str
    given: Annotated[str, one_of(GIVEN)] = "source"

    def _contradictions(self) -> list[str]:
        faults = []
        template = None
        try:
            template = Template(self.template)
        except InvalidInput as fault:
            faults.append(f"secret.template is no template: {str(fault).rstrip('.')}")
        try:
            other = self._filled
            if template is not None and other is not None and other.slots != template.slots:
                faults.append("the holes of secret.source are not those of secret.template")
            if not self.beginning:
                faults.append("secret.source has no word before its first hole")
        except InvalidInput as fault:
            faults.append(f"secret.source is no template: {str(fault).rstrip('.')}")
        return faults

    @property
    def beginning(self) -> str:
        """The source up to its first hole: all of it, where it has none."""
        filled = self._filled
        text = "".join(map(str, split(self.source))) if filled is None else filled.prefix
        return text.strip()

    @property
    def shared(self) -> bool:
        """Whether all secrets are looked for with the same source."""
        return self.given == "beginning" or self._filled is None

    def source_of(self, secret: str) -> str:
        """Return the sentence whose translation has this secret."""
        filled = self._filled
        return self.beginning if filled is None else filled.text(secret)

    def encoder_input(self, secret: str) -> str:
        """Return what the encoder is given when this secret is looked for."""
        return self.beginning if self.shared else self.source_of(secret)

    @property
    def _filled(self) -> Template | None:
        holes = any(isinstance(part, Hole) for part in split(self.source))
        return Template(self.source) if holes else None


@dataclass(frozen=True, kw_only=True)
class TranslationStudy(TranslatorStudy):
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
