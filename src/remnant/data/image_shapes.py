"""Images of another kind than a model was made for, in the shape that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.catalogue import DATA_SETS, training_images
from remnant.errors import PlanError

OTHER_IMAGES = ("blocks", *DATA_SETS)
_GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue look
_BLOCK = 4  # about how many pixels a block of noise has a side, in an image of 28
_SIDE = 28


def other_images(
    name: str, *, shape: Sequence[int], count: int, folder: Path | None = None, seed: int = 0
) -> NDArray[np.float32]:
    """Return ``count`` images of a data set, made grey or coloured and resized to ``shape``.

    Args:
        name: ``blocks``, squares of random brightness or colour, which are always there, or a data
            set as for ``load_images``.
        shape: ``(channels, height, width)``, one channel or three.
        count: How many; drawn from the set's training part without replacement.
        folder: Where the set lies.
        seed: Draws them.

    Returns:
        float32 ``(count, *shape)`` in [0, 1].

    Raises:
        PlanError: An unknown name, another shape, or a set that holds fewer.

    Example:
        >>> other_images("blocks", shape=(3, 8, 8), count=5).shape
        (5, 3, 8, 8)
    """
    if name not in OTHER_IMAGES:
        raise PlanError(f"images.name={name!r} is not one of {', '.join(OTHER_IMAGES)}.")
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise PlanError(f"Other images can be grey or coloured, not of the shape {tuple(shape)}.")
    rng = np.random.default_rng(seed)
    if name == "blocks":
        return _blocks(shape, count, rng)
    images = training_images(name, folder=folder).images
    if count > len(images):
        raise PlanError(
            f"images.count={count} is more than the {len(images)} images of {name}.",
            hint="Ask for fewer.",
        )
    chosen = images[np.sort(rng.permutation(len(images))[:count])]
    return resized(coloured(chosen, shape[0]), shape[1], shape[2])


def resized(images: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """Return images of another size, each pixel a weighted mean of those around it.

    Weights fall linearly to zero within one pixel, of the old size or of the new one, whichever is
    larger.

    Args:
        images: ``(n, c, h, w)``.
        height, width: The new size.
    """
    if images.shape[2:] == (height, width):
        return np.ascontiguousarray(images)
    rows, columns = _weights(images.shape[2], height), _weights(images.shape[3], width)
    made = np.matmul(rows, np.matmul(images, columns.T))
    return np.asarray(np.clip(made, 0.0, 1.0), dtype=np.float32)


def coloured(images: NDArray[np.float32], channels: int) -> NDArray[np.float32]:
    """Return images of one channel from grey or coloured ones, or of several from grey ones.

    Args:
        images: ``(n, c, h, w)``, of one channel, of three, or of those asked for.
        channels: How many they are to have.
    """
    if images.shape[1] == channels:
        return images
    if channels == 1:
        weights = np.array(_GREY, dtype=np.float32).reshape(1, 3, 1, 1)
        return np.asarray((images * weights).sum(axis=1, keepdims=True), dtype=np.float32)
    return np.repeat(images, channels, axis=1)


def _weights(old: int, new: int) -> NDArray[np.float64]:
    """How much each of ``old`` pixels counts for each of ``new``, shape ``(new, old)``."""
    scale = old / new
    centres = (np.arange(new) + 0.5) * scale - 0.5
    apart = np.abs(np.arange(old) - centres[:, None])
    weights = np.maximum(0.0, 1.0 - apart / max(scale, 1.0))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _blocks(shape: Sequence[int], count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    channels, height, width = shape
    sides = [max(1, round(_BLOCK * side / _SIDE)) for side in (height, width)]
    cells = [-(-side // block) for side, block in zip((height, width), sides, strict=True)]
    coarse = rng.random((count, channels, *cells), dtype=np.float32)
    fine = coarse.repeat(sides[0], axis=2).repeat(sides[1], axis=3)
    return np.ascontiguousarray(fine[:, :, :height, :width])
