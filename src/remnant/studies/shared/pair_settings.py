"""The sections of recipes that say which pairs of sentences translators are trained on."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any

from remnant.canaries import Template
from remnant.canaries.holes import Hole, split
from remnant.errors import InvalidInput
from remnant.models import TRANSLATORS
from remnant.plans.bounds import Count, FromZero, at_least, one_of, text
from remnant.studies.shared.settings import Section, TrainingSettings, option_faults
from remnant.studies.shared.study import SectionedStudy
from remnant.studies.shared.text_settings import PairFileSettings

FileName = Annotated[str, text("a file's name")]
GIVEN = ("source", "beginning")
PAIR_KINDS = ("random", "held-out")
_OURS = ("source_length", "context")  # options that follow from the pairs


@dataclass(frozen=True, kw_only=True)
class PairSettings(Section, name="pairs"):
    """Which sentences and translations the models are trained on.

    Attributes:
        source: File in the data folder with one sentence on each line. Not set: ``[data]`` names
            your own files.
        target: File with their translations. Not set: ``source`` has both, separated by a tab.
        pairs: Pairs to train on; a tenth as many are held out. Not set: all.
        longest: Largest number of tokens of a sentence; longer pairs are left out.
        words: Words of the vocabulary, the most frequent of both languages. Others are unknown;
            digits and the words of the templates are always included.
        seed: Determines which pairs are drawn.
    """

    source: FileName | None = None
    target: FileName | None = None
    pairs: Annotated[int, at_least(10)] | None = None
    longest: Annotated[int, at_least(2)] = 24
    words: Count = 4000
    seed: FromZero = 0


@dataclass(frozen=True, kw_only=True)
class TranslatorSettings(Section, name="model"):
    """Which model translates; the longest text follows from the pairs.

    Attributes:
        name: Architecture.
        options: Its options, such as ``{ units = 64, layers = 1, heads = 4 }``.
    """

    name: Annotated[str, one_of(TRANSLATORS)] = "transformer"
    options: dict[str, Any] = field(default_factory=dict)

    def _contradictions(self) -> list[str]:
        ours = [name for name in _OURS if name in self.options]
        return option_faults(self.options, TRANSLATORS[self.name]) + [
            f"model.options.{name} follows from pairs.longest" for name in ours
        ]


class TranslatorStudy(SectionedStudy):
    """A study that trains translators.

    Attributes:
        data, pairs: Which pairs of sentences, the user's own or named ones.
        model, training: The sections of its recipe.
    """

    data: PairFileSettings | None
    pairs: PairSettings
    model: TranslatorSettings
    training: TrainingSettings

    @property
    def model_options(self) -> dict[str, Any]:
        """Options of the model: those of the recipe, and the longest source and target."""
        longest = self.pairs.longest
        return {**self.model.options, "source_length": longest, "context": longest + 1}

    def pair_faults(self) -> list[str]:
        """Return what is wrong where the pairs are named twice, or nowhere."""
        named = [name for name in ("source", "target") if getattr(self.pairs, name) is not None]
        if self.data is not None:
            return [f"pairs.{name} and [data] both name the pairs" for name in named]
        return [] if "source" in named else ["neither [data] nor pairs.source names the pairs"]


@dataclass(frozen=True, kw_only=True)
class DrawnPairSettings(Section, name="canaries"):
    """Which pairs are planted.

    Attributes:
        kind: ``random``: words drawn at random on both sides, so that no source predicts its
            target; ``held-out``: pairs that are taken from the held-out ones.
        tokens: Words of each side of a random pair.
        commonest: Draw random words uniformly from this many of the most frequent ones. Not set:
            from the whole vocabulary.
    """

    kind: Annotated[str, one_of(PAIR_KINDS)] = "random"
    tokens: Count = 8
    commonest: Annotated[int, at_least(2)] | None = None


@dataclass(frozen=True, kw_only=True)
class PairCanarySettings(DrawnPairSettings, name="canaries"):
    """Which pairs are planted, and among how many they are ranked.

    Attributes:
        references: Pairs of each trial that are drawn the same way and never planted.
    """

    references: Count = 200


class PairPlantingStudy(TranslatorStudy):
    """A study that draws pairs and plants them into the training of translators.

    Attributes:
        plan: Who sees what, and when.
        canaries: Which pairs are planted.
        attack: Of one run, whether scores from before a window are subtracted, in ``calibrate``.
    """

    plan: Any
    attack: Any
    canaries: DrawnPairSettings

    @property
    @abstractmethod
    def neighbours(self) -> int:
        """Pairs of each trial to relearn from."""


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


class PairsWithSecretsStudy(TranslatorStudy):
    """A study of secrets in the pairs of translators."""

    plan: Any
    secret: PairSecretSettings
