"""The data sets that a recipe can name, and the formats of the published ones: IDX, PNG sheets."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data.images import AuditData, Images, cut
from remnant.data.own_files import OwnFiles
from remnant.data.own_images import own_images, own_tensors
from remnant.errors import InvalidInput, PlanError, import_failure


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


def read_cifar10(folder: Path) -> tuple[Images, Images]:
    """Read the training and held-out parts.

    Raises:
        InvalidInput: A file is missing or is not what it should be.
        MissingExtra: Pillow is not installed.
    """
    train = [folder / f"data_batch_{number}.png" for number in range(1, 6)]
    return (
        _read_sheet(train, folder / "train_lables.json"),
        _read_sheet([folder / "test_batch.png"], folder / "test_lables.json"),
    )


def _read_sheet(sheets: list[Path], labels: Path) -> Images:
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


_FROM_FILES = {"mnist": read_mnist, "fashion-mnist": read_mnist, "cifar10": read_cifar10}
DATA_SETS = ("digits", "framed-digits", *_FROM_FILES)
_FRAME = 6  # black pixels on every side: room for a letter that covers no ink


def load_images(
    name: str, *, folder: Path | None = None, examples: int | None = None, seed: int = 0
) -> AuditData:
    """Load a data set and cut it into clean, pool and test parts.

    Args:
        name: ``digits`` (in scikit-learn, always there), ``framed-digits`` (the same in a black
            frame, 20 pixels a side), ``mnist``, ``fashion-mnist``, ``cifar10``.
        folder: Holds the named set, or a folder of that name which does.
        examples: How many clean examples to keep; all, if not given.
        seed: Decides who is in which part.

    Raises:
        PlanError: An unknown name, or a set from files without a folder.

    See ``load_own_images`` for the user's own files.
    """
    return cut(*_parts(name, folder), examples=examples, seed=seed)


def load_own_images(
    files: OwnFiles,
    *,
    inputs: str | None = None,
    labels: str = "labels",
    tensors: bool = False,
    examples: int | None = None,
    seed: int = 0,
) -> AuditData:
    """Load the user's own images or features and cut them into clean, pool and test parts.

    Args:
        files, inputs, labels, tensors: See ``own_images``.
        examples: How many clean examples to keep; all, if not given.
        seed: Decides who is in which part.

    Raises:
        InvalidInput: The files are not what they should be.
        PlanError: They hold too few examples.
    """
    train, held_out, origin = own_images(files, inputs=inputs, labels=labels, tensors=tensors)
    return cut(train, held_out, examples=examples, seed=seed, origin=origin, tensors=tensors)


def cut_own_tensors(
    given: Any, *, maker: str, sha256: str, examples: int | None = None, seed: int = 0
) -> AuditData:
    """Cut the inputs and labels that a function of the user's own returned, as ``load_own_images``.

    Args:
        given, maker, sha256: See ``own_tensors``.
        examples, seed: See ``load_own_images``.
    """
    train, origin = own_tensors(given, maker=maker, sha256=sha256)
    return cut(train, None, examples=examples, seed=seed, origin=origin, tensors=True)


def training_images(name: str, *, folder: Path | None = None) -> Images:
    """Load the training part of a data set, in the order of its files; of the digits, all.

    Args:
        name: As for ``load_images``.
        folder: Likewise.

    Raises:
        PlanError: An unknown name, or a set from files without a folder.
    """
    return _parts(name, folder)[0]


def _parts(name: str, folder: Path | None) -> tuple[Images, Images | None]:
    """The training part and, where there is one, the held-out part."""
    if name not in DATA_SETS:
        raise PlanError(f"data.name={name!r} is not one of {', '.join(DATA_SETS)}.")
    if name == "digits":
        return _digits(), None
    if name == "framed-digits":
        plain, frame = _digits(), (_FRAME, _FRAME)
        return Images(np.pad(plain.images, ((0, 0), (0, 0), frame, frame)), plain.labels), None
    if folder is None:
        raise PlanError(f"{name} is read from files.", hint="Pass --data FOLDER.")
    inner = folder / name
    return _FROM_FILES[name](inner if inner.is_dir() or not folder.is_dir() else folder)


def _digits() -> Images:
    try:
        from sklearn.datasets import load_digits
    except ImportError as fault:
        raise import_failure(
            fault,
            library="scikit-learn",
            message="The digits come with scikit-learn, which is not installed.",
            extra="data",
        ) from fault
    bunch = load_digits()
    images = (bunch.images[:, None] / 16).astype(np.float32)
    return Images(images, bunch.target.astype(np.int64))
