"""Reads pictures to test a classifier on: a folder of PNG and JPEG files, or arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries.natural.files import files_under
from remnant.data.image_shapes import coloured, resized
from remnant.data.labelled import as_images, read_arrays, read_labels
from remnant.errors import InvalidInput, import_failure
from remnant.integrations.classifiers.weights import read_tensors

ENDINGS = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz", ".safetensors")
_ADVICE = (
    "It takes bytes, or numbers in [0, 1], of 1, 3 or 4 channels; what a model normalises is said "
    "apart."
)


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Pictures of one shape.

    Attributes:
        images: float32 ``(n, channels, height, width)``, in [0, 1].
        labels: int64 ``(n,)``; None where none were given.
    """

    images: Tensor
    labels: NDArray[np.int64] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture."""
        return tuple(self.images.shape[1:])


def read_pictures(
    path: str | Path,
    *,
    shape: Sequence[int] | None = None,
    count: int | None = None,
    label: int | None = None,
    rng: np.random.Generator,
) -> Pictures:
    """Read pictures and bring them into one shape.

    A folder is searched for PNG and JPEG files, in the folders under it too. A file is ``.npy``,
    or ``.npz`` or ``.safetensors`` with ``images`` and, where they are known, ``labels``; see
    ``read_labelled`` for the forms that images may have.

    Args:
        path: The folder or file.
        shape: ``(channels, height, width)`` to bring them into; None keeps that of the pictures,
            which must then all be of one size.
        count: The most to keep, drawn by ``rng``; None for all.
        label: Only those that have this label, where labels are known.
        rng: Draws them.

    Guarantees:
        * Pictures of the shape asked for are not changed.
        * Nothing is unpickled.

    Raises:
        InvalidInput: There are no pictures, a file is something else than it seems, values are
            outside [0, 1] or not finite, channels do not fit.
        MissingExtra: Pillow is not installed, for a folder.
    """
    where = Path(path)
    if where.is_dir():
        return Pictures(_folder(where, shape, count, rng), None)
    if where.suffix not in ARRAYS:
        what = "is not there" if not where.exists() else "is no folder"
        raise InvalidInput(
            f"{path} {what}, and no {', '.join(ARRAYS)} file.",
            hint="Pass a folder of PNG or JPEG files, or a file of arrays.",
        )
    given, labels = _arrays(where)
    rows = np.arange(len(given))
    if label is not None and labels is not None:
        rows = np.flatnonzero(labels == label)
        if rows.size == 0:
            raise InvalidInput(f"{path} holds no image of label {label}.")
    rows = rows[_chosen(rows.size, count, rng)]
    try:
        images = as_images(given[rows], f"{path}: images")
    except InvalidInput as fault:
        fault.hint = _ADVICE
        raise
    if not np.isfinite(images).all():
        raise InvalidInput(f"{path}: images hold values that are NaN or infinite.")
    pictures = torch.from_numpy(images)
    fit = pictures if shape is None else fitted(pictures, shape, str(path))
    return Pictures(fit, None if labels is None else labels[rows])


def fitted(images: Tensor, shape: Sequence[int], name: str) -> Tensor:
    """Bring pictures into a shape: grey by the usual weights, resized without regard to aspect.

    Args:
        images: ``(n, channels, height, width)``, in [0, 1].
        shape: ``(channels, height, width)``.
        name: What they are, for errors.

    Raises:
        InvalidInput: The channels can be made neither fewer nor more.

    Example:
        >>> fitted(torch.rand(2, 3, 32, 32), (1, 28, 28), "images").shape
        torch.Size([2, 1, 28, 28])
    """
    channels, height, width = shape
    have = images.shape[1]
    if have not in (1, channels) and (have, channels) != (3, 1):
        raise InvalidInput(
            f"{name}: images of {have} channels cannot be made images of {channels}.",
            hint="Give grey or coloured ones.",
        )
    made = resized(coloured(images.numpy(), channels), height, width)
    return torch.from_numpy(made).clamp(0.0, 1.0)


def _chosen(have: int, count: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    if count is None or have <= count:
        return np.arange(have)
    return np.sort(rng.choice(have, size=count, replace=False))


def _arrays(path: Path) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    if path.suffix == ".safetensors":
        kinds = {torch.bfloat16: torch.float32}  # which NumPy does not have
        arrays = {
            name: tensor.to(kinds.get(tensor.dtype, tensor.dtype)).numpy()
            for name, tensor in read_tensors(path).items()
        }
        if len(arrays) == 1:
            arrays = {"images": next(iter(arrays.values()))}
    else:
        arrays = read_arrays(path)
    if "images" not in arrays:
        raise InvalidInput(
            f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}; it takes images.",
            hint="Write it with numpy.savez(path, images=images).",
        )
    given = arrays["images"]
    if given.dtype.kind not in "fiub" or given.ndim not in (3, 4) or given.size == 0:
        raise InvalidInput(
            f"{path}: images of shape {given.shape} and type {given.dtype} are no images.",
            hint=_ADVICE,
        )
    if "labels" not in arrays:
        return given, None
    labels = read_labels(arrays["labels"], f"{path}: labels")
    if len(labels) != len(given):
        raise InvalidInput(f"{path}: {len(given)} images for {len(labels)} labels.")
    return given, labels


def _folder(
    folder: Path, shape: Sequence[int] | None, count: int | None, rng: np.random.Generator
) -> Tensor:
    paths = sorted(
        path
        for path in files_under(folder)
        if path.suffix.lower() in ENDINGS and path.is_file() and not path.name.startswith(".")
    )
    if not paths:
        raise InvalidInput(
            f"{folder} holds no {', '.join(ENDINGS)} file.", hint="Pass a folder of pictures."
        )
    chosen = [paths[at] for at in _chosen(len(paths), count, rng)]
    read = [_read(path) for path in chosen]
    if shape is not None:
        return torch.cat(
            [fitted(picture, shape, str(path)) for picture, path in zip(read, chosen, strict=True)]
        )
    sizes = sorted({tuple(picture.shape[2:]) for picture in read})
    if len(sizes) > 1:
        raise InvalidInput(
            f"{folder} holds pictures of {len(sizes)} sizes, such as {_sides(sizes[0])} and "
            f"{_sides(sizes[-1])}, and what the model takes is not known.",
            hint="Say it with shape=, such as 3x224x224.",
        )
    channels = max(picture.shape[1] for picture in read)
    whole = (channels, *sizes[0])
    return torch.cat([fitted(picture, whole, str(folder)) for picture in read])


def _sides(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


def pillow() -> Any:
    """Return Pillow's module of pictures.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        from PIL import Image
    except ImportError as fault:
        raise import_failure(
            fault,
            library="Pillow",
            message="Reading pictures needs Pillow, which is not installed.",
            extra="data",
        ) from fault
    return Image


def _read(path: Path) -> Tensor:
    """One picture, ``(1, 1 or 3, height, width)``; as if nothing in it were transparent."""
    Image = pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=["PNG", "JPEG"]) as picture:
                wide = picture.mode.startswith("I")
                grey = wide or picture.mode in ("1", "L", "LA")
                plain = picture if wide else picture.convert("L" if grey else "RGB")
                levels = np.asarray(plain, dtype=np.float32) / (65535 if wide else 255)
    except (OSError, ValueError, SyntaxError) as fault:
        raise InvalidInput(
            f"{path} is no PNG or JPEG picture, whatever its name says, or damaged.",
            hint="Take it out of the folder, or save it again.",
        ) from fault
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as fault:
        raise InvalidInput(f"{path} is too large to be opened.", hint="Make it smaller.") from fault
    pixels = torch.from_numpy(levels[None] if grey else levels.transpose(2, 0, 1).copy())
    return pixels[None]
