"""The Free Spoken Digit Dataset: people who say the digits, joined into longer numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from remnant.data.speech.utterance import Utterance
from remnant.data.speech.wav import read_wav
from remnant.errors import InvalidInput

RATE = 8_000
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_PAUSE_SECONDS = 0.1
_NAME = re.compile(r"(?P<digit>\d)_(?P<speaker>[^_]+)_(?P<number>\d+)")


def read_fsdd(folder: Path) -> list[Utterance]:
    """Read all recordings, one digit each, in the order of their names.

    Args:
        folder: With ``recordings`` in it, of files such as ``7_jackson_32.wav``.

    Raises:
        InvalidInput: There is no recording, or a file is damaged or has another name or rate; the
            message names it.
    """
    files = sorted((folder / "recordings").glob("*.wav"))
    if not files:
        raise InvalidInput(
            f"{folder / 'recordings'} has no WAV file.",
            hint="Give the folder of the data set, which has recordings in it.",
        )
    made = []
    for path in files:
        match = _NAME.fullmatch(path.stem)
        if match is None:
            raise InvalidInput(
                f"{path} is not named DIGIT_SPEAKER_NUMBER.wav.", hint="Leave the file out."
            )
        sound, rate = read_wav(path, rate=RATE)
        made.append(Utterance(path, DIGITS[int(match["digit"])], match["speaker"], sound, rate))
    return made


def spoken_numbers(
    recordings: Sequence[Utterance], *, digits: int, rng: np.random.Generator
) -> list[Utterance]:
    """Join recordings of one person into numbers, a tenth of a second of silence between digits.

    Every recording is used once; those that are left over are not used.

    Args:
        recordings: Of one digit each.
        digits: Of a number.
        rng: Draws which recordings stand together.

    Returns:
        Numbers of each person, in the order of their names; each has the path of its first digit.
    """
    made = []
    for speaker in sorted({one.speaker for one in recordings}):
        own = [one for one in recordings if one.speaker == speaker]
        order = rng.permutation(len(own))[: len(own) // digits * digits].reshape(-1, digits)
        for row in order.tolist():
            said = [own[place] for place in row]
            pause = np.zeros(round(_PAUSE_SECONDS * said[0].rate), dtype=np.float32)
            parts = [part for one in said for part in (pause, one.sound)][1:]
            transcript = " ".join(one.transcript for one in said)
            sound = np.concatenate(parts)
            made.append(Utterance(said[0].path, transcript, speaker, sound, said[0].rate))
    return made
