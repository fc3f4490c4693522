"""Reads CIFAR-10 from PNG sheets: one image a row of 1 024 pixels, labels in JSON beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from remnant.data.images import Images
from remnant.errors import InvalidInput, import_failure


def read_cifar10(folder: Path) -> tuple[Images, Images]:
    """Read the training and held-out parts.

    Raises:
        InvalidInput: A file is missing or is not what it should be.
        MissingExtra: Pillow is not installed.
    """
    train = [folder / f"data_batch_{number}.png" for number in range(1, 6)]
    return (
        _read_part(train, folder / "train_lables.json"),
        _read_part([folder / "test_batch.png"], folder / "test_lables.json"),
    )


def _read_part(sheets: list[Path], labels: Path) -> Images:
    try:
        from PIL import Image
    except ImportError as fault:
        raise import_failure(
            fault,
            library="Pillow",
            message="Reading CIFAR-10 needs Pillow.",
            extra="data",
        ) from fault
    missing = [str(path) for path in (*sheets, labels) if not path.exists()]
    if missing:
        raise InvalidInput(
            f"{', '.join(missing)}: not there.",
            hint="Point --data at the folder that holds the data set.",
        )
    try:
        values = np.array(json.loads(labels.read_text()), dtype=np.int64)
        parts = []
        for sheet in sheets:
            with Image.open(sheet) as picture:
                parts.append(np.asarray(picture.convert("RGB")))
        pixels = np.concatenate(parts)
    except (OSError, ValueError, TypeError) as fault:
        raise InvalidInput(f"{labels.parent}: a file is damaged: {fault}.") from fault
    if values.ndim != 1 or pixels.shape != (len(values), 1024, 3):
        raise InvalidInput(
            f"{labels.parent}: labels of shape {values.shape} for sheets of shape {pixels.shape}."
        )
    images = pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
    # Of bytes this is the float64 quotient, rounded, without that array.
    return Images(np.divide(images, np.float32(255), dtype=np.float32), values)
