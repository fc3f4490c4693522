"""Labelled samples from a third-party npz file with inputs and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NO_ARRAYS, InvalidInput

# How many channels an image may have; other numbers say that the axis is height or width.
CHANNELS = (1, 3, 4)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Samples as a model takes them, and their labels.

    Attributes:
        inputs: ``(n, ...)``: float32, or int64 where they are tokens.
        labels: int64 ``(n,)``.
    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64]


def read_labelled(path: str | Path) -> Labelled:
    """Read an npz file that holds ``labels`` and either ``images`` or ``inputs``.

    ``images`` are brought into the form (n, channels, height, width), in [0, 1]: bytes are divided
    by 255, other numbers must be in [0, 1] already. Images (n, height, width) have one channel;
    with four axes, the one behind n or the last one is that of the channels, of which there are 1,
    3 or 4. Where both could be, the file is refused. ``inputs`` are taken as they are: whole
    numbers as tokens, others as float32.

    Raises:
        InvalidInput: The file is not there or no npz file, lacks an array, holds NaN, or arrays
            that do not fit each other or the rules above.
    """
    arrays = _load(Path(path))
    if isinstance(arrays, np.ndarray):
        raise InvalidInput(
            f"{path} holds a single array.",
            hint="Write it with numpy.savez(path, images=images, labels=labels).",
        )
    named = [name for name in ("images", "inputs") if name in arrays]
    if "labels" not in arrays or len(named) != 1:
        raise InvalidInput(
            f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}; it takes labels, and either "
            "images or inputs.",
            hint="Write it with numpy.savez(path, images=images, labels=labels).",
        )
    given = arrays[named[0]]
    labels = read_labels(arrays["labels"], f"{path}: labels")
    if given.ndim < 1 or len(given) != len(labels):
        raise InvalidInput(
            f"{path}: {named[0]} of shape {given.shape} for {len(labels)} labels.",
            hint="Give one label a sample.",
        )
    if given.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: {named[0]} are not numbers.")
    bad = int(np.sum(~np.isfinite(given))) if given.dtype.kind == "f" else 0
    if bad:
        raise InvalidInput(f"{path}: {named[0]} hold {bad} values that are NaN or infinite.")
    if named[0] == "inputs":
        kind = np.float32 if given.dtype.kind == "f" else np.int64
        return Labelled(given.astype(kind), labels)
    return Labelled(as_images(given, f"{path}: images"), labels)


def read_labels(given: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return labels as whole numbers from 0 on.

    Raises:
        InvalidInput: They are something else, or there are none.
    """
    kind = given.dtype.kind
    whole = kind in "iu" or (kind == "f" and bool(np.all(given == np.floor(given))))
    if given.ndim != 1 or given.size == 0 or not whole or given.min() < 0:
        raise InvalidInput(
            f"{name} of shape {given.shape} and type {given.dtype} are not whole numbers from 0 "
            "on, one a sample."
        )
    return given.astype(np.int64)


def as_images(given: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Return images ``(n, channels, height, width)`` in [0, 1], by the rules of ``read_labelled``.

    Raises:
        InvalidInput: They do not follow them.

    Example:
        >>> as_images(np.full((5, 28, 28), 255, dtype=np.uint8), "images").shape
        (5, 1, 28, 28)
        >>> as_images(np.zeros((5, 32, 32, 3)), "images").shape
        (5, 3, 32, 32)
    """
    if given.ndim == 3:
        given = given[:, None]
    elif given.ndim != 4 or given.size == 0:
        raise InvalidInput(
            f"{name} have the shape {given.shape}; it takes (n, channels, height, width), (n, "
            "height, width, channels) or (n, height, width)."
        )
    else:
        first, last = given.shape[1] in CHANNELS, given.shape[3] in CHANNELS
        if first == last:
            raise InvalidInput(
                f"{name} have the shape {given.shape}, "
                + ("of which either end" if first else "of which neither end")
                + f" could be the channels ({', '.join(map(str, CHANNELS))}).",
                hint="Save them as inputs, exactly as the model takes them.",
            )
        given = given if first else np.moveaxis(given, 3, 1)
    if given.dtype == np.uint8:
        return np.ascontiguousarray(given, dtype=np.float32) / np.float32(255)
    low, high = float(given.min()), float(given.max())
    if low < 0.0 or high > 1.0:
        raise InvalidInput(
            f"{name} of type {given.dtype} reach from {low:g} to {high:g}, not from 0 to 1.",
            hint="Save bytes as uint8, or what is normalised already as inputs.",
        )
    return np.ascontiguousarray(given, dtype=np.float32)


def normalised(
    images: NDArray[np.float32], mean: Sequence[float], std: Sequence[float]
) -> NDArray[np.float32]:
    """Return images less their mean, in standard deviations, for all channels or for each.

    Raises:
        InvalidInput: Neither one number nor one a channel, or a deviation that is not above 0.
    """
    channels = images.shape[1]
    for name, given in (("mean", mean), ("std", std)):
        if len(given) not in (1, channels):
            raise InvalidInput(
                f"{name} has {len(given)} numbers for images of {channels} channel(s)."
            )
    if not min(std) > 0.0 or not np.all(np.isfinite([*mean, *std])):
        raise InvalidInput(f"mean={list(mean)} and std={list(std)}: a deviation is above 0.")
    shape = (1, -1, 1, 1)
    centre, width = (np.array(values, dtype=np.float32).reshape(shape) for values in (mean, std))
    return np.asarray((images - centre) / width, dtype=np.float32)


def read_array(path: str | Path) -> NDArray[Any]:
    """Read one array of an npy file; nothing is unpickled.

    Raises:
        InvalidInput: The file is not there, or no such file.
    """
    array = _load(Path(path))
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path} holds several arrays.", hint="Write one with numpy.save.")
    return array


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file by name, or an npy file's under the name ``images``.

    Raises:
        InvalidInput: The file is not there, or no such file.
    """
    arrays = _load(Path(path))
    return {"images": arrays} if isinstance(arrays, np.ndarray) else arrays


def _load(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The array of an npy file, or the arrays of an npz file by name."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _plain(path, loaded)
            with loaded:
                return {name: _plain(path, loaded[name]) for name in loaded.files}
    except InvalidInput:
        raise
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there.", hint="Check its path.") from None
    except NO_ARRAYS as fault:
        if str(fault).startswith("Object arrays"):
            raise InvalidInput(
                f"{path} holds pickled objects, which are never loaded.",
                hint="Save arrays of numbers or of texts: labels.astype(str), not objects.",
            ) from fault
        raise _damaged(path) from fault


def _plain(path: Path, array: Any) -> NDArray[Any]:
    """An array of real numbers or texts."""
    if not isinstance(array, np.ndarray):  # a file in an npz that is no npy
        raise _damaged(path)
    if array.dtype.kind == "c":
        raise InvalidInput(
            f"{path} holds complex numbers.", hint="Save real ones, such as their absolute values."
        )
    if array.dtype.kind not in "biufSU":
        raise InvalidInput(
            f"{path} holds values of type {array.dtype}.", hint="Save numbers or texts."
        )
    return array


def _damaged(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} is damaged, or holds something else than plain arrays.",
        hint="Write it with numpy.save or numpy.savez.",
    )
