"""The parts of studies on text beside their plan: text, own files, model and measurement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from remnant.data import STANDARD_LIBRARY
from remnant.data.own_files import FILES
from remnant.data.own_questions import QuestionFields
from remnant.models import SEQUENCE_MODELS
from remnant.plans.bounds import (
    Count,
    FromZero,
    Share,
    at_least,
    distinct_texts,
    number,
    one_of,
    text,
)
from remnant.plans.plan import added_later
from remnant.studies.shared.settings import Section, option_faults

LEVELS = ("character", "word")
SEQUENCES = ("random", "text")
METHODS = ("auto", "exact", "sampled")
ONE_NAME = "Remove one of the two."
OwnName = Annotated[str, one_of((FILES,))]
FilePath = Annotated[str, text("a path")]
FieldName = Annotated[str, text("the name of a field")]
Bits = Annotated[float, number("a number of bits above 0", exclusiveMinimum=0)]


@dataclass(frozen=True, kw_only=True)
class TextSettings(Section, name="text"):
    """Which text the models are trained on.

    Attributes:
        name: ``standard-library`` for the text of Python's own standard library, or a file in the
            data folder.
        characters: Characters to train on; a tenth as much is held out. Of your own files in
            ``[data]``, at most so many.
        level: What a token is, ``character`` or ``word``.
        window: Tokens of one example.
        seed: Determines which files of the standard library come first.
        deduplicate: Whether to drop passages that are near-duplicates of an earlier one.
    """

    name: Annotated[str, text("a name")] = STANDARD_LIBRARY
    characters: Count | None = 400_000
    level: Annotated[str, one_of(LEVELS)] = "character"
    window: Annotated[int, at_least(2)] = 64
    seed: FromZero = 0
    deduplicate: bool = False

    def _contradictions(self) -> list[str]:
        if self.characters is None and self.name == STANDARD_LIBRARY:
            return [f"text.characters is needed for the {STANDARD_LIBRARY}"]
        return []


def named_twice(data: Section | None, named: Section) -> list[str]:
    """Return a fault if ``[data]`` is given and another section names data too, in ``name``.

    Args:
        data: The section ``[data]``, or None.
        named: The section whose default name ``[data]`` takes the place of.
    """
    known = type(named).__dataclass_fields__["name"].default  # type: ignore[attr-defined]
    name = getattr(named, "name", known)
    both = data is not None and name != known
    return [f"{named.NAME}.name={name!r} and [data] both name the data"] if both else []


@dataclass(frozen=True, kw_only=True)
class TextFileSettings(Section, name="data"):
    """Your own text, in place of ``text.name``.

    Attributes:
        name: Always ``files``.
        path: File or folder to train on: plain text, JSON lines (``.jsonl``), CSV or TSV with a
            header. A relative path starts at ``--data``, or at the recipe's folder without it.
        held_out: File or folder to judge by. Not set: a tenth, cut from the end of ``path``.
        text: Field of JSON lines, CSV and TSV that holds the text.
    """

    name: OwnName = FILES
    path: FilePath
    held_out: FilePath | None = None
    text: FieldName = "text"


@dataclass(frozen=True, kw_only=True)
class PairFileSettings(Section, name="data"):
    """Your own pairs, in place of ``pairs.source`` and ``pairs.target``.

    Attributes:
        name: Always ``files``.
        path: File or folder to train on: JSON lines (``.jsonl``), CSV or TSV with a header, or
            plain text with a tab between a sentence and its translation. A relative path starts at
            ``--data``, or at the recipe's folder without it.
        held_out: File or folder to judge by. Not set: a tenth, drawn from ``path``.
        source: Field that holds the sentence.
        target: Field that holds its translation.
    """

    name: OwnName = FILES
    path: FilePath
    held_out: FilePath | None = None
    source: FieldName = "source"
    target: FieldName = "target"


@dataclass(frozen=True, kw_only=True)
class QuestionFileSettings(Section, name="data"):
    """Your own questions or labelled texts, in place of ``questions.name``.

    Attributes:
        name: Always ``files``.
        path: File or folder to train on: JSON lines (``.jsonl``), CSV or TSV with a header. A
            relative path starts at ``--data``, or at the recipe's folder without it.
        held_out: File or folder to judge by. Not set: a fifth of ``path``, 500 rows at most.
        question: Field that holds the question.
        choices: Field that holds a list of choices, or several fields with a choice each.
        answer: Field that holds the right choice: the choice itself, its letter, or its place
            counted from 0.
        text: Field of labelled texts that holds the text, in place of ``question``. Not set: rows
            are questions.
        label: Field that holds the class of a text; all classes are its choices. Not set: rows are
            questions.
    """

    name: OwnName = FILES
    path: FilePath
    held_out: FilePath | None = None
    question: FieldName = "question"
    choices: Annotated[tuple[str, ...], distinct_texts("names of fields")] = ("choices",)
    answer: FieldName = "answer"
    text: FieldName | None = None
    label: FieldName | None = None

    def _contradictions(self) -> list[str]:
        if (self.text is None) != (self.label is None):
            given = "data.label" if self.text is None else "data.text"
            return [f"{given} is given alone; labelled texts need data.text and data.label"]
        return []

    @property
    def fields(self) -> QuestionFields:
        """The fields as the reader takes them."""
        return QuestionFields(
            question=self.question,
            choices=self.choices,
            answer=self.answer,
            text=self.text,
            label=self.label,
        )


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Section, name="model"):
    """Which language model is trained.

    Attributes:
        name: Architecture.
        options: Its options, such as ``{ units = 64, layers = 1 }``.
    """

    name: Annotated[str, one_of(SEQUENCE_MODELS)] = "lstm"
    options: dict[str, Any] = field(default_factory=dict)

    def _contradictions(self) -> list[str]:
        return option_faults(self.options, SEQUENCE_MODELS[self.name])


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(Section, name="canaries"):
    """Which sequences are planted.

    Attributes:
        kind: ``random``: tokens drawn at random, which nothing predicts; ``text``: passages of the
            held-out text, which a model partly predicts.
        tokens: Tokens of a canary, at the end of its window, after clean text. Not set: the whole
            window except the first token.
        commonest: Draw random tokens uniformly from this many of the most frequent ones. Not set:
            from the whole vocabulary.
    """

    kind: Annotated[str, one_of(SEQUENCES)] = "random"
    tokens: Count | None = None
    commonest: Annotated[int, at_least(2)] | None = None


@dataclass(frozen=True, kw_only=True)
class TextCanarySettings(Section, name="canaries"):
    """Which sequences are planted, and among how many they are ranked.

    Attributes:
        kind: ``random``: tokens drawn at random, which nothing predicts; ``text``: passages of the
            held-out text, which a model partly predicts.
        tokens: Tokens of a canary, at the end of its window, after clean text. Not set: the whole
            window except the first token.
        references: Sequences of each trial that are drawn the same way and never planted.
        commonest: Draw random tokens uniformly from this many of the most frequent ones. Not set:
            from the whole vocabulary.
    """

    kind: Annotated[str, one_of(SEQUENCES)] = "random"
    tokens: Count | None = None
    references: Count = 500
    commonest: Annotated[int, at_least(2)] | None = None


def sampling_faults(method: str, references: int) -> list[str]:
    """Return a fault if ranks are to be sampled, and from no references."""
    needed = method == "sampled" and references == 0
    return ["measure.method='sampled' needs measure.references"] if needed else []


@dataclass(frozen=True, kw_only=True)
class MeasureSettings(Section, name="measure"):
    """How exposure is measured, and the limit that the verdict is about.

    Attributes:
        method: ``exact``, ``sampled``, or ``auto``: exact where ``max_nodes`` allows it.
        references: Secrets sampled for the histogram and for sampled exposure.
        max_nodes: Largest number of nodes of the search for a rank, and of each extraction.
        top: Secrets to extract from each model.
        limit: Bits that the exposure of a judged canary must stay below.
        judged: Judge canaries planted at most this many times. Not set: those planted least often.
        share: Share of such canaries that may reach the limit; a PASS then shows with 95 %
            confidence that no more do. Not set: none of the judged ones may, and a PASS states the
            share that this bounds.
    """

    method: Annotated[str, one_of(METHODS)] = "auto"
    references: FromZero = 10_000
    max_nodes: Count = 2_000_000
    top: Count = 3
    limit: Bits = 10.0
    judged: Count | None = None
    share: Share | None = added_later(None)

    def _contradictions(self) -> list[str]:
        return sampling_faults(self.method, self.references)
