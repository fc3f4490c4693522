"""Sounds as WAV files, small enough to be part of the page itself."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput


def wav(samples: NDArray[Any], *, rate: int) -> bytes:
    r"""One sound as a WAV file of 16 bits a sample.

    Args:
        samples: 16-bit whole numbers, ``(samples,)``.
        rate: Samples a second.

    Raises:
        InvalidInput: Samples of another type or shape.

    Example:
        >>> wav(np.zeros(8, np.int16), rate=16_000)[:4]
        b'RIFF'
    """
    sound = np.asarray(samples)
    if sound.ndim != 1 or sound.dtype != np.int16 or not len(sound):
        raise InvalidInput(f"a sound has shape {sound.shape} and type {sound.dtype}.")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(sound.astype("<i2").tobytes())
    return buffer.getvalue()
