"""Speech that is made: sentences spoken by flite and espeak-ng, each file kept once it is made.

The same sentence, voice and seed give the same file. A sentence never stands on a command line,
where other users of the machine could see it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.speech.utterance import Utterance, check_sound
from remnant.data.speech.wav import RATE, read_wav, resampled
from remnant.errors import NO_ARRAYS, InvalidInput, MissingExtra, RecordError, require

_WORD = re.compile(r"(?<![a-z0-9_'])[a-z]{2,14}(?![a-z0-9_'])")


def spoken_words(text: str) -> list[str]:
    """Return the words of a text that a synthesizer can speak: 2 to 14 plain letters each.

    Example:
        >>> spoken_words("The 3 files, and their _names_; don't!")
        ['the', 'files', 'and', 'their']
    """
    return _WORD.findall(text.lower())


def commonest_words(words: Iterable[str], *, at_most: int | None = None) -> list[str]:
    """Return the different words, the commonest first, equally common ones sorted.

    Example:
        >>> commonest_words(["b", "a", "c", "c"], at_most=2)
        ['c', 'a']
    """
    counts = Counter(words)
    return sorted(counts, key=lambda word: (-counts[word], word))[:at_most]


def drawn_sentences(
    choices: Sequence[str], *, count: int, words: int, rng: np.random.Generator
) -> list[str]:
    """Draw sentences of so many words each, every word uniform over ``choices``.

    Raises:
        InvalidInput: There are fewer than two words to choose from.
    """
    if len(choices) < 2:
        raise InvalidInput(
            f"{len(choices)} words are too few to make sentences of.", hint="Use a longer text."
        )
    return [
        " ".join(choices[place] for place in row)
        for row in rng.integers(len(choices), size=(count, words))
    ]


def passages(
    text_words: Sequence[str], *, count: int, words: int, rng: np.random.Generator
) -> list[str]:
    """Draw passages of a text that do not overlap, so many consecutive words each.

    Raises:
        InvalidInput: The text is too short.
    """
    there = len(text_words) // words
    if count > there:
        raise InvalidInput(
            f"{count} passages of {words} words were asked for, and the text has {there}.",
            hint="Use a longer text, or fewer utterances.",
        )
    starts = rng.permutation(there)[:count] * words
    return [" ".join(text_words[first : first + words]) for first in starts]


SEXES = ("female", "male")
PACKAGES = {"flite": "flite", "espeak-ng": "espeak-ng"}
_SECONDS = 60.0  # a sentence that takes longer will not end
_AT_ONCE = 256  # sentences handed to the pool together, so that an error ends soon
_VERSION = 1  # moves when the same settings give other samples


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice of a synthesizer.

    Attributes:
        program: ``flite`` or ``espeak-ng``.
        name: What the program calls it.
        sex: ``female`` or ``male``.
        pitch: Its usual pitch, in the program's own unit.
    """

    program: str
    name: str
    sex: str
    pitch: float


VOICES = {
    "slt": Voice("flite", "slt", "female", 170.0),
    "rms": Voice("flite", "rms", "male", 95.0),
    "awb": Voice("flite", "awb", "male", 130.0),
    "kal16": Voice("flite", "kal16", "male", 105.0),
    **{f"en-us+f{n}": Voice("espeak-ng", f"en-us+f{n}", "female", 50.0) for n in range(1, 6)},
    **{f"en-us+m{n}": Voice("espeak-ng", f"en-us+m{n}", "male", 50.0) for n in range(1, 8)},
}


@dataclass(frozen=True, slots=True)
class Manner:
    """How a sentence is spoken.

    Attributes:
        speed: As a share of the voice's own.
        pitch: As a share of the voice's own.
        noise: Decibels by which the speech is louder than white noise added to it; ``None`` for
            none.
        seed: Of the noise.
    """

    speed: float = 1.0
    pitch: float = 1.0
    noise: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        faults = []
        if not 0.5 <= self.speed <= 2.0:
            faults.append(f"speed={self.speed} is not between 0.5 and 2")
        if not 0.5 <= self.pitch <= 2.0:
            faults.append(f"pitch={self.pitch} is not between 0.5 and 2")
        if self.noise is not None and not -20.0 <= self.noise <= 100.0:
            faults.append(f"noise={self.noise} is not between -20 and 100 decibels")
        require(faults, error=InvalidInput)


def drawn_manner(*key: int) -> Manner:
    """Draw how a sentence is spoken: speed and pitch within a tenth, 20 to 40 decibels of noise.

    Args:
        key: Whole numbers that determine the draw, such as a seed and the sentence's number.
    """
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(list(key))))
    speed, pitch = rng.uniform(0.9, 1.1, size=2)
    noise, seed = rng.uniform(20.0, 40.0), rng.integers(2**31)
    return Manner(round(float(speed), 3), round(float(pitch), 3), round(float(noise), 1), int(seed))


def check_voices(voices: Sequence[str]) -> None:
    """Refuse voices that are not known, and those whose program is not installed.

    Raises:
        InvalidInput: A voice is not known.
        MissingExtra: A synthesizer is not installed; the message says how to install it.
    """
    unknown = [name for name in voices if name not in VOICES]
    if unknown or not voices:
        raise InvalidInput(
            f"voices={','.join(unknown)} is not known." if unknown else "voices has no voice.",
            hint=f"Choose from {', '.join(VOICES)}.",
        )
    for program in dict.fromkeys(VOICES[name].program for name in voices):
        if shutil.which(program) is None:
            raise MissingExtra(
                f"The synthesizer {program} is not installed.",
                hint=f"Install it with: apt-get install {PACKAGES[program]}",
            )


