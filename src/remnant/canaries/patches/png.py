"""Reads a patch from a PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, import_failure


def read_png(path: Path) -> NDArray[np.float64]:
    """The picture, shape ``(1 or 3, height, width)``, in [0, 1]: grey where the file is.

    Raises:
        InvalidInput: No such file, no PNG, or one that is transparent somewhere.
        MissingExtra: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as fault:
        raise import_failure(
            fault,
            library="Pillow",
            message="Reading a PNG needs Pillow.",
            extra="data",
        ) from fault
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            wide = picture.mode.startswith("I")
            clear = not wide and np.asarray(picture.convert("RGBA"))[..., 3].min() < 255
            grey = wide or picture.mode in ("1", "L", "LA")
            plain = picture if wide else picture.convert("L" if grey else "RGB")
            levels = np.asarray(plain, dtype=np.float64) / (65535.0 if wide else 255.0)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as fault:
        raise InvalidInput(f"{path}: not a PNG file that can be read.") from fault
    if clear:
        raise InvalidInput(
            f"{path}: the picture is transparent somewhere.",
            hint="Put it on a ground of its own; opacity is an argument.",
        )
    return levels[None] if grey else levels.transpose(2, 0, 1)
