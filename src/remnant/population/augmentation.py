"""Random image augmentation before each update: contrast, mirroring, cropping.

Like dropout, the change of an image depends only on the member's dropout seed, the number of its
updates and the image's index in the batch. So a member's images are the same alone, among other
members, on either backend and after a resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.population.randomness import keys, words

_LAYER = -2  # in the key: no layer of a model, nor torch's own generator
_DRAWS = 4  # words an image: contrast, flip, row, column


@dataclass(frozen=True, slots=True)
class Augmentation:
    """The random changes of training images at every update; held-out images are not changed.

    An image is changed in this order:

    1. Contrast: ``mean + factor * (image - mean)``, the mean of each channel of this image and one
       factor for all its channels, uniform in ``[1 - contrast, 1 + contrast)``. Not clamped.
    2. Flip: mirrored left to right, or not, with equal odds.
    3. Crop: ``crop`` pixels a side are kept, at a place uniform among all places, moved to the top
       left corner; the rest, at the bottom and on the right, is 0. So the shape stays, and no pixel
       is interpolated. What lies ``side - crop`` pixels or more from every edge is never cut; it
       moves up and to the left by so many pixels at most.

    Attributes:
        contrast: Largest relative change, 0 to 1; 0 for none.
        crop: Pixels kept a side; 0 for all.
        flip: Whether images are mirrored.

    Raises:
        InvalidInput: A number out of its range.

    Example:
        >>> Augmentation(contrast=0.2, crop=27).changes
        True
    """

    contrast: float = 0.0
    crop: int = 0
    flip: bool = False

    def __post_init__(self) -> None:
        faults = []
        whole = isinstance(self.crop, int) and not isinstance(self.crop, bool)
        if isinstance(self.contrast, bool) or not isinstance(self.contrast, int | float):
            faults.append(f"contrast={self.contrast!r} is not a number")
        elif not 0 <= self.contrast <= 1:
            faults.append(f"contrast={self.contrast!r} is not within 0 to 1")
        if not whole or self.crop < 0:
            faults.append(f"crop={self.crop!r} is not a number of pixels")
        if not isinstance(self.flip, bool):
            faults.append(f"flip={self.flip!r} is neither true nor false")
        require(faults, hint="0, 0 and false leave images as they are.")

    @property
    def changes(self) -> bool:
        """Whether any image is changed at all."""
        return bool(self.contrast or self.crop or self.flip)

    def batch(self, images: Tensor, *, seeds: Tensor, taken: Tensor) -> Tensor:
        """Return changed copies of every member's batch.

        Args:
            images: ``(members, batch, channels, height, width)``.
            seeds: Each member's dropout seed.
            taken: Updates that each member has taken so far.
        """
        members, size = images.shape[:2]
        place = torch.arange(size * _DRAWS, dtype=torch.int32, device=images.device)
        word = words(keys(seeds, taken, _LAYER)[:, None], place).reshape(members, size, _DRAWS)
        contrast, flip, row, column = ((word >> 8) & 0xFFFFFF).unbind(-1)  # 24 bits each
        if self.contrast:
            spread = self.contrast * (contrast.to(images.dtype) * 2.0**-23 - 1)
            mean = images.mean(dim=(-2, -1), keepdim=True)
            images = mean + (1 + spread)[..., None, None, None] * (images - mean)
        if self.crop or self.flip:
            mirrored = flip >= 2**23 if self.flip else None
            images = self._moved(images, row.long(), column.long(), mirrored)
        return images

    def _moved(
        self, images: Tensor, row: Tensor, column: Tensor, mirrored: Tensor | None
    ) -> Tensor:
        height, width = images.shape[-2:]
        tall, wide = (self.crop, self.crop) if self.crop else (height, width)
        rows = _from(row, height, tall)
        columns = _from(column, width, wide)
        if mirrored is not None:
            columns = torch.where(mirrored[..., None], width - 1 - columns, columns)
        if tall < height:
            rows = rows[:, :, None, :, None].expand(*images.shape[:3], -1, width)
            images = images.gather(-2, rows)
        columns = columns[:, :, None, None, :].expand(*images.shape[:4], -1)
        images = images.gather(-1, columns)
        return torch.nn.functional.pad(images, (0, width - wide, 0, height - tall))


def _from(bits: Tensor, side: int, kept: int) -> Tensor:
    """Return which pixels of a side are kept, from a place drawn with 24 random bits."""
    start = (bits * (side - kept + 1)) >> 24
    return start[..., None] + torch.arange(kept, device=bits.device)


def augmentation_for(augment: Any, images: Tensor) -> Augmentation | None:
    """Return the augmentation that these training images get, or ``None`` where nothing changes.

    Raises:
        InvalidInput: It is no augmentation, or the examples are not images that it can change.
    """
    if augment is None:
        return None
    if not isinstance(augment, Augmentation):
        raise InvalidInput(
            f"augment={augment!r} is not an Augmentation.",
            hint="Pass Augmentation(contrast=0.2, crop=27), or leave it out.",
        )
    if not augment.changes:
        return None
    if images.ndim != 4 or not images.is_floating_point():
        raise InvalidInput(
            f"augment needs images (examples, channels, height, width) of floating-point numbers, "
            f"not {images.dtype} of shape {tuple(images.shape)}.",
            hint="Keep the images' shape, and let the model flatten them.",
        )
    if augment.crop > min(images.shape[-2:]):
        high, wide = images.shape[-2:]
        raise InvalidInput(f"augment.crop={augment.crop} is more than images of {high} x {wide}.")
    return augment
