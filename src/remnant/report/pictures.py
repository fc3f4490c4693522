"""Images as PNG files, small enough to be part of the page itself."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR = 0, 2
_ROUNDING = 1e-3


def png(pixels: NDArray[Any]) -> bytes:
    r"""One image as a PNG file of eight bits a channel.

    Args:
        pixels: In [0, 1], shape ``(1 or 3, height, width)``.

    Raises:
        InvalidInput: Another shape, or values that are no shade between 0 and 1.

    Guarantees:
        * Pixels read back are those given, rounded to the nearest of 256 shades.

    Example:
        >>> png(np.zeros((1, 8, 8)))[:4]
        b'\x89PNG'
    """
    image = np.asarray(pixels)
    if image.ndim != 3 or image.shape[0] not in (1, 3) or 0 in image.shape:
        raise InvalidInput(
            f"a picture has shape {image.shape}, not 1 or 3 channels, height and width."
        )
    if image.dtype.kind not in "biuf" or not _is_shade(image):
        raise InvalidInput("a picture holds what is no shade between 0 and 1.")
    channels, height, width = image.shape
    levels = np.rint(255.0 * np.clip(image.astype(np.float64), 0.0, 1.0)).astype(np.uint8)
    rows = levels.transpose(1, 2, 0).reshape(height, width * channels)
    # A zero before each row says that it is not filtered.
    body = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    kind = _GREY if channels == 1 else _COLOUR
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(body, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _is_shade(image: NDArray[Any]) -> bool:
    return bool(np.all((image >= -_ROUNDING) & (image <= 1.0 + _ROUNDING)))


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
