"""The data sets that a recipe can name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.cifar import read_cifar10
from remnant.data.idx import read_mnist
from remnant.data.images import AuditData, Images, cut
from remnant.data.own_files import OwnFiles
from remnant.data.own_images import own_images, own_tensors
from remnant.errors import PlanError, import_failure

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
