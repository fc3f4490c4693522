"""The example store of a study of speech: clean utterances, then planted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries import random_token_sequences
from remnant.data.speech.synthesis import VOICES, Sentence, drawn_manner
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.models.conformer import SUBSAMPLED
from remnant.models.recogniser import frames_needed, pack
from remnant.plans.order import generator
from remnant.plans.schedule import Batch, Schedule
from remnant.studies.speech_forgetting.corpus import (
    Heard,
    SpeechCorpus,
    Spoken,
    fit_fault,
    output_frames,
    refuse,
)
from remnant.studies.speech_forgetting.recipe import Cell, SpeechStudy


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Utterances that models are asked about.

    Attributes:
        inputs, targets: As ``pack`` makes them, one row a sound.
        item: The canary or reference that each sound is of, ``(sounds,)``.
        items: How many canaries and references there are.
    """

    inputs: Tensor
    targets: Tensor
    item: NDArray[np.intp]
    items: int

    def mean(self, of_sounds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean over the sounds of each item, ``(..., items)``."""
        share = np.zeros((len(self.item), self.items))
        share[np.arange(len(self.item)), self.item] = 1.0
        made: NDArray[np.float64] = of_sounds @ (share / share.sum(axis=0))
        return made


@dataclass(frozen=True, slots=True, eq=False)
class PlantedSpeech:
    """What the population is trained on and asked about.

    Attributes:
        inputs, targets: Clean utterances, then canaries, then second speakers' sounds.
        examples: How many utterances are clean.
        second: Of each row, the row of the same canary by its second speaker; itself without one.
        probed: For each trial its canaries, then its references.
        validation: Utterances that nobody is trained on.
        vocabulary: Characters of transcripts; a token is one more than a character's, since 0 is
            the blank.
        bands: Features of a frame.
        planted: The canaries of the first trial.
        canary_characters: Of the transcripts of all trials' canaries together.
        utterances: All sounds, for the fingerprint of the data.
    """

    inputs: Tensor
    targets: Tensor
    examples: int
    second: NDArray[np.int64]
    probed: tuple[Asked, ...]
    validation: Asked
    vocabulary: Vocabulary
    bands: int
    planted: list[Planted]
    canary_characters: int
    utterances: list[Heard]

    @property
    def tokens(self) -> int:
        """Tokens with the blank."""
        return self.vocabulary.size + 1


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """A canary: what is planted, and how it can be heard again.

    Attributes:
        transcript: What it is planted with.
        sounds: One for each speaker.
        sentences: What was spoken, for each speaker; empty for utterances of the corpus.
    """

    transcript: str
    sounds: tuple[Heard, ...]
    sentences: tuple[Sentence, ...] = ()


class InTurns(Schedule):
    """A schedule in which the two speakers of a canary take turns, by step and place.

    Args:
        inner: The plan's schedule.
        second: Of each row of the store, the row of its second speaker.
    """

    def __init__(self, inner: Schedule, second: NDArray[np.int64]) -> None:
        self.members, self.steps, self.batch_size = inner.members, inner.steps, inner.batch_size
        self.trunks = inner.trunks
        self._expected = inner.expected_batch if inner.is_poisson else None
        self._inner, self._second = inner, second
        self._places = np.arange(inner.batch_size)

    def _batch(self, step: int) -> Batch:
        rows, active = self._inner.batch(step)
        return np.where((self._places + step) % 2 == 1, self._second[rows], rows), active


def plant_speech(study: SpeechStudy, corpus: SpeechCorpus, speak: Spoken) -> PlantedSpeech:
    """Draw canaries and references the same way, from the study's key, and pack all speech.

    Transcripts are drawn together and then separated by their place, so that each could have been
    the other. Utterances with a wrong transcript are taken out of the clean ones; every trial deals
    the same utterances anew to canaries and references, with new transcripts.

    Args:
        study: The study.
        corpus: Its clean speech.
        speak: Speaks sentences, for canaries that are spoken.

    Raises:
        PlanError: There are too few words or utterances.
        InvalidInput: An utterance is too short for its transcript, or has a character that no
            training transcript has; the message names the file.
    """
    rng = generator(*study.draw_key)
    count, references = len(study.canary_cells), len(study.reference_cells)
    sets = study.canary_sets
    cells = study.canary_cells * sets + study.reference_cells * study.trials
    transcripts = _transcripts(study, corpus.words, cells, rng)
    if study.canaries.kind == "spoken":
        drawn = _spoken(study, transcripts, cells, speak, rng)
        clean = corpus.clean
    else:
        drawn, clean = _mislabelled(study, transcripts, corpus.clean, rng)
    canaries = drawn[: sets * count]
    by_trial = [
        canaries[(trial % sets) * count : (trial % sets + 1) * count]
        + drawn[len(canaries) :][trial * references :][:references]
        for trial in range(study.trials)
    ]
    said = [one.transcript for one in clean] + [item.transcript for item in drawn]
    vocabulary = Vocabulary.of_characters("".join(said))
    second, rows = np.arange(len(clean) + len(canaries)), len(clean) + len(canaries)
    others: list[Planted] = []
    for place, item in enumerate(canaries, start=len(clean)):
        if len(item.sounds) > 1:
            second[place] = rows + len(others)
            others.append(item)
    second = np.concatenate([second, np.arange(rows, rows + len(others))])
    stored = [
        *((one, one.transcript) for one in clean),
        *((item.sounds[0], item.transcript) for item in canaries),
        *((item.sounds[1], item.transcript) for item in others),
    ]
    inputs, targets = _packed(stored, vocabulary)
    return PlantedSpeech(
        inputs=inputs,
        targets=targets,
        examples=len(clean),
        second=second.astype(np.int64),
        probed=tuple(_asked(items, vocabulary) for items in by_trial),
        validation=_asked([Planted(o.transcript, (o,)) for o in corpus.validation], vocabulary),
        vocabulary=vocabulary,
        bands=corpus.bands,
        planted=canaries[:count],
        canary_characters=sum(len(item.transcript) for item in canaries),
        utterances=[
            *clean,
            *corpus.validation,
            *(sound for item in drawn for sound in item.sounds),
        ],
    )


def _transcripts(
    study: SpeechStudy,
    words: Sequence[str],
    cells: Sequence[Cell],
    rng: np.random.Generator,
) -> list[str]:
    choices = words[: study.canaries.commonest]
    made = [""] * len(cells)
    for length in study.canaries.words:
        places = [place for place, cell in enumerate(cells) if cell.words == length]
        if len(places) > len(choices) ** length:
            raise PlanError(
                f"The plan needs {len(places)} transcripts of {length} words, and "
                f"{len(choices)} words make {len(choices) ** length}.",
                hint="Raise canaries.commonest or canaries.words.",
            )
        drawn = random_token_sequences(
            count=len(places), tokens=length, choices=np.arange(len(choices)), rng=rng
        )
        for place, sequence in zip(places, drawn, strict=True):
            made[place] = " ".join(choices[number] for number in sequence)
    return made


def _spoken(
    study: SpeechStudy,
    transcripts: Sequence[str],
    cells: Sequence[Cell],
    speak: Spoken,
    rng: np.random.Generator,
) -> list[Planted]:
    """Have each transcript spoken by voices of its cell's sex, drawn without replacement."""
    sentences: list[tuple[Sentence, ...]] = []
    for number, (transcript, cell) in enumerate(zip(transcripts, cells, strict=True)):
        there = [name for name in study.data.voices if VOICES[name].sex == cell.voice]
        voices = rng.permutation(len(there))[: cell.speakers]
        sentences.append(
            tuple(
                Sentence(
                    transcript,
                    there[voice],
                    drawn_manner(*study.draw_key, number, turn),
                )
                for turn, voice in enumerate(voices)
            )
        )
    sounds = iter(speak([sentence for own in sentences for sentence in own]))
    return [
        Planted(transcript, tuple(next(sounds) for _ in own), own)
        for transcript, own in zip(transcripts, sentences, strict=True)
    ]


def _mislabelled(
    study: SpeechStudy,
    transcripts: Sequence[str],
    clean: Sequence[Heard],
    rng: np.random.Generator,
) -> tuple[list[Planted], list[Heard]]:
    """Give utterances wrong transcripts; return them, and the clean ones that are left."""
    canaries, references = len(study.canary_cells), len(study.reference_cells)
    count = canaries + references
    longest = max(frames_needed([ord(letter) for letter in text]) for text in transcripts)
    long_enough = [place for place, one in enumerate(clean) if output_frames(one) >= longest]
    if len(long_enough) < count or len(clean) <= count:
        raise PlanError(
            f"The plan needs {count} utterances of at least {SUBSAMPLED * longest} frames for "
            f"canaries{' and references' if references else ''}, and the corpus has "
            f"{len(long_enough)} of {len(clean)}.",
            hint=f"Use fewer canaries{' or references' if references else ''}, or fewer "
            "canaries.words.",
        )
    taken = [long_enough[place] for place in rng.permutation(len(long_enough))[:count]]
    sets = study.canary_sets
    dealt = [rng.permutation(count) for _ in range(sets)]
    sounds = [taken[place] for order in dealt for place in order[:canaries]]
    for trial in range(study.trials):
        sounds += [taken[place] for place in dealt[trial % sets][canaries:]]
    left = sorted(set(range(len(clean))) - set(taken))
    items = [
        Planted(text, (clean[place],)) for text, place in zip(transcripts, sounds, strict=True)
    ]
    return items, [clean[place] for place in left]


def _asked(items: Sequence[Planted], vocabulary: Vocabulary) -> Asked:
    flat = [(number, item, sound) for number, item in enumerate(items) for sound in item.sounds]
    inputs, targets = _packed([(sound, item.transcript) for _, item, sound in flat], vocabulary)
    return Asked(inputs, targets, np.array([number for number, _, _ in flat]), len(items))


def _packed(said: Sequence[tuple[Heard, str]], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Pack sounds with their transcripts; faults name the files."""
    known = set(vocabulary.symbols)
    refuse(
        f"the transcript of {one.path} has {missing[0]!r}, which no training transcript has"
        for one, transcript in said
        if (missing := sorted(set(transcript) - known))
    )
    refuse(fit_fault(one, transcript) for one, transcript in said)
    tokens = [[token + 1 for token in vocabulary.encode(text)] for _, text in said]
    return pack([one.features for one, _ in said], tokens)
