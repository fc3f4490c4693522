"""The data sets that a recipe can name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from remnant.data.cifar import read_cifar10
from remnant.data.idx import read_mnist
from remnant.data.images import AuditData, Images, cut
from remnant.errors import MissingExtra, PlanError

_FROM_FILES = {"mnist": read_mnist, "fashion-mnist": read_mnist, "cifar10": read_cifar10}
DATA_SETS = ("digits", *_FROM_FILES)


def load_images(
    name: str, *, folder: Path | None = None, examples: int | None = None, seed: int = 0
) -> AuditData:
    """Load a data set and cut it into clean, pool and test parts.

    Args:
        name: ``digits`` (in scikit-learn, always there), ``mnist``, ``fashion-mnist``, ``cifar10``.
        folder: Holds the named set, or a folder of that name which does.
        examples: How many clean examples to keep; all, if not given.
        seed: Decides who is in which part.

    Raises:
        PlanError: An unknown name, or a set from files without a folder.
    """
    if name not in DATA_SETS:
        raise PlanError(f"data.name={name!r} is not one of {', '.join(DATA_SETS)}.")
    if name == "digits":
        return cut(_digits(), None, examples=examples, seed=seed)
    if folder is None:
        raise PlanError(f"{name} is read from files.", hint="Pass --data FOLDER.")
    inner = folder / name
    train, held_out = _FROM_FILES[name](inner if inner.is_dir() or not folder.is_dir() else folder)
    return cut(train, held_out, examples=examples, seed=seed)


def _digits() -> Images:
    try:
        from sklearn.datasets import load_digits
    except ImportError as fault:
        raise MissingExtra(
            "The digits come with scikit-learn.", hint="Install remnant[data]."
        ) from fault
    bunch = load_digits()
    images = (bunch.images[:, None] / 16).astype(np.float32)
    return Images(images, bunch.target.astype(np.int64))
