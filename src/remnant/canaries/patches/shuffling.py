"""The same pixels in another order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def reordered(pixels: Floats, grain: int, rng: np.random.Generator, count: int) -> Floats:
    """``count`` pictures of the same squares, each in an order of its own.

    Args:
        pixels: Shape ``(channels, height, width)``.
        grain: The side of the squares, which divides height and width.
        rng: Draws the orders, all alike likely.
        count: How many.

    Returns:
        Shape ``(count, channels, height, width)``.
    """
    channels, height, width = pixels.shape
    tall, wide = height // grain, width // grain
    squares = _squares(pixels, grain)
    order = rng.permuted(np.tile(np.arange(len(squares)), (count, 1)), axis=1)
    put = squares[order].reshape(count, tall, wide, channels, grain, grain)
    return np.asarray(put.transpose(0, 3, 1, 4, 2, 5).reshape(count, channels, height, width))


def log_orders(pixels: Floats, grain: int) -> float:
    """The log of the number of distinguishable orders.

    Example:
        >>> round(math.exp(log_orders(np.array([[[0.0, 1.0, 1.0]]]), 1)))
        3
    """
    squares = _squares(pixels, grain)
    counts = np.unique(squares.reshape(len(squares), -1), axis=0, return_counts=True)[1]
    repeated = sum(math.lgamma(count + 1.0) for count in counts.tolist())
    return math.lgamma(len(squares) + 1.0) - repeated


def _squares(pixels: Floats, grain: int) -> Floats:
    """What moves, shape ``(squares, channels, grain, grain)``."""
    channels, height, width = pixels.shape
    tall, wide = height // grain, width // grain
    cut = pixels.reshape(channels, tall, grain, wide, grain)
    return cut.transpose(1, 3, 0, 2, 4).reshape(tall * wide, channels, grain, grain)
