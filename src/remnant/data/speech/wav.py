"""WAV files: one alone, or a folder of them with a table of transcripts."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data.rows import read_rows
from remnant.data.speech.utterance import Utterance, check_sound
from remnant.errors import InvalidInput

RATE = 16_000  # samples a second that recognisers of speech are trained on
TABLES = ("metadata.csv", "metadata.jsonl")
_FULL = {"int16": 2.0**15, "int32": 2.0**31}


def read_wav(path: Path, *, rate: int | None = None) -> tuple[NDArray[np.float32], int]:
    """Read a sound file of one channel.

    Args:
        path: A WAV file: whole numbers of 8, 16, 24 or 32 bits, or floats.
        rate: Samples a second that it must have; any, if not given.

    Returns:
        Samples between -1 and 1, and how many there are a second.

    Raises:
        InvalidInput: The file is damaged, has several channels or another rate, is empty or silent.
            The message names the file.
    """
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # scipy only warns of a file that ends too early
            own_rate, samples = wavfile.read(path)
    except OSError as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault.strerror or fault}.", hint="Check the path."
        ) from fault
    except (ValueError, EOFError, wavfile.WavFileWarning) as fault:
        raise InvalidInput(
            f"{path} is not a whole WAV file.", hint="Write it again, or leave it out."
        ) from fault
    if samples.ndim != 1:
        raise InvalidInput(
            f"{path} has {samples.shape[1]} channels; one is needed.",
            hint="Mix them into one channel first.",
        )
    if rate is not None and own_rate != rate:
        raise InvalidInput(
            f"{path} has {own_rate} samples a second; {rate} are needed.",
            hint="Resample it first, or read the folder with resample=True.",
        )
    sound = _between_ones(samples)
    check_sound(path, sound)
    return sound, int(own_rate)


def _between_ones(samples: NDArray[Any]) -> NDArray[np.float32]:
    kind = samples.dtype.name
    scaled = (samples - 128.0) / 128.0 if kind == "uint8" else samples / _FULL.get(kind, 1.0)
    return np.asarray(scaled, dtype=np.float32)


def resampled(sound: NDArray[np.float32], old: int, new: int) -> NDArray[np.float32]:
    """Return the sound with ``new`` samples a second instead of ``old``."""
    from scipy.signal import resample_poly

    if old == new:
        return sound
    common = math.gcd(old, new)
    made = resample_poly(sound.astype(np.float64), new // common, old // common)
    return np.asarray(made, dtype=np.float32)


def read_wav_folder(folder: Path, *, rate: int = RATE, resample: bool = False) -> list[Utterance]:
    """Read a folder of WAV files with their transcripts.

    The folder has a ``metadata.csv`` or ``metadata.jsonl`` with the fields ``file_name`` and
    ``transcription``, one row a file, as Hugging Face's audio folders have.

    Args:
        folder: Of the files and the table.
        rate: Samples a second.
        resample: Whether files with another rate are resampled; else they are refused.

    Raises:
        InvalidInput: There is no table, a file is missing or damaged, or a path leaves the folder.
    """
    if not folder.is_dir():
        raise InvalidInput(
            f"{folder} is not a folder; speech is read from a folder of WAV files.",
            hint=f"Give the folder that holds them, with a {' or '.join(TABLES)}.",
        )
    tables = [folder / name for name in TABLES if (folder / name).is_file()]
    if len(tables) != 1:
        raise InvalidInput(
            f"{folder} has both {' and '.join(TABLES)}; one is needed."
            if tables
            else f"{folder} has no {' or '.join(TABLES)}; one is needed.",
            hint="Give it one table with the fields file_name and transcription.",
        )
    names = {"file_name": "file_name", "transcription": "transcription"}
    made = []
    for row in read_rows(tables[0], names):
        name, transcript = str(row.fields["file_name"]), str(row.fields["transcription"])
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InvalidInput(
                f"{tables[0]}, line {row.line}: {name} is not inside the folder.",
                hint="Give paths that start at the folder.",
            )
        if not transcript.strip():
            raise InvalidInput(
                f"{tables[0]}, line {row.line}: {name} has an empty transcript.",
                hint="Leave the row out, or say what was spoken.",
            )
        sound, own_rate = read_wav(path, rate=None if resample else rate)
        speaker = Path(name).parent.name
        made.append(Utterance(path, transcript, speaker, resampled(sound, own_rate, rate), rate))
    return made
