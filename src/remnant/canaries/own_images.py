"""Images with labels as canaries for classifiers: some are planted, others held out as controls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.canaries.dealing import deal
from remnant.canaries.template import Canary
from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput

_OWNER_ONLY = 0o600
_PIXELS, _LABELS = "pixel_values", ("labels", "label")

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


class ImageCanaries:
    """Images and the labels that they are planted with, in the form in which the data has them.

    Mislabelled images are made with ``remnant.canaries.mislabelled`` from images that are not in
    the training data, images of random blocks with ``remnant.canaries.odd``.

    Args:
        images: Shape ``(n, ...)``, as the training's data set yields them: after its transforms.
        labels: One whole number an image.

    Raises:
        InvalidInput: There is not one label an image, an image is not finite, or two are equal.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> ImageCanaries(rng.random((40, 1, 8, 8)), rng.integers(0, 10, 40))
        ImageCanaries(<40 images of 1 x 8 x 8>)
    """

    def __init__(self, images: ArrayLike, labels: ArrayLike) -> None:
        try:
            self.images: Images = np.asarray(images, dtype=np.float32)
            self.labels: Labels = np.asarray(labels, dtype=np.int64)
        except (TypeError, ValueError, RuntimeError):
            raise InvalidInput(
                "images or labels of the canaries are not arrays of numbers."
            ) from None
        if self.images.ndim < 2 or self.labels.shape != (len(self.images),):
            raise InvalidInput(
                f"images has the shape {self.images.shape} and labels {self.labels.shape}; it "
                "takes (n, ...) and (n,).",
                hint="Pass one label an image.",
            )
        if not np.isfinite(self.images).all() or (self.labels < 0).any():
            raise InvalidInput("images hold numbers that are not finite, or a label is negative.")
        if len({image.tobytes() for image in self.images}) < len(self.images):
            raise InvalidInput(
                "Two of the images are equal: in a batch they could not be distinguished.",
                hint="Remove duplicates.",
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.images.shape[1:]))
        return f"ImageCanaries(<{len(self)} images of {shape}>)"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OwnImages:
    """Images that are planted, and images drawn from the same pool that never are.

    Attributes:
        images: Of the canaries and then of the controls.
        labels: In the same order.
        canaries, controls: A name for each of them.
        repeats: How often each canary is planted.
        seed: What they were dealt with.
    """

    images: Images
    labels: Labels
    canaries: tuple[Canary, ...]
    controls: tuple[Canary, ...]
    repeats: tuple[int, ...]
    seed: int
    drawn: bool = True

    def __repr__(self) -> str:
        return f"OwnImages(<{len(self.canaries)} canaries, {len(self.controls)} controls>)"

    @property
    def copies(self) -> NDArray[np.int64]:
        """The canary of each copy to be planted: 0 as often as it is planted, then 1, and so on."""
        return np.repeat(np.arange(len(self.canaries), dtype=np.int64), self.repeats)

    @property
    def fingerprint(self) -> str:
        """A digest (SHA-256) of images, labels, repeats and seed."""
        digest = hashlib.sha256(np.ascontiguousarray(self.images).tobytes())
        digest.update(self.labels.tobytes() + repr((self.repeats, self.seed)).encode())
        return digest.hexdigest()

    def write(self, path: Path) -> None:
        """Write images, labels and repeats as an npz file; only the owner may read it.

        Raises:
            InvalidInput: It cannot be written.
        """
        repeats = np.array([*self.repeats, *[0] * len(self.controls)], dtype=np.int64)
        with writing_whole(path, mode=_OWNER_ONLY) as file:
            np.savez(file, images=self.images, labels=self.labels, repeats=repeats)

    def row(self, name: str, like: Any) -> Any:
        """Return a canary as a row of the data.

        Args:
            name: Of the canary.
            like: A row of the data: image and label, or a mapping with ``pixel_values`` and a
                label.

        Raises:
            InvalidInput: The data has rows or images of another kind.
        """
        number = int(name.rsplit(" ", 1)[1])
        pixels, label, key = _parts(like)
        image = _alike(self.images[number], pixels, "image")
        shown = _alike(self.labels[number], label, "label")
        if isinstance(like, Mapping):
            return {**like, _PIXELS: image, key: shown}
        return (image, shown)


def deal_images(
    pool: ImageCanaries, *, controls: Any, repeats: Sequence[int], seed: int
) -> OwnImages:
    """Deal images at random to controls and to numbers of repeats.

    Args:
        pool: All of them.
        controls: How many are held out, drawn at random.
        repeats: How often images are planted; each number gets equally many, or one more.
        seed: Deals the images.

    Raises:
        InvalidInput: A number is not a whole one in its range.
        NotEnoughEvidence: There are too few images.
    """
    dealt = deal(len(pool), controls=controls, repeats=repeats, seed=seed)
    order = [*dealt.planted, *dealt.held_out]
    names = [Canary(f"image {number}", f"image {number}") for number in range(len(order))]
    return OwnImages(
        images=pool.images[order],
        labels=pool.labels[order],
        canaries=tuple(names[: len(dealt.planted)]),
        controls=tuple(names[len(dealt.planted) :]),
        repeats=dealt.repeats,
        seed=int(seed),
    )


def _parts(row: Any) -> tuple[Any, Any, str]:
    """The image and the label of a row, and the label's name in a mapping."""
    if isinstance(row, Mapping) and _PIXELS in row:
        for name in _LABELS:
            if name in row:
                return row[_PIXELS], row[name], name
    if isinstance(row, tuple | list) and len(row) == 2:
        return row[0], row[1], ""
    raise InvalidInput(
        f"The data holds rows of type {type(row).__name__}, into which no image can be planted.",
        hint="It takes (image, label), or a mapping with pixel_values and labels.",
    )


def _alike(value: Any, like: Any, what: str) -> Any:
    """A value in the type of another one: a tensor, an array or a number."""
    shape = tuple(getattr(like, "shape", ()))
    if shape != np.shape(value):
        raise InvalidInput(
            f"The {what} of a canary has the shape {np.shape(value)}, and those of the data have "
            f"{shape}.",
            hint="Pass the canaries as the data set yields its rows: after its transforms.",
        )
    if hasattr(like, "new_tensor"):
        return like.new_tensor(value)
    if isinstance(like, np.ndarray):
        return value.astype(like.dtype)
    return type(like)(value)
