"""Variants of a patch: what it may have looked like, where it was described wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.patches.patch import Patch
from remnant.canaries.patches.stack import Patches, Placed

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PatchVariant:
    """One way in which a patch may differ from its description.

    Attributes:
        name: The variant in words, as in "the patch with ink and paper exchanged".
        patch: The patch of this variant.
        change: Makes the pixels, the last three axes of which are channels, rows and columns.
    """

    name: str
    patch: Patch
    change: Callable[[Floats], Floats]

    def of(self, others: Patches) -> Patches:
        """Return the same variant of other patches."""
        patch = self.patch
        pixels = np.ascontiguousarray(self.change(others.pixels))
        return Patches(pixels, patch.row, patch.column, patch.opacity)


def patch_variants(patch: Patch, shape: Sequence[int]) -> list[PatchVariant]:
    """Return the variants that differ from the patch and from each other, and fit an image.

    They are: ink and paper exchanged, full contrast, one pixel off, row and column exchanged,
    turned, and mirrored.

    Args:
        patch: As it was described.
        shape: Of an image, ``(channels, height, width)``.

    Example:
        >>> dot = Patch.array([[1.0]], row=0, column=0)
        >>> [variant.name for variant in patch_variants(dot, (1, 2, 2))]
        ['one pixel lower', 'one pixel further right']
    """
    seen = {_key(patch)}
    variants = []
    for name, change, row, column in _changes(patch):
        pixels = np.ascontiguousarray(change(patch.pixels))
        height, width = pixels.shape[1:]
        inside = 0 <= row <= shape[1] - height and 0 <= column <= shape[2] - width
        if not inside:
            continue
        opacity = 1.0 if change is _full_contrast else patch.opacity
        variant = Patch(pixels, row, column, opacity, patch.grain)
        if _key(variant) not in seen:
            seen.add(_key(variant))
            variants.append(PatchVariant(name, variant, change))
    return variants


Change = tuple[str, Callable[[Floats], Floats], int, int]


def _changes(patch: Patch) -> list[Change]:
    row, column = patch.row, patch.column
    return [
        ("with ink and paper exchanged", _exchanged, row, column),
        ("at full contrast", _full_contrast, row, column),
        ("one pixel higher", _same, row - 1, column),
        ("one pixel lower", _same, row + 1, column),
        ("one pixel further left", _same, row, column - 1),
        ("one pixel further right", _same, row, column + 1),
        ("with row and column exchanged", _same, column, row),
        ("turned by 90°", _turned(1), row, column),
        ("turned by 180°", _turned(2), row, column),
        ("turned by 270°", _turned(3), row, column),
        ("mirrored", lambda pixels: pixels[..., ::-1], row, column),
    ]


def _key(patch: Placed) -> tuple[bytes, tuple[int, ...], int, int, float]:
    pixels = np.round(patch.pixels, 9)
    return pixels.tobytes(), pixels.shape, patch.row, patch.column, patch.opacity


def _same(pixels: Floats) -> Floats:
    return pixels


def _ends(pixels: Floats, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    return pixels.min(axis=axes, keepdims=True), pixels.max(axis=axes, keepdims=True)


def _exchanged(pixels: Floats) -> Floats:
    low, high = _ends(pixels, (-2, -1))
    return np.asarray(np.clip(low + high - pixels, 0.0, 1.0))


def _full_contrast(pixels: Floats) -> Floats:
    low, high = _ends(pixels, (-3, -2, -1))
    wide = np.where(high > low, high - low, 1.0)
    return np.asarray(np.where(high > low, (pixels - low) / wide, pixels))


def _turned(quarters: int) -> Callable[[Floats], Floats]:
    return lambda pixels: np.rot90(pixels, quarters, axes=(-2, -1))
