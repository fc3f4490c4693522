"""One spoken sentence with its transcript, and what every reader of such sentences checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class Utterance:
    """One spoken sentence.

    Attributes:
        path: The file that it was read from.
        transcript: What was said.
        speaker: Who said it; empty where that is not known.
        sound: Samples between -1 and 1, one channel, ``(samples,)``; or ready-made features,
            ``(frames, bands)``.
        rate: Samples, or frames, a second.
    """

    path: Path
    transcript: str
    speaker: str
    sound: NDArray[np.float32]
    rate: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.sound) / self.rate


def check_sound(path: Path, sound: NDArray[np.float32]) -> None:
    """Refuse sound that has no samples, holds NaN or infinity, or is silent.

    Raises:
        InvalidInput: Names the file.
    """
    if not len(sound):
        raise InvalidInput(f"{path} holds no samples.", hint="Leave the file out.")
    if not np.isfinite(sound).all():
        raise InvalidInput(
            f"{path} holds samples that are not finite numbers.",
            hint="Write the file again, or leave it out.",
        )
    if not np.ptp(sound) > 0:
        raise InvalidInput(
            f"{path} is silent: all its samples are equal.", hint="Leave the file out."
        )
