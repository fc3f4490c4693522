"""The example store of a study of speech: clean utterances, then planted ones."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries import random_token_sequences
from remnant.data.speech.synthesis import VOICES, Sentence, drawn_manner
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.models.conformer_ctc import SUBSAMPLED
from remnant.models.recogniser import frames_needed, pack
from remnant.plans.schedule import Batch, Schedule, generator
from remnant.studies.shared.speech_settings import (
    Cell,
    SpeechStudy,
)
from remnant.studies.shared.wording import listed
from remnant.tasks.speech_corpus import (
    Heard,
    SpeechCorpus,
    Spoken,
    fit_fault,
    output_frames,
    refuse,
)


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
        neighbours: Utterances to relearn from; None unless they were asked for.
    """

    inputs: Tensor
    targets: Tensor
    examples: int
    second: NDArray[np.int64]
    probed: tuple[Asked, ...]
    validation: Asked
    vocabulary: Vocabulary
    bands: int
    planted: list[PlantedUtterance]
    canary_characters: int
    utterances: list[Heard]
    neighbours: Neighbours | None = None

    @property
    def tokens(self) -> int:
        """Tokens with the blank."""
        return self.vocabulary.size + 1


@dataclass(frozen=True, slots=True, eq=False)
class PlantedUtterance:
    """A canary: what is planted, and how it can be heard again.

    Attributes:
        transcript: What it is planted with.
        sounds: One for each speaker.
        sentences: What was spoken, for each speaker; empty for utterances of the corpus.
    """

    transcript: str
    sounds: tuple[Heard, ...]
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Utterances drawn like canaries and references that are neither planted nor asked about.

    Attributes:
        inputs, targets: Those of each trial, trial by trial, then second speakers' sounds.
        second: As in ``PlantedSpeech``.
        each: Of a trial.
    """

    inputs: Tensor
    targets: Tensor
    second: NDArray[np.int64]
    each: int


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
    the same utterances anew to canaries and references, with new transcripts. Neighbours are
    further draws of the same kind; where transcripts are wrong, utterances of their own are taken
    out for them.

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
    near_cells = study.neighbour_cells * study.trials
    transcripts, near_transcripts = _transcripts(study, corpus.words, cells, near_cells, rng)
    if study.canaries.kind == "spoken":
        drawn = _spoken(study, transcripts, cells, speak, rng)
        other = generator(*study.draw_key, 1)
        near = (
            _spoken(study, near_transcripts, near_cells, speak, other, first=len(cells))
            if near_cells
            else []
        )
        clean = corpus.clean
    else:
        drawn, near, clean = _mislabelled(study, transcripts, near_transcripts, corpus.clean, rng)
    canaries = drawn[: sets * count]
    by_trial = [
        canaries[(trial % sets) * count : (trial % sets + 1) * count]
        + drawn[len(canaries) :][trial * references :][:references]
        for trial in range(study.trials)
    ]
    said = [one.transcript for one in clean] + [item.transcript for item in drawn + near]
    vocabulary = Vocabulary.of_characters("".join(said))
    stored, second = _in_rows(
        [PlantedUtterance(one.transcript, (one,)) for one in clean] + canaries
    )
    inputs, targets = _packed(stored, vocabulary)
    return PlantedSpeech(
        inputs=inputs,
        targets=targets,
        examples=len(clean),
        second=second,
        probed=tuple(_asked(items, vocabulary) for items in by_trial),
        validation=_asked(
            [PlantedUtterance(o.transcript, (o,)) for o in corpus.validation], vocabulary
        ),
        vocabulary=vocabulary,
        bands=corpus.bands,
        planted=canaries[:count],
        canary_characters=sum(len(item.transcript) for item in canaries),
        utterances=[
            *clean,
            *corpus.validation,
            *(sound for item in drawn + near for sound in item.sounds),
        ],
        neighbours=_neighbours(near, vocabulary, len(study.neighbour_cells)) if near else None,
    )


def _in_rows(
    items: Sequence[PlantedUtterance],
) -> tuple[list[tuple[Heard, str]], NDArray[np.int64]]:
    """Return sounds and transcripts, second speakers' behind all others, and where they are."""
    others = [place for place, item in enumerate(items) if len(item.sounds) > 1]
    second = np.arange(len(items) + len(others))
    second[others] = len(items) + np.arange(len(others))
    rows = [(item.sounds[0], item.transcript) for item in items]
    rows += [(items[place].sounds[1], items[place].transcript) for place in others]
    return rows, second.astype(np.int64)


