"""Reading what a patch is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require

Floats = NDArray[np.float64]
Colour = float | Sequence[float]


def is_whole(given: object, least: int) -> bool:
    """Whether this is a whole number of at least ``least``."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    return whole and given >= least  # type: ignore[operator]


def check_draws(rng: object, count: object) -> None:
    """Refuse what is no generator, and no number of draws."""
    faults = []
    if not isinstance(rng, np.random.Generator):
        faults.append(f"rng={rng!r} is not a numpy.random.Generator")
    if not is_whole(count, 1):
        faults.append(f"count={count!r} is not a whole number of at least 1")
    require(faults)


def read_pixels(given: ArrayLike, faults: list[str]) -> Floats | None:
    """A copy of shape ``(channels, height, width)``; or None, with the reason in ``faults``."""
    try:
        pixels = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        faults.append("pixels is not an array of numbers")
        return None
    shape = pixels.shape
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3 or pixels.size == 0:
        faults.append(f"pixels has shape {shape}, not (height, width) or with channels before")
        return None
    if not (pixels.min() >= 0.0 and pixels.max() <= 1.0):
        faults.append("pixels holds NaN or values outside [0, 1]")
        return None
    return pixels


def read_opacity(given: object, faults: list[str]) -> float:
    """A number above 0 and at most 1."""
    number = isinstance(given, (int, float, np.integer, np.floating))
    if isinstance(given, bool) or not number or not 0.0 < given <= 1.0:  # type: ignore[operator]
        faults.append(f"opacity={given!r} is not above 0 and at most 1")
        return 1.0
    return float(given)  # type: ignore[arg-type]


def read_levels(ink: Colour, paper: Colour) -> tuple[Floats, Floats]:
    """Ink and paper, each of shape ``(channels, 1, 1)``.

    Raises:
        InvalidInput: Not levels in [0, 1], not as many channels, or both alike.
    """
    read = []
    for name, given in (("ink", ink), ("paper", paper)):
        levels = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if levels.ndim > 1 or levels.size == 0 or not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise InvalidInput(
                f"{name}={given!r} is neither a grey level nor a colour.",
                hint="Give a number in [0, 1], or one a channel.",
            )
        read.append(levels[:, None, None])
    dark, light = read
    if 1 not in (dark.size, light.size) and dark.size != light.size:
        raise InvalidInput(
            f"ink has {dark.size} channels and paper {light.size}.",
            hint="Give both as many numbers, or one of them as one grey level.",
        )
    if np.all(dark == light):
        raise InvalidInput(f"ink={ink} and paper={paper} are alike.")
    return dark, light
