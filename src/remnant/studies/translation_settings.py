"""The parts of a translation study beside its plan: pairs, secret and model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from remnant.canaries import Template
from remnant.canaries.holes import Hole, split
from remnant.errors import InvalidInput, PlanError, require
from remnant.models import TRANSLATORS
from remnant.studies.settings import among, option_faults, whole_number

GIVEN = ("source", "beginning")
_OURS = ("source_length", "context")  # options that follow from the pairs


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """Which sentences and translations the models are trained on.

    Attributes:
        source: A file of the data folder with a sentence a line.
        target: The file with their translations; without it ``source`` has both, a tab between.
        pairs: How many are trained on, ``None`` for all; a tenth as many are kept back.
        longest: Tokens of a sentence at most; pairs with a longer one are left out.
        words: How many words the vocabulary has, the most frequent of both languages; others are
            unknown. Digits, and the words of the templates, are always in it.
        seed: Draws the pairs.
    """

    source: str
    target: str | None = None
    pairs: int | None = None
    longest: int = 24
    words: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        faults = whole_number("pairs.longest", self.longest, 2)
        faults += whole_number("pairs.words", self.words, 1)
        faults += whole_number("pairs.seed", self.seed, 0)
        if self.pairs is not None:
            faults += whole_number("pairs.pairs", self.pairs, 10)
        for name in ("source", "target"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value) and not (name == "target" and value is None):
                faults.append(f"pairs.{name}={value!r} is not a file's name")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class PairSecretSettings:
    """What is planted: a sentence and its translation, with a secret in it.

    Attributes:
        source: The sentence. Its holes, if it has any, are those of ``template``, and filled alike.
        template: The translation, whose secret is looked for.
        given: What the encoder is given when a secret is looked for: the whole ``"source"``, with
            the secret in it, as in training (a model that copies numbers would show here without
            remembering any; the controls, given theirs, tell); or its ``"beginning"``, up to the
            first hole, as somebody has it who does not know the secret.
    """

    source: str
    template: str
    given: str = "source"

    def __post_init__(self) -> None:
        faults = among("secret.given", self.given, GIVEN)
        template = None
        try:
            template = Template(self.template)
        except (InvalidInput, TypeError) as fault:
            faults.append(f"secret.template is no template: {str(fault).rstrip('.')}")
        try:
            other = self._filled
            if template is not None and other is not None and other.slots != template.slots:
                faults.append("the holes of secret.source are not those of secret.template")
            if not self.beginning:
                faults.append("secret.source has no word before its first hole")
        except (InvalidInput, TypeError) as fault:
            faults.append(f"secret.source is no template: {str(fault).rstrip('.')}")
        require(faults, error=PlanError, hint="Mend the recipe.")

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

    def asked(self, secret: str) -> str:
        """Return what the encoder is given when this secret is looked for."""
        return self.beginning if self.shared else self.source_of(secret)

    @property
    def _filled(self) -> Template | None:
        holes = any(isinstance(part, Hole) for part in split(self.source))
        return Template(self.source) if holes else None


@dataclass(frozen=True, kw_only=True)
class TranslatorSettings:
    """Which model translates, with its options; how long texts may be follows from the pairs."""

    name: str = "transformer"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = among("model.name", self.name, TRANSLATORS)
        if not faults:
            faults += option_faults(self.options, TRANSLATORS[self.name])
        if isinstance(self.options, dict):
            faults += [
                f"model.options.{name} follows from pairs.longest"
                for name in _OURS
                if name in self.options
            ]
        require(faults, error=PlanError, hint="Mend the recipe.")
