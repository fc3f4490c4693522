"""Log-mel features: how much sound there is in each band of pitch, a hundred times a second."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, require

WINDOW_SECONDS, STEP_SECONDS = 0.025, 0.010
_FLOOR = 1e-10  # so that digital silence has a logarithm


def log_mel(sound: NDArray[np.float32] | Tensor, *, rate: int, bands: int = 80) -> Tensor:
    """Return the natural logarithm of the power in each mel band.

    Hann windows of 25 ms every 10 ms, a Fourier transform padded to the next power of two, and
    triangular bands at equal distances on the mel scale, from 0 to half the rate.

    Args:
        sound: Samples between -1 and 1, ``(samples,)``.
        rate: Samples a second.
        bands: How many.

    Returns:
        ``(frames, bands)``, float32; a frame is a window that lies within the sound.

    Raises:
        InvalidInput: The sound is shorter than a window, holds NaN, or has several channels.

    Example:
        >>> log_mel(np.sin(np.arange(16_000) / 5).astype(np.float32), rate=16_000).shape
        torch.Size([98, 80])
    """
    samples = torch.as_tensor(sound, dtype=torch.float64)
    width, step = round(WINDOW_SECONDS * rate), round(STEP_SECONDS * rate)
    faults = []
    if rate < 1000:
        faults.append(f"rate={rate} is not a rate of sound")
    if bands < 1:
        faults.append(f"bands={bands} is not a number from 1 on")
    if samples.ndim != 1:
        faults.append(f"sound has shape {tuple(samples.shape)}, not (samples,)")
    elif len(samples) < width:
        faults.append(f"sound has {len(samples)} samples; a window has {width}")
    elif not bool(samples.isfinite().all()):
        faults.append("sound holds numbers that are not finite")
    require(faults, error=InvalidInput)
    length = 2 ** math.ceil(math.log2(width))
    windows = samples.unfold(0, width, step) * torch.hann_window(width, dtype=torch.float64)
    power = torch.fft.rfft(windows, n=length).abs().square()
    heard: Tensor = power @ _filters(rate, bands, length)
    return heard.clamp(min=_FLOOR).log().float()


def normalised(features: Tensor) -> Tensor:
    """Return the features of one utterance with mean 0 and deviation 1 in every band."""
    exact = features.double()
    centred = exact - exact.mean(0)
    return (centred / centred.square().mean(0).sqrt().clamp(min=1e-5)).to(features)


@lru_cache(maxsize=8)
def _filters(rate: int, bands: int, length: int) -> Tensor:
    """Triangles over the frequencies of the transform, ``(frequencies, bands)``."""
    pitches = torch.linspace(0, _mel(rate / 2), bands + 2, dtype=torch.float64)
    corners = 700 * (torch.pow(10.0, pitches / 2595) - 1)
    heard = torch.linspace(0, rate / 2, length // 2 + 1, dtype=torch.float64)[:, None]
    rising = (heard - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - heard) / (corners[2:] - corners[1:-1])
    return torch.minimum(rising, falling).clamp(min=0.0)


def _mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)