def speak(text: str, voice: str, manner: Manner | None = None) -> NDArray[np.float32]:
    """Return a sentence as sound, 16 000 samples a second.

    Raises:
        InvalidInput: The text cannot be spoken, or the voice is not known.
        MissingExtra: The synthesizer is not installed.
    """
    check_voices([voice])
    if not any(letter.isalnum() for letter in text) or "\0" in text:
        raise InvalidInput(
            "A sentence without a letter or digit cannot be spoken.", hint="Leave it out."
        )
    manner = manner or Manner()
    with tempfile.TemporaryDirectory(prefix="remnant-speech-") as folder:
        said, made = Path(folder, "said.txt"), Path(folder, "made.wav")
        said.write_text(" ".join(text.split()) + "\n", encoding="utf-8")
        _run(_command(VOICES[voice], manner, said, made))
        sound, rate = read_wav(made)
    return _with_noise(resampled(sound, rate, RATE), manner)


def _command(voice: Voice, manner: Manner, said: Path, made: Path) -> list[str]:
    if voice.program == "flite":
        settings = {
            "duration_stretch": 1 / manner.speed,
            "int_f0_target_mean": voice.pitch * manner.pitch,
        }
        chosen = [f"{name}={value:.6g}" for name, value in settings.items()]
        options = [word for one in chosen for word in ("--setf", one)]
        return ["flite", "-voice", voice.name, *options, "-f", str(said), "-o", str(made)]
    speed, pitch = round(175 * manner.speed), min(99, round(voice.pitch * manner.pitch))
    options = ["-v", voice.name, "-s", str(speed), "-p", str(pitch)]
    return ["espeak-ng", *options, "-f", str(said), "-w", str(made)]


def _run(command: list[str]) -> None:
    try:
        ended = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as fault:
        raise InvalidInput(
            f"{command[0]} did not end within {_SECONDS:.0f} s.", hint="Give shorter sentences."
        ) from fault
    except OSError as fault:
        raise InvalidInput(f"{command[0]} cannot be started: {fault.strerror}.") from fault
    if ended.returncode:
        raise InvalidInput(
            f"{command[0]} failed with exit code {ended.returncode}.",
            hint="Check that the voice is installed.",
        )


def _with_noise(sound: NDArray[np.float32], manner: Manner) -> NDArray[np.float32]:
    if manner.noise is None:
        return sound
    rng = np.random.Generator(np.random.Philox(manner.seed))
    loudness = float(np.sqrt(np.mean(np.square(sound, dtype=np.float64))))
    added = rng.normal(0.0, loudness * 10 ** (-manner.noise / 20), size=len(sound))
    return np.asarray(sound + added, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is to be spoken, by whom, and how."""

    text: str
    voice: str
    manner: Manner = Manner()

    @property
    def name(self) -> str:
        """The name of its file: a digest of all that changes the sound."""
        manner = [self.manner.speed, self.manner.pitch, self.manner.noise, self.manner.seed]
        plain = json.dumps([_VERSION, self.text, self.voice, manner])
        return hashlib.sha256(plain.encode()).hexdigest()[:24] + ".npy"


def spoken(
    sentences: Sequence[Sentence],
    folder: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Utterance]:
    """Yield sentences as utterances, in order; those that the folder has are not spoken again.

    Args:
        sentences: To speak.
        folder: Where sound is kept. A run that was interrupted goes on where it was.
        workers: Synthesizers that run at once; one a core, if not given.
        progress: Called with the sentences done and those in all.

    Raises:
        InvalidInput: A sentence cannot be spoken; its number is in the message, its text is not.
        MissingExtra: A synthesizer is not installed.
        RecordError: The folder cannot be written.
    """
    missing = [some for some in sentences if not (folder / some.name).is_file()]
    if missing:
        check_voices(list(dict.fromkeys(some.voice for some in missing)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RecordError(f"{folder} cannot be made: {fault.strerror}.") from fault

    def ready(item: tuple[int, Sentence]) -> Utterance:
        number, sentence = item
        path = folder / sentence.name
        sound = _kept(path)
        if sound is None:
            try:
                sound = speak(sentence.text, sentence.voice, sentence.manner)
            except InvalidInput as fault:
                raise InvalidInput(
                    f"sentence {number}: {fault.message}", hint=fault.hint
                ) from fault
            _keep(path, sound)
        return Utterance(path, sentence.text, sentence.voice, sound, RATE)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        done = 0
        for first in range(0, len(sentences), _AT_ONCE):
            part = enumerate(sentences[first : first + _AT_ONCE], start=first)
            for made in pool.map(ready, part):
                done += 1
                if progress is not None:
                    progress(done, len(sentences))
                yield made


def _kept(path: Path) -> NDArray[np.float32] | None:
    """Return sound that was kept; None where there is none, or a file that is damaged."""
    try:
        with path.open("rb") as file:
            sound = np.load(file, allow_pickle=False)
    except NO_ARRAYS:
        return None
    if sound.dtype != np.float32 or sound.ndim != 1:
        return None
    check_sound(path, sound)
    return np.asarray(sound)


def _keep(path: Path, sound: NDArray[np.float32]) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, sound, allow_pickle=False)
        os.replace(name, path)
    except OSError as fault:
        Path(name).unlink(missing_ok=True)
        raise RecordError(
            f"{path.parent} cannot be written: {fault.strerror}.",
            hint="Make room, or choose another folder.",
        ) from fault
