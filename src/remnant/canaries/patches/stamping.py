"""Putting pixels onto images: NumPy arrays and torch tensors alike, always onto a copy."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require

Floats = NDArray[np.float64]
Images = TypeVar("Images")


def pasted(
    images: Images, pixels: Floats, *, row: int, column: int, opacity: float, each: bool
) -> Images:
    """A copy of the images with the pixels on them.

    Args:
        images: Floats in [0, 1], shape ``(n, c, h, w)``: an array or a tensor.
        pixels: In [0, 1], shape ``(n, 1 or c, height, width)`` where each image has its own, and
            ``(1 or c, height, width)`` where all have the same.
        row, column: The pixel of the image under the pixels' top-left one, from zero.
        each: Which of the two.
        opacity: What is seen is ``opacity · pixels + (1 - opacity) · image``.

    Returns:
        The same type, dtype and device as ``images``.

    Raises:
        InvalidInput: Images of another shape or type, or outside [0, 1]; pixels that do not fit.
    """
    given: Any = images
    check_images(given)
    count = pixels.shape[0] if each else given.shape[0]
    _check_fit(tuple(given.shape), (count, *pixels.shape[-3:]), row, column)
    height, width = pixels.shape[-2:]
    tensor = is_tensor(given)
    out = given.clone() if tensor else given.copy()
    window = (Ellipsis, slice(row, row + height), slice(column, column + width))
    if tensor:
        torch = sys.modules["torch"]
        ink = torch.tensor(pixels, device=out.device, dtype=out.dtype)
    else:
        ink = pixels.astype(out.dtype)
    out[window] = ink if opacity == 1.0 else opacity * ink + (1.0 - opacity) * out[window]
    return out  # type: ignore[no-any-return]


def is_tensor(given: object) -> bool:
    """Whether this is torch's; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def check_images(images: Any) -> None:
    """Refuse what is not a batch of images in [0, 1].

    Raises:
        InvalidInput: No array or tensor of floats, not four dimensions, empty, outside [0, 1].
    """
    if is_tensor(images):
        floats = images.is_floating_point()
    elif isinstance(images, np.ndarray):
        floats = np.issubdtype(images.dtype, np.floating)
    else:
        raise InvalidInput(
            f"images is a {type(images).__name__}.", hint="Give a NumPy array or a torch tensor."
        )
    faults = []
    if not floats:
        faults.append(f"images has dtype {images.dtype}, not floats in [0, 1]")
    if images.ndim != 4 or 0 in images.shape:
        faults.append(f"images has shape {tuple(images.shape)}, not (n, channels, height, width)")
    require(faults, hint="Divide bytes by 255; put one image into a batch by images[None].")
    seen = images.detach() if is_tensor(images) else images
    least, most = float(seen.min()), float(seen.max())
    if not (least >= 0.0 and most <= 1.0):
        span = "NaN" if least != least or most != most else f"values from {least:g} to {most:g}"
        raise InvalidInput(
            f"images holds {span}, outside [0, 1].",
            hint="Stamp before images are normalised, and normalise inside predict.",
        )


def _check_fit(images: tuple[int, ...], pixels: tuple[int, ...], row: int, column: int) -> None:
    count, channels, height, width = images
    stamps, colours, tall, wide = pixels
    faults = []
    if stamps != count:
        faults.append(f"{stamps} patch(es) were given for {count} image(s)")
    if colours not in (1, channels):
        faults.append(f"a patch of {colours} channels does not fit images of {channels}")
    if row + tall > height or column + wide > width:
        faults.append(
            f"a patch of {tall}x{wide} pixels at row {row}, column {column} reaches outside "
            f"images of {height}x{width}"
        )
    require(faults)
