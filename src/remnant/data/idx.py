"""Reads MNIST's file format, IDX, compressed or not."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.images import Images
from remnant.errors import InvalidInput


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read one IDX file of bytes.

    Raises:
        InvalidInput: The file is missing, is not IDX, or ends early.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError as fault:
        raise InvalidInput(
            f"{path} is not there.", hint="Point --data at the folder that holds the data set."
        ) from fault
    except (OSError, EOFError, zlib.error) as fault:
        raise InvalidInput(f"{path} cannot be read: {fault}.") from fault
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise InvalidInput(f"{path} is not an IDX file of bytes.")
    axes = raw[3]
    header = 4 + 4 * axes
    shape = [int.from_bytes(raw[at : at + 4], "big") for at in range(4, header, 4)]
    if len(raw) != header + math.prod(shape):
        raise InvalidInput(f"{path} is damaged: its length is not what its header says.")
    return np.frombuffer(raw, dtype=np.uint8, offset=header).reshape(shape)


def read_mnist(folder: Path) -> tuple[Images, Images]:
    """Read the training and held-out parts of a set in MNIST's layout."""
    return _read_part(folder, "train"), _read_part(folder, "t10k")


def _read_part(folder: Path, prefix: str) -> Images:
    images = read_idx(_find(folder, f"{prefix}-images-idx3-ubyte"))
    labels = read_idx(_find(folder, f"{prefix}-labels-idx1-ubyte"))
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise InvalidInput(f"{folder}: {prefix} images and labels do not belong together.")
    return Images((images[:, None] / 255).astype(np.float32), labels.astype(np.int64))


def _find(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.exists() else folder / f"{name}.gz"
