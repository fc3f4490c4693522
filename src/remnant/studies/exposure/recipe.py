"""The recipe of an exposure study: what is planted into which text, trained and measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.canaries import Template
from remnant.canaries.holes import Hole, split
from remnant.errors import InvalidInput, PlanError, require
from remnant.models.vocabulary import UNKNOWN
from remnant.plans import InsertPlan
from remnant.plans.bounds import at_least
from remnant.studies.shared.settings import Section, TrainingSettings
from remnant.studies.shared.study import Recipe, SectionedStudy
from remnant.studies.shared.text_settings import (
    ONE_NAME,
    LanguageModelSettings,
    MeasureSettings,
    TextFileSettings,
    TextSettings,
    named_twice,
)


@dataclass(frozen=True, kw_only=True)
class SecretSettings(Section, name="secret"):
    """The secrets that are planted.

    Attributes:
        template: Text with holes that are filled at random, such as ``{digits:6}``; ``{words:n}``
            is filled with words of the text.
        words: Most frequent words that fill ``{words:n}``. Not set: all.
    """

    template: str = "API_KEY = {digits:6}"
    words: Annotated[int, at_least(2)] | None = None

    def _contradictions(self) -> list[str]:
        try:
            self._of(("a", "b") if self.of_words else None)
        except (InvalidInput, TypeError) as fault:
            raise PlanError(f"secret.template is no template: {fault}") from fault
        if self.words is not None and not self.of_words:
            return ["secret.words is given, and secret.template has no {words:n} hole"]
        return []

    @property
    def of_words(self) -> bool:
        """Whether the secret is made of words of the text."""
        parts = split(self.template)
        return any(isinstance(part, Hole) and part.kind == "words" for part in parts)

    def filled(self, text: str) -> Template:
        """Return the template; its words are those of ``text``, cut at white space.

        The last word is passed over: the text may have been cut within it.

        Raises:
            PlanError: The text has fewer different words than asked for.
        """
        if not self.of_words:
            return self._of(None)
        counts = Counter(text.split()[:-1])
        counts.pop(UNKNOWN, None)
        frequent = sorted(counts, key=lambda word: (-counts[word], word))
        if len(frequent) < (self.words or 2):
            raise PlanError(
                f"The text has {len(frequent)} different words, fewer than the {self.words or 2} "
                "that the secret's are drawn from.",
                hint="Train on more text, or lower secret.words.",
            )
        return self._of(frequent[: self.words])

    def _of(self, words: Sequence[str] | None) -> Template:
        return Template(self.template, words=words)


@dataclass(frozen=True, kw_only=True)
class ExposureStudy(SectionedStudy):
    """One question, whole: the plan and all that changes its numbers."""

    QUESTION: ClassVar[str] = "exposure"
    SECTIONS: ClassVar[tuple[str, ...]] = ("data", "text", "secret", "model", "training", "measure")

    plan: InsertPlan
    data: TextFileSettings | None = None
    text: TextSettings = field(default_factory=TextSettings)
    secret: SecretSettings = field(default_factory=SecretSettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: MeasureSettings = field(default_factory=MeasureSettings)

    def __post_init__(self) -> None:
        require(named_twice(self.data, self.text), error=PlanError, hint=ONE_NAME)
        if not self.secret.of_words:  # else the space follows from the text
            check_space(self.plan, self.measure, self.secret.filled(""))


def check_space(plan: InsertPlan, measure: MeasureSettings, template: Template) -> None:
    """Refuse a plan or a limit that the template is too small for.

    Raises:
        PlanError: More secrets are needed than there are, the limit cannot be reached, or nothing
            is judged.
    """
    needed = plan.canaries + plan.controls
    if needed > template.space:
        raise PlanError(
            f"The plan needs {needed} secrets, and the template has {template.space}.",
            hint="Use a template with a larger space.",
        )
    if measure.limit > math.log2(template.space):
        raise PlanError(
            f"measure.limit={measure.limit:g} cannot be reached: a secret of this "
            f"template has at most {math.log2(template.space):.2f} bits.",
            hint="Lower the limit, or use a template with a larger space.",
        )
    if measure.judged is not None and measure.judged < min(plan.repeats):
        raise PlanError(
            f"measure.judged={measure.judged} judges nothing: every canary is planted at least "
            f"{min(plan.repeats)} times."
        )


RECIPE = Recipe(
    study=ExposureStudy,
    example={
        "plan": {
            "repeats": (*(1,) * 20, 4, 4, 4, 16, 16, 16, 64, 64),
            "controls": 20,
            "steps": 300,
        },
        "data": {"path": "train.jsonl"},
    },
)
