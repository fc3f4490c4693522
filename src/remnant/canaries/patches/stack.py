"""Many patches at once: one for each image that is stamped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.patches.stamping import Images, pasted
from remnant.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Placed(Protocol):
    """What a patch and a stack of patches have in common: pixels, a place and an opacity."""

    @property
    def pixels(self) -> Floats:
        """Brightness in [0, 1]; the last three axes are channels, rows and columns."""
        ...

    @property
    def row(self) -> int:
        """The image's row under the top-left pixel."""
        ...

    @property
    def column(self) -> int:
        """The image's column under the top-left pixel."""
        ...

    @property
    def opacity(self) -> float:
        """1 hides what is below."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Patches:
    """Many patches of one size for one place: one for each image that is stamped.

    Attributes:
        pixels: Shape ``(count, channels, height, width)``, in [0, 1]; one channel is grey.
        row, column: The image's pixel under the patches' top-left one, from zero.
        opacity: 1 hides what is below, towards 0 it shows.
    """

    pixels: Floats
    row: int
    column: int
    opacity: float

    @classmethod
    def of(cls, patches: Sequence[Placed]) -> Patches:
        """Stack patches that differ in nothing but their pixels.

        Raises:
            InvalidInput: None were given, or they differ in size, place or opacity.
        """
        places = {(patch.pixels.shape, patch.row, patch.column, patch.opacity) for patch in patches}
        if len(places) != 1:
            raise InvalidInput(
                f"{len(patches)} patches have {len(places)} different sizes, places or opacities.",
                hint="Give at least one patch, all of one size, at one place, of one opacity.",
            )
        first = patches[0]
        pixels = np.stack([patch.pixels for patch in patches])
        return cls(pixels, first.row, first.column, first.opacity)

    def __len__(self) -> int:
        return len(self.pixels)

    def __repr__(self) -> str:
        return f"Patches({len(self)} of {place_of(self)})"

    def take(self, rows: Ints) -> Patches:
        """Return these patches, in this order."""
        return Patches(self.pixels[rows], self.row, self.column, self.opacity)

    def stamp(self, images: Images) -> Images:
        """A copy of the images, the i-th with the i-th patch.

        Raises:
            InvalidInput: As for ``Patch.stamp``; or not as many images as patches.
        """
        place = {"row": self.row, "column": self.column}
        return pasted(images, self.pixels, **place, opacity=self.opacity, each=True)


def place_of(patch: Placed) -> str:
    """Size and place in words, without what is shown."""
    channels, height, width = patch.pixels.shape[-3:]
    kind = "grey" if channels == 1 else f"in {channels} channels"
    seen = "" if patch.opacity == 1.0 else f", opacity {patch.opacity:g}"
    return f"{height}x{width} {kind} at row {patch.row}, column {patch.column}{seen}"
