"""A folder of WAV files and their transcripts, made by synthesizers from lines of text."""

from __future__ import annotations

import csv
import io
import os
import tempfile
import wave
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.speech.synthesis import Sentence, check_voices, drawn_manner, speak
from remnant.data.speech.wav import RATE, read_wav
from remnant.data.text import read_text
from remnant.errors import InvalidInput, RecordError, write_error

TABLE = "metadata.csv"
_FULL = 2**15 - 1
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class SpokenFolder:
    """What was made.

    Attributes:
        utterances: Files in the table.
        spoken: Those that were not there before.
        seconds: Length of all of them together.
    """

    utterances: int
    spoken: int
    seconds: float


def sentences_of(path: Path, *, voices: Sequence[str], seed: int) -> list[Sentence]:
    """Read a text file, one sentence a line, and draw a voice and a manner for each.

    Blank lines are left out; a line's voice depends on its number and the seed alone.

    Raises:
        InvalidInput: The file cannot be read, or a line has no letter or digit; its number is in
            the message.
    """
    made = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = " ".join(line.split())
        if not text:
            continue
        if not any(letter.isalnum() for letter in text):
            raise InvalidInput(
                f"{path}, line {number} has no letter or digit and cannot be spoken.",
                hint="Leave the line out.",
            )
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))
        voice = voices[int(rng.integers(len(voices)))]
        made.append(Sentence(text, voice, drawn_manner(seed, number)))
    return made


def speak_folder(
    sentences: Sequence[Sentence],
    folder: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SpokenFolder:
    """Speak sentences into a folder that ``read_wav_folder`` reads.

    A file lies in a folder of its voice, and is named by a digest of what is said and how. Files
    that are there and whole are not spoken again; the table is written last. Only the owner can
    read the files.

    Args:
        sentences: To speak.
        folder: New, or one that was made from the same sentences, perhaps not to the end.
        workers: Synthesizers that run at once; one a core, if not given.
        progress: Called with the sentences done and those in all.

    Raises:
        InvalidInput: A sentence cannot be spoken, or the folder has a table of other sentences.
        MissingExtra: A synthesizer is not installed.
        RecordError: The folder cannot be written.
    """
    check_voices(list(dict.fromkeys(sentence.voice for sentence in sentences)))
    names = [f"{one.voice}/{Path(one.name).stem}.wav" for one in sentences]
    text = _table(names, sentences)
    table = folder / TABLE
    if table.exists() and table.read_bytes() != text.encode():
        raise InvalidInput(
            f"{table} is of other sentences, voices or another seed.", hint="Use a new folder."
        )
    try:
        for voice in dict.fromkeys(one.voice for one in sentences):
            (folder / voice).mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RecordError(f"{folder} cannot be made: {fault.strerror}.") from fault

    def ready(item: tuple[str, Sentence]) -> tuple[int, bool]:
        name, sentence = item
        path = folder / name
        if path.is_file():
            with suppress(InvalidInput):  # one that was cut short is spoken again
                return len(read_wav(path, rate=RATE)[0]), False
        sound = speak(sentence.text, sentence.voice, sentence.manner)
        _write(path, wav_bytes(sound))
        return len(sound), True

    samples, spoken = 0, 0
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        done = 0
        items = list(zip(names, sentences, strict=True))
        for first in range(0, len(items), _AT_ONCE):
            for length, new in pool.map(ready, items[first : first + _AT_ONCE]):
                samples, spoken, done = samples + length, spoken + new, done + 1
                if progress is not None:
                    progress(done, len(items))
    _write(table, text.encode())
    return SpokenFolder(len(sentences), spoken, samples / RATE)


def wav_bytes(sound: NDArray[np.float32]) -> bytes:
    """Return sound between -1 and 1 as a WAV file of 16 bits a sample; louder samples are cut."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.clip(sound, -1.0, 1.0) * _FULL).astype("<i2").tobytes())
    return buffer.getvalue()


def _table(names: Sequence[str], sentences: Sequence[Sentence]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["file_name", "transcription"])
    writer.writerows(zip(names, (one.text for one in sentences), strict=True))
    return buffer.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise write_error(path, fault) from fault