def _neighbours(items: Sequence[PlantedUtterance], vocabulary: Vocabulary, each: int) -> Neighbours:
    rows, second = _in_rows(items)
    inputs, targets = _packed(rows, vocabulary)
    return Neighbours(inputs, targets, second, each)


def _transcripts(
    study: SpeechStudy,
    words: Sequence[str],
    cells: Sequence[Cell],
    near_cells: Sequence[Cell],
    rng: np.random.Generator,
) -> tuple[list[str], list[str]]:
    """Draw a transcript for each cell, and then for each cell of a neighbour; no two are alike."""
    choices = words[: study.canaries.commonest]
    made = [""] * (len(cells) + len(near_cells))
    for length in study.canaries.words:
        every = enumerate([*cells, *near_cells])
        places = [place for place, cell in every if cell.words == length]
        planned = sum(cell.words == length for cell in cells)
        if len(places) > len(choices) ** length:
            raise PlanError(
                f"The plan needs {len(places)} transcripts of {length} words, and "
                f"{len(choices)} words make {len(choices) ** length}.",
                hint="Raise canaries.commonest or canaries.words.",
            )
        # A longer draw from an equal generator begins with the shorter one, so that neighbours
        # leave the others as they are.
        numbers, equal = np.arange(len(choices)), copy.deepcopy(rng)
        random_token_sequences(count=planned, tokens=length, choices=numbers, rng=rng)
        drawn = random_token_sequences(count=len(places), tokens=length, choices=numbers, rng=equal)
        for place, sequence in zip(places, drawn, strict=True):
            made[place] = " ".join(choices[number] for number in sequence)
    return made[: len(cells)], made[len(cells) :]


def _spoken(
    study: SpeechStudy,
    transcripts: Sequence[str],
    cells: Sequence[Cell],
    speak: Spoken,
    rng: np.random.Generator,
    *,
    first: int = 0,
) -> list[PlantedUtterance]:
    """Have each transcript spoken by voices of its cell's sex, drawn without replacement.

    Args:
        study, transcripts, cells, speak, rng: What is spoken, and who draws the voices.
        first: Number of the first transcript; each number has its own manner of speaking.
    """
    sentences: list[tuple[Sentence, ...]] = []
    for number, (transcript, cell) in enumerate(zip(transcripts, cells, strict=True), start=first):
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
        PlantedUtterance(transcript, tuple(next(sounds) for _ in own), own)
        for transcript, own in zip(transcripts, sentences, strict=True)
    ]


def _mislabelled(
    study: SpeechStudy,
    transcripts: Sequence[str],
    near_transcripts: Sequence[str],
    clean: Sequence[Heard],
    rng: np.random.Generator,
) -> tuple[list[PlantedUtterance], list[PlantedUtterance], list[Heard]]:
    """Give utterances wrong transcripts; return them, neighbours, and the clean ones left."""
    canaries, references = len(study.canary_cells), len(study.reference_cells)
    count, neighbours = canaries + references, len(study.neighbour_cells)
    whole = count + neighbours
    every = [*transcripts, *near_transcripts]
    longest = max(frames_needed([ord(letter) for letter in text]) for text in every)
    long_enough = [place for place, one in enumerate(clean) if output_frames(one) >= longest]
    if len(long_enough) < whole or len(clean) <= whole:
        named = {"canaries": canaries, "references": references, "neighbours": neighbours}
        there = [name for name, many in named.items() if many]
        raise PlanError(
            f"The plan needs {whole} utterances of at least {SUBSAMPLED * longest} frames for "
            f"{listed(there)}, and the corpus has {len(long_enough)} of {len(clean)}.",
            hint=f"Use fewer {listed(there, 'or')}, or fewer canaries.words.",
        )
    taken = [long_enough[place] for place in rng.permutation(len(long_enough))[:whole]]
    sets = study.canary_sets
    dealt = [rng.permutation(count) for _ in range(sets)]
    sounds = [taken[place] for order in dealt for place in order[:canaries]]
    for trial in range(study.trials):
        sounds += [taken[place] for place in dealt[trial % sets][canaries:]]
    sounds += taken[count:] * study.trials
    left = sorted(set(range(len(clean))) - set(taken))
    items = [
        PlantedUtterance(text, (clean[place],)) for text, place in zip(every, sounds, strict=True)
    ]
    cut = len(transcripts)
    return items[:cut], items[cut:], [clean[place] for place in left]


def _asked(items: Sequence[PlantedUtterance], vocabulary: Vocabulary) -> Asked:
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
