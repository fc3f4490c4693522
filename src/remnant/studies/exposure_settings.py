"""The parts of an exposure study beside its plan: text, secret, model and measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from remnant.canaries import Template
from remnant.canaries.holes import Hole, split
from remnant.data import STANDARD_LIBRARY
from remnant.errors import InvalidInput, PlanError, require
from remnant.models import SEQUENCE_MODELS
from remnant.models.vocabulary import UNKNOWN
from remnant.plans.fingerprint import added_later
from remnant.studies.settings import among, number, option_faults, whole_number

LEVELS = ("character", "word")
METHODS = ("auto", "exact", "sampled")


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Which text the models are trained on.

    Attributes:
        name: ``"standard-library"`` is Python's own; anything else is a file in the data folder.
        characters: How much of it is trained on; ``None`` for all of a file. A tenth as much is
            kept back to measure how useful the model is.
        seed: Which files of the standard library come first.
        level: What a token is, ``"character"`` or ``"word"``.
        window: Tokens of one example.
        deduplicate: Drop passages that are near-duplicates of an earlier one.
    """

    name: str = STANDARD_LIBRARY
    characters: int | None = 400_000
    level: str = "character"
    window: int = 64
    seed: int = 0
    deduplicate: bool = False

    def __post_init__(self) -> None:
        faults = among("text.level", self.level, LEVELS)
        faults += whole_number("text.window", self.window, 2)
        faults += whole_number("text.seed", self.seed, 0)
        if self.characters is not None:
            faults += whole_number("text.characters", self.characters, 1)
        if not isinstance(self.deduplicate, bool):
            faults.append(f"text.deduplicate={self.deduplicate!r} is not true or false")
        if not isinstance(self.name, str) or not self.name:
            faults.append(f"text.name={self.name!r} is not a name")
        if self.characters is None and self.name == STANDARD_LIBRARY:
            faults.append(f"text.characters is needed for the {STANDARD_LIBRARY}")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class SecretSettings:
    """What is planted: a template, whose holes are filled at random.

    Attributes:
        template: The text with its holes; those of ``{words:n}`` are filled with words of the text.
        words: How many of them, the most frequent; ``None`` for all.
    """

    template: str = "API_KEY = {digits:6}"
    words: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.template, str):
            raise PlanError(
                f"secret.template={self.template!r} is not a text.", hint="Correct the recipe."
            )
        try:
            self._of(("a", "b") if self.of_words else None)
        except (InvalidInput, TypeError) as fault:
            raise PlanError(f"secret.template is no template: {fault}") from fault
        if self.words is not None:
            faults = whole_number("secret.words", self.words, 2)
            if not self.of_words:
                faults.append("secret.words is given, and secret.template has no {words:n} hole")
            require(faults, error=PlanError, hint="Mend the recipe.")

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
        found = sorted(counts, key=lambda word: (-counts[word], word))
        if len(found) < (self.words or 2):
            raise PlanError(
                f"The text has {len(found)} different words, fewer than the {self.words or 2} that "
                "the secret's are drawn from.",
                hint="Train on more text, or lower secret.words.",
            )
        return self._of(found[: self.words])

    def _of(self, words: Sequence[str] | None) -> Template:
        return Template(self.template, words=words)


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings:
    """Which language model, with its options."""

    name: str = "lstm"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = among("model.name", self.name, SEQUENCE_MODELS)
        faults += faults or option_faults(self.options, SEQUENCE_MODELS[self.name])
        require(faults, error=PlanError, hint="Correct the recipe.")


@dataclass(frozen=True, kw_only=True)
class MeasureSettings:
    """How exposure is measured, and the limit that the verdict is about.

    Attributes:
        method: ``auto``, ``exact`` or ``sampled``.
        references: Secrets sampled for the histogram, and for sampled exposure.
        max_nodes: Of the walk for the rank, and of each extraction.
        top: How many secrets to extract.
        limit: Bits that a judged canary's exposure has to stay under.
        judged: Canaries planted at most so often are judged; ``None`` means the least of the plan.
        share: The share of such canaries that may be at or above the limit: a PASS then shows with
            95 % confidence that no more are. ``None`` allows none of those judged, and a PASS says
            what share that bounds.
    """

    method: str = "auto"
    references: int = 10_000
    max_nodes: int = 2_000_000
    top: int = 3
    limit: float = 10.0
    judged: int | None = None
    share: float | None = added_later(None)

    def __post_init__(self) -> None:
        faults = among("measure.method", self.method, METHODS)
        faults += whole_number("measure.references", self.references, 0)
        faults += whole_number("measure.max_nodes", self.max_nodes, 1)
        faults += whole_number("measure.top", self.top, 1)
        if self.judged is not None:
            faults += whole_number("measure.judged", self.judged, 1)
        if not number(self.limit) or not self.limit > 0:
            faults.append(f"measure.limit={self.limit!r} is not a number of bits above 0")
        if self.share is not None and not (number(self.share) and 0 < self.share < 1):
            faults.append(f"measure.share={self.share!r} is not a number between 0 and 1")
        if self.method == "sampled" and self.references == 0:
            faults.append("measure.method='sampled' needs measure.references")
        require(faults, error=PlanError, hint="Fix the recipe.")
