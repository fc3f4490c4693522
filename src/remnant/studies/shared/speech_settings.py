"""The parts of studies of speech beside their plan: corpus, utterances to plant, and recogniser."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any

from remnant.data import STANDARD_LIBRARY
from remnant.data.own_files import FILES
from remnant.data.speech.synthesis import SEXES, VOICES
from remnant.models import RECOGNISERS as RECOGNISERS
from remnant.plans.bounds import (
    Bound,
    Count,
    FromZero,
    Positive,
    at_least,
    distinct_texts,
    one_of,
    text,
)
from remnant.studies.shared.settings import Section, TrainingSettings, option_faults
from remnant.studies.shared.study import SectionedStudy

SYNTHETIC, AN4, FSDD = "synthetic", "an4", "fsdd"
KINDS = ("spoken", "wrong")
_OTHER_SOUND = {  # which no synthesizer makes
    AN4: "AN4, which has features, not sound",
    FSDD: "FSDD, which has 8 000 samples a second",
}
SENTENCES = ("words", "text")
SPEAKERS = (1, 2)
_CHARACTERS = 400_000  # of the standard library, whose words are spoken


def _some_of(allowed: tuple[Any, ...], words: str) -> Bound:
    """Return the bound of lists of different values out of a few."""
    return Bound(
        words=f"a list of {words}",
        fits=lambda value: (
            isinstance(value, list | tuple)
            and len(value) > 0
            and all(any(part == known for known in allowed) for part in value)
            and len(set(value)) == len(value)
        ),
        stored=tuple,
        schema={"minItems": 1, "uniqueItems": True},
    )


@dataclass(frozen=True, kw_only=True)
class SpeechDataSettings(Section, name="data"):
    """Which speech the recognisers are trained on.

    Attributes:
        name: ``synthetic``: sentences that flite and espeak-ng speak; ``an4``: CMU's AN4, in the
            folder ``an4`` of ``--data``; ``fsdd``: the Free Spoken Digit Dataset, in the folder
            ``fsdd`` of ``--data``, its digits joined into numbers; ``files``: your own WAV files.
        path: With ``name = "files"``: a folder of WAV files with a ``metadata.csv`` or
            ``metadata.jsonl`` (fields ``file_name`` and ``transcription``), as ``remnant speech
            make`` writes. A relative path starts at ``--data``, or at the recipe's folder without
            it. Not set: another corpus.
        held_out: A second such folder to judge by. Not set: ``validation`` utterances of ``path``.
        utterances: Utterances to use; canaries and references with a wrong transcript are taken out
            of them. Not set: all that are there; 300 synthetic ones.
        seconds: Longest utterance to train on; longer ones are left out. Not set: any length.
        validation: Utterances to judge by, where the corpus has no part for it.
        text: Of synthetic speech, the text whose words are spoken: ``standard-library``, or a file
            in the data folder.
        sentences: Of synthetic speech: ``words``, drawn at random from the commonest ones;
            ``text``, passages of the text.
        words: Words of a synthetic sentence; digits of a number of ``fsdd``.
        commonest: With ``sentences = "words"``, how many of the text's commonest words are spoken.
        voices: Of synthetic speech, and of canaries that are spoken.
        bands: Log-mel bands of a frame. AN4 has its own features.
        seed: Determines sentences, voices and the manner of speaking.
    """

    name: Annotated[str, one_of((SYNTHETIC, AN4, FSDD, FILES))] = SYNTHETIC
    path: Annotated[str, text("a path")] | None = None
    held_out: Annotated[str, text("a path")] | None = None
    utterances: Count | None = None
    seconds: Positive | None = None
    validation: Count = 40
    text: Annotated[str, text("a name")] = STANDARD_LIBRARY
    sentences: Annotated[str, one_of(SENTENCES)] = "words"
    words: Count = 3
    commonest: Annotated[int, at_least(2)] = 20
    voices: Annotated[tuple[str, ...], distinct_texts("names of voices")] = (
        "slt",
        "en-us+f3",
        "rms",
        "awb",
    )
    bands: Count = 40
    seed: FromZero = 0

    def _contradictions(self) -> list[str]:
        unknown = [name for name in self.voices if name not in VOICES]
        if unknown:
            return [f"data.voices={','.join(unknown)} is not one of {', '.join(VOICES)}"]
        own = self.name == FILES
        if own and self.path is None:
            return [f'data.path is needed with data.name = "{FILES}"']
        given = [name for name in ("path", "held_out") if getattr(self, name) is not None]
        return [] if own else [f'data.{name} needs data.name = "{FILES}"' for name in given]

    @property
    def title(self) -> str:
        """The corpus in words: its name, or the path of the user's own files."""
        return self.name if self.path is None else self.path

    @property
    def characters(self) -> int | None:
        """Characters of the text whose words are spoken; None for a whole file."""
        return _CHARACTERS if self.text == STANDARD_LIBRARY else None


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of utterance.

    Attributes:
        words: Of the transcript.
        voice: ``female`` or ``male``; empty where the speakers are the corpus's own.
        speakers: How many speak it.
    """

    words: int
    voice: str
    speakers: int


@dataclass(frozen=True, kw_only=True)
class UtteranceSettings(Section, name="canaries"):
    """Which utterances are planted.

    Canaries are dealt in turn to all combinations of words, voices and speakers.

    Attributes:
        kind: ``spoken``: transcripts of random words that a synthesizer speaks; ``wrong``:
            utterances of the corpus with random words as their transcript.
        words: Words of a transcript, each number for as many canaries.
        commonest: Draw words uniformly from this many of the commonest words of the corpus (of
            synthetic speech: of its text). Not set: from all.
        voices: Of spoken canaries, ``female`` or ``male``.
        speakers: Of spoken canaries, how many speak each: 1, or 2 in turn, both of the same sex.
    """

    kind: Annotated[str, one_of(KINDS)] = "spoken"
    words: tuple[Count, ...] = (7, 10)
    commonest: Annotated[int, at_least(2)] | None = None
    voices: Annotated[tuple[str, ...], _some_of(SEXES, "female and male")] = SEXES
    speakers: Annotated[tuple[int, ...], _some_of(SPEAKERS, "1 and 2")] = SPEAKERS

    def _contradictions(self) -> list[str]:
        if not self.words or len(set(self.words)) < len(self.words):
            return [f"canaries.words={list(self.words)} is not a list of different numbers"]
        return []

    @property
    def cells(self) -> list[Cell]:
        """The kinds of utterances."""
        if self.kind == "wrong":
            return [Cell(words, "", 1) for words in self.words]
        return [
            Cell(words, voice, speakers)
            for words in self.words
            for voice in self.voices
            for speakers in self.speakers
        ]


@dataclass(frozen=True, kw_only=True)
class RecogniserSettings(Section, name="model"):
    """Which recogniser is trained.

    Attributes:
        name: Architecture.
        options: Its options, such as ``{ width = 32, layers = 2, heads = 2 }``.
    """

    name: Annotated[str, one_of(RECOGNISERS)] = "conformer"
    options: dict[str, Any] = field(default_factory=dict)

    def _contradictions(self) -> list[str]:
        build = RECOGNISERS[self.name]
        known = [name for name in build.options if name != "bands"]  # the data's
        unknown = [name for name in self.options if name not in known]
        faults = [
            f"model.options: {self.name} has no option {name!r}; it has {', '.join(known)}"
            for name in unknown
        ]
        return faults + option_faults(self.options, build)


class SpeechStudy(SectionedStudy):
    """A study that draws utterances, plants them, and trains recognisers.

    Attributes:
        plan: Who hears what, and when.
        attack: How success is measured.
        data, canaries, model, training: The sections of its recipe.
    """

    plan: Any
    attack: Any
    data: SpeechDataSettings
    canaries: UtteranceSettings
    model: RecogniserSettings
    training: TrainingSettings

    @property
    @abstractmethod
    def draw_key(self) -> tuple[int, ...]:
        """The key of everything that is drawn for canaries and references."""

    @property
    @abstractmethod
    def canary_cells(self) -> list[Cell]:
        """The kind of each canary of a set."""

    @property
    def reference_cells(self) -> list[Cell]:
        """The kind of each reference of a trial."""
        return []

    @property
    def neighbour_cells(self) -> list[Cell]:
        """The kind of each neighbour of a trial, to relearn from."""
        return []

    @property
    def trials(self) -> int:
        """How many trials there are, each with references of its own."""
        return 1

    @property
    def canary_sets(self) -> int:
        """How many sets of canaries there are: one a trial, or one for all trials."""
        return 1

    def canary_faults(self) -> list[str]:
        """Return what is wrong with spoken canaries beside this speech."""
        if self.canaries.kind != "spoken":
            return []
        faults = []
        if self.data.name in _OTHER_SOUND:
            faults.append(f'canaries.kind="spoken" does not fit {_OTHER_SOUND[self.data.name]}')
        there = Counter(VOICES[name].sex for name in self.data.voices)
        return faults + [
            f"data.voices has {there[sex]} {sex} voices, and canaries.speakers needs {needed}"
            for sex in self.canaries.voices
            if there[sex] < (needed := max(self.canaries.speakers))
        ]
