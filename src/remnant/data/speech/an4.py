"""CMU's AN4: people who spell names, addresses and numbers, as cepstral features."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.speech.utterance import Utterance, check_sound
from remnant.data.text import read_text
from remnant.errors import InvalidInput

PARTS = ("train", "test")
_COEFFICIENTS = 13
_FRAMES_A_SECOND = 100
_LINE = re.compile(r"(?P<said>.*?)\s*\((?P<name>[^()\s]+)\)\s*")
_MARKS = re.compile(r"</?s>|<sil>|\(\d+\)")  # of silence, and of a word's second pronunciation


def read_mfcc(path: Path) -> NDArray[np.float32]:
    """Read a file of cepstral features: how many numbers, then as many floats, big-endian.

    Returns:
        ``(frames, 13)``.

    Raises:
        InvalidInput: The file is missing or damaged; the message names it.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault.strerror}.", hint="Check the path."
        ) from fault
    count = int(np.frombuffer(data[:4], ">i4")[0]) if len(data) >= 4 else -1
    if count < 0 or len(data) != 4 + 4 * count or count % _COEFFICIENTS:
        raise InvalidInput(
            f"{path} is not a whole file of {_COEFFICIENTS} cepstral features a frame.",
            hint="Fetch it again, or leave it out.",
        )
    features = np.frombuffer(data[4:], ">f4").astype(np.float32).reshape(-1, _COEFFICIENTS)
    check_sound(path, features)
    return features


def read_an4(folder: Path, part: str) -> list[Utterance]:
    """Read the training or the test part of AN4; no speaker is in both.

    Args:
        folder: With ``etc`` and ``feat`` in it.
        part: ``train`` or ``test``.

    Raises:
        InvalidInput: The folder is not AN4's, or a file is missing or damaged.
    """
    if part not in PARTS:
        raise InvalidInput(f"part={part!r} is not one of {', '.join(PARTS)}.")
    names = read_text(folder / "etc" / f"an4_{part}.fileids").split()
    table = folder / "etc" / f"an4_{part}.transcription"
    said = {}
    for number, line in enumerate(read_text(table).splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise InvalidInput(
                f"{table}, line {number} is not a transcript and a name in brackets.",
                hint="Fetch the file again.",
            )
        said[match["name"]] = " ".join(_MARKS.sub(" ", match["said"]).split())
    made = []
    for name in names:
        path = folder / "feat" / f"{name}.mfc"
        transcript = said.get(path.stem)
        if not transcript:
            raise InvalidInput(f"{table} has no transcript of {path.stem}.")
        speaker = path.parent.name
        made.append(Utterance(path, transcript, speaker, read_mfcc(path), _FRAMES_A_SECOND))
    return made
