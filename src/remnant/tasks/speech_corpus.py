"""The speech of a study: synthetic sentences, AN4, FSDD, or the user's own files, as features."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from remnant.data import load_corpus
from remnant.data.own_files import Origin
from remnant.data.speech.an4 import read_an4
from remnant.data.speech.fsdd import read_fsdd, spoken_numbers
from remnant.data.speech.log_mel import STEP_SECONDS, log_mel, normalised
from remnant.data.speech.spoken_folder import SpokenFolder, sentences_of, speak_folder
from remnant.data.speech.synthesis import (
    Sentence,
    check_voices,
    commonest_words,
    drawn_manner,
    drawn_sentences,
    passages,
    spoken,
    spoken_words,
)
from remnant.data.speech.utterance import Utterance
from remnant.data.speech.wav import TABLES, read_wav_folder
from remnant.errors import InvalidInput, PlanError, RemnantError, require
from remnant.models.conformer_ctc import SUBSAMPLED
from remnant.models.recogniser import frames_needed
from remnant.plans.schedule import generator
from remnant.progress import Progress
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.speech_settings import (
    AN4,
    FSDD,
    SYNTHETIC,
    SpeechDataSettings,
)

CACHE = "speech"
_SHOWN = 3  # faults that are listed
_FRAMES_A_LETTER = 9  # of synthetic voices, about; for estimates
_SECONDS_A_SENTENCE = 0.04  # of a synthesizer, on one core
_UTTERANCES = 300  # synthetic ones, if no number is given
_CLEAN, _HELD_OUT, _SPLIT = range(3)  # keys of what is drawn
Spoken = Callable[[Sequence[Sentence]], "list[Heard]"]


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """An utterance as a recogniser takes it.

    Attributes:
        path: The file that it was read from.
        transcript: What was said, in small letters.
        features: ``[frames, bands]``, each band with mean 0 and deviation 1.
    """

    path: Path
    transcript: str
    features: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class SpeechCorpus:
    """The clean speech of a study.

    Attributes:
        clean: Utterances to train on, and of which wrong ones are made.
        validation: Utterances that nobody is trained on.
        words: Those of the corpus or, of synthetic speech, of its text, the commonest first;
            canaries are made of them.
        origin: The user's own files; None for other speech.
    """

    clean: list[Heard]
    validation: list[Heard]
    words: tuple[str, ...]
    origin: Origin | None = None

    @property
    def bands(self) -> int:
        """Features of a frame."""
        return int(self.clean[0].features.shape[1])


def cache_folder(execution: Execution) -> Path:
    """Return where spoken sentences are kept.

    It is ``speech`` in the data folder or, without one, in the user's folder for caches. Sentences
    that are there are not spoken again, also after a run that was interrupted.
    """
    if execution.data_folder is not None:
        return execution.data_folder / CACHE
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "remnant" / CACHE


def speaker(
    settings: SpeechDataSettings,
    execution: Execution,
    progress: Callable[[int, int], None] | None = None,
) -> Spoken:
    """Return what turns sentences into utterances: synthesizers and the cache."""

    def speak(sentences: Sequence[Sentence]) -> list[Heard]:
        folder = cache_folder(execution)
        made = spoken(sentences, folder, progress=progress)
        return [heard(utterance, settings.bands) for utterance in made]

    return speak


def imagined(settings: SpeechDataSettings) -> Spoken:
    """Return what makes noise of about the right length of sentences, to time a study by."""

    def speak(sentences: Sequence[Sentence]) -> list[Heard]:
        noise = torch.Generator().manual_seed(0)
        return [
            Heard(
                Path(sentence.name),
                sentence.text,
                torch.randn(
                    _FRAMES_A_LETTER * len(sentence.text) + 20, settings.bands, generator=noise
                ),
            )
            for sentence in sentences
        ]

    return speak


def counting(speak: Spoken, execution: Execution, missing: set[str]) -> Spoken:
    """Return what speaks sentences and notes the names of those that are not kept yet.

    Args:
        speak: Speaks them.
        execution: Where spoken sentences are kept.
        missing: Gets the names.
    """
    cache = cache_folder(execution)

    def counted(sentences: Sequence[Sentence]) -> list[Heard]:
        missing.update(one.name for one in sentences if not (cache / one.name).is_file())
        return speak(sentences)

    return counted


def speaking_seconds(sentences: int) -> float:
    """Return about how long synthesizers take for some sentences, on all cores."""
    return _SECONDS_A_SENTENCE * sentences / (os.cpu_count() or 1)


def speaking(progress: Progress | None) -> Callable[[int, int], None] | None:
    """Return the progress callback of the stage in which sentences are spoken."""
    return None if progress is None else lambda done, of: progress("speech", done, of)


def load_speech(settings: SpeechDataSettings, execution: Execution, speak: Spoken) -> SpeechCorpus:
    """Load the speech that a recipe names.

    Args:
        settings: Which.
        execution: Where files are.
        speak: Speaks sentences, of synthetic speech.

    Raises:
        InvalidInput: A file is missing, damaged, or not sound of one channel; the message names it.
        MissingExtra: A synthesizer is not installed.
        PlanError: There are too few utterances, or files are asked for without a folder.
    """
    if settings.name == SYNTHETIC:
        return _synthetic(settings, execution, speak)
    if settings.name == AN4:
        return _an4(settings, execution)
    if settings.name == FSDD:
        return _fsdd(settings, execution)
    return _own(settings, execution)


def _synthetic(settings: SpeechDataSettings, execution: Execution, speak: Spoken) -> SpeechCorpus:
    corpus = load_corpus(
        settings.text,
        folder=execution.data_folder,
        characters=settings.characters,
        seed=settings.seed,
    )
    there = spoken_words(corpus.train)
    choices = commonest_words(there)
    counts = {_CLEAN: settings.utterances or _UTTERANCES, _HELD_OUT: settings.validation}
    parts = []
    for part, count in counts.items():
        rng = generator(settings.seed, part)
        if settings.sentences == "words":
            texts = drawn_sentences(
                choices[: settings.commonest], count=count, words=settings.words, rng=rng
            )
        else:
            source = there if part == _CLEAN else spoken_words(corpus.validation)
            texts = passages(source, count=count, words=settings.words, rng=rng)
        voices = rng.integers(len(settings.voices), size=count)
        parts.append(
            [
                Sentence(text, settings.voices[voice], drawn_manner(settings.seed, part, number))
                for number, (text, voice) in enumerate(zip(texts, voices, strict=True))
            ]
        )
    made = speak([sentence for part in parts for sentence in part])
    first = len(parts[0])
    clean = _short_enough(settings, made[:first])
    return SpeechCorpus(clean, made[first:], tuple(choices))


def _an4(settings: SpeechDataSettings, execution: Execution) -> SpeechCorpus:
    folder = _named_folder(settings, execution, "etc and feat")
    clean, validation = (
        [heard(utterance, settings.bands) for utterance in read_an4(folder, part)]
        for part in ("train", "test")
    )
    return _corpus(settings, clean, validation, None)


def _fsdd(settings: SpeechDataSettings, execution: Execution) -> SpeechCorpus:
    """Numbers of all speakers but the last one, whose numbers are to judge by."""
    folder = _named_folder(settings, execution, "recordings")
    rng = generator(settings.seed, _SPLIT)
    numbers = spoken_numbers(read_fsdd(folder), digits=settings.words, rng=rng)
    last = max((number.speaker for number in numbers), default="")
    clean, validation = (
        [
            heard(number, settings.bands)
            for number in numbers
            if (number.speaker == last) == held_out
        ]
        for held_out in (False, True)
    )
    if not clean:
        raise PlanError(
            f"{folder} has no numbers of {settings.words} digits by two speakers.",
            hint="Give the whole data set, or fewer data.words.",
        )
    return _corpus(settings, clean, validation, None)


def _named_folder(settings: SpeechDataSettings, execution: Execution, has: str) -> Path:
    if execution.data_folder is None:
        raise PlanError(
            f'data.name="{settings.name}" is read from files, and no folder was given.',
            hint=f"Pass --data FOLDER; the folder {settings.name} in it has {has}.",
        )
    return execution.data_folder / settings.name


def _own(settings: SpeechDataSettings, execution: Execution) -> SpeechCorpus:
    def read(path: Path) -> tuple[list[Heard], list[Path]]:
        utterances = read_wav_folder(path)
        tables = [path / name for name in TABLES if (path / name).is_file()]
        made = [heard(utterance, settings.bands) for utterance in utterances]
        return made, [*tables, *dict.fromkeys(utterance.path for utterance in utterances)]

    clean, validation, origin = execution.own_files(settings).read(read)
    if validation is None:
        if len(clean) <= settings.validation:
            raise PlanError(
                f"{settings.path} has {len(clean)} utterances, and data.validation="
                f"{settings.validation} of them are held out.",
                hint="Hold out fewer, or give data.held_out.",
            )
        order = generator(settings.seed, _SPLIT).permutation(len(clean))
        validation = [clean[place] for place in order[: settings.validation]]
        clean = [clean[place] for place in np.sort(order[settings.validation :])]
    return _corpus(settings, clean, validation, origin)


def _corpus(
    settings: SpeechDataSettings,
    clean: list[Heard],
    validation: list[Heard],
    origin: Origin | None,
) -> SpeechCorpus:
    clean = _short_enough(settings, clean)
    if settings.utterances is not None:
        if settings.utterances > len(clean):
            raise PlanError(
                f"data.utterances={settings.utterances}, and {settings.title} has {len(clean)}.",
                hint="Ask for fewer, or leave data.utterances out.",
            )
        order = generator(settings.seed, _CLEAN).permutation(len(clean))
        clean = [clean[place] for place in np.sort(order[: settings.utterances])]
    refuse(fit_fault(one, one.transcript) for one in (*clean, *validation))
    words = commonest_words(word for one in clean for word in one.transcript.split())
    return SpeechCorpus(clean, validation, tuple(words), origin)


def _short_enough(settings: SpeechDataSettings, clean: list[Heard]) -> list[Heard]:
    if settings.seconds is None:
        return clean
    most = settings.seconds / STEP_SECONDS
    kept = [one for one in clean if len(one.features) <= most]
    if not kept:
        raise PlanError(
            f"{settings.title} has no utterance of at most data.seconds={settings.seconds:g}.",
            hint="Raise data.seconds, or leave it out.",
        )
    return kept


def fit_fault(one: Heard, transcript: str) -> str | None:
    """Return what is wrong where a sound is too short for a transcript; None where it fits."""
    # Which tokens characters become matters for repeated ones alone, so any numbers will do.
    needed = frames_needed([ord(letter) for letter in transcript])
    if needed <= output_frames(one):
        return None
    return (
        f"{one.path} is too short for its transcript: {len(one.features)} frames, and it needs "
        f"{SUBSAMPLED * needed}"
    )


def output_frames(one: Heard) -> int:
    """Return the frames of a recogniser's output."""
    return -(-len(one.features) // SUBSAMPLED)


def refuse(faults: Iterable[str | None]) -> None:
    """Refuse utterances that have faults; the first few are listed.

    Raises:
        InvalidInput: There is a fault.
    """
    found = [fault for fault in faults if fault is not None]
    more = len(found) - _SHOWN
    listed = [*found[:_SHOWN], f"there are {more} more such faults"] if more > 0 else found
    require(listed, error=InvalidInput, hint="Leave these utterances out.")


def heard(utterance: Utterance, bands: int) -> Heard:
    """Return an utterance as features; ready-made ones are only normalised.

    Raises:
        InvalidInput: It is too short for one frame; the message names the file.
    """
    if utterance.sound.ndim == 2:
        features = torch.from_numpy(np.ascontiguousarray(utterance.sound))
    else:
        try:
            features = log_mel(utterance.sound, rate=utterance.rate, bands=bands)
        except RemnantError as fault:
            raise InvalidInput(f"{utterance.path}: {fault.message}", hint=fault.hint) from fault
    transcript = " ".join(utterance.transcript.lower().split())
    return Heard(utterance.path, transcript, normalised(features))


def make_folder(
    sentences: Path,
    folder: Path,
    *,
    voices: Sequence[str],
    seed: int,
    progress: Progress | None = None,
) -> SpokenFolder:
    """Speak the lines of a text file into a folder of WAV files; see ``speak_folder``."""
    check_voices(voices)
    lines = sentences_of(sentences, voices=voices, seed=seed)
    return speak_folder(lines, folder, progress=speaking(progress))


def speech_fingerprint(utterances: Iterable[Heard]) -> str:
    """Return a digest of transcripts and features, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for one in utterances:
        digest.update(one.transcript.encode() + b"\0")
        digest.update(np.ascontiguousarray(one.features.numpy()).tobytes())
    return digest.hexdigest()[:16]
