"""Labelled pictures: a folder with one folder a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from remnant.errors import InvalidInput
from remnant.integrations.classifiers.pictures import Pictures, read_pictures

_HINT = "Put the pictures of each class into a folder of its own, named after the class."


def class_names(folders: Sequence[Path], known: Mapping[str, int] | None = None) -> dict[str, int]:
    """Number the classes that folders have, together.

    Args:
        folders: Each has one folder a class.
        known: The classes of the model by name; None where they have no names.

    Returns:
        The number of each class: that of the model's names, else the number that the name is, if
        all are; else their order by name.

    Raises:
        InvalidInput: A folder has no folders, or the model does not know a class.
    """
    names = sorted({name for folder in folders for name in _classes(folder)})
    if known is not None and not set(names) <= known.keys():
        if not all(name.isdecimal() and int(name) < len(known) for name in names):
            wrong = next(name for name in names if name not in known)
            raise InvalidInput(
                f"the model has no class {wrong!r}.",
                hint=f"Its classes are, among others: {', '.join(list(known)[:5])}.",
            )
        return {name: int(name) for name in names}
    if known is not None:
        return {name: known[name] for name in names}
    if all(name.isdecimal() and len(name) < 6 for name in names):
        return {name: int(name) for name in names}
    return {name: number for number, name in enumerate(names)}


def read_class_folder(
    folder: Path, numbers: Mapping[str, int], *, shape: Sequence[int] | None = None
) -> Pictures:
    """Read the pictures of a folder with one folder a class, in the order of their paths.

    Args:
        folder: The folder.
        numbers: Of the classes; see ``class_names``.
        shape: ``(channels, height, width)`` to bring them into; None keeps that of the pictures.

    Raises:
        InvalidInput: There are no folders, one has no pictures, or sizes differ without ``shape``.
        MissingExtra: Pillow is not installed.
    """
    rng = np.random.default_rng(0)  # draws nothing: all pictures are read
    names = _classes(folder)
    read = [read_pictures(folder / name, shape=shape, rng=rng).images for name in names]
    shapes = sorted({tuple(images.shape[1:]) for images in read})
    if len(shapes) > 1:
        raise InvalidInput(
            f"{folder} holds pictures of {len(shapes)} shapes, such as "
            f"{'x'.join(map(str, shapes[0]))} and {'x'.join(map(str, shapes[-1]))}.",
            hint="Say what the model takes with shape=, such as 3x224x224.",
        )
    labels = [np.full(len(images), numbers[name]) for name, images in zip(names, read, strict=True)]
    return Pictures(torch.cat(read), np.concatenate(labels).astype(np.int64))


def _classes(folder: Path) -> list[str]:
    names = sorted(
        path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if not names:
        raise InvalidInput(f"{folder} has no folder for a class.", hint=_HINT)
    return names
