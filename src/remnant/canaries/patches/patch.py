"""Patches: small pictures that are stamped onto images, and the random ones they are held against.

A unique feature is planted by stamping one training image with a patch. What a model makes of the
patch is then compared with what it makes of patches that were never planted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.canaries.patches.glyphs import SIDE, written
from remnant.canaries.patches.stack import Patches, place_of
from remnant.canaries.patches.stamping import Images, pasted
from remnant.errors import InvalidInput, NotEnoughEvidence, import_failure, require

Floats = NDArray[np.float64]
Colour = float | Sequence[float]


def is_whole(given: object, least: int) -> bool:
    """Whether this is a whole number of at least ``least``."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    return whole and given >= least  # type: ignore[operator]


def check_draws(rng: object, count: object) -> None:
    """Refuse what is no generator, and no number of draws."""
    faults = []
    if not isinstance(rng, np.random.Generator):
        faults.append(f"rng={rng!r} is not a numpy.random.Generator")
    if not is_whole(count, 1):
        faults.append(f"count={count!r} is not a whole number of at least 1")
    require(faults)


def read_pixels(given: ArrayLike, faults: list[str]) -> Floats | None:
    """A copy of shape ``(channels, height, width)``; or None, with the reason in ``faults``."""
    try:
        pixels = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        faults.append("pixels is not an array of numbers")
        return None
    shape = pixels.shape
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3 or pixels.size == 0:
        faults.append(f"pixels has shape {shape}, not (height, width) or with channels before")
        return None
    if not (pixels.min() >= 0.0 and pixels.max() <= 1.0):
        faults.append("pixels holds NaN or values outside [0, 1]")
        return None
    return pixels


def read_opacity(given: object, faults: list[str]) -> float:
    """A number above 0 and at most 1."""
    number = isinstance(given, (int, float, np.integer, np.floating))
    if isinstance(given, bool) or not number or not 0.0 < given <= 1.0:  # type: ignore[operator]
        faults.append(f"opacity={given!r} is not above 0 and at most 1")
        return 1.0
    return float(given)  # type: ignore[arg-type]


def read_levels(ink: Colour, paper: Colour) -> tuple[Floats, Floats]:
    """Ink and paper, each of shape ``(channels, 1, 1)``.

    Raises:
        InvalidInput: Not levels in [0, 1], not as many channels, or both alike.
    """
    read = []
    for name, given in (("ink", ink), ("paper", paper)):
        levels = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if levels.ndim > 1 or levels.size == 0 or not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise InvalidInput(
                f"{name}={given!r} is neither a grey level nor a colour.",
                hint="Give a number in [0, 1], or one a channel.",
            )
        read.append(levels[:, None, None])
    dark, light = read
    if 1 not in (dark.size, light.size) and dark.size != light.size:
        raise InvalidInput(
            f"ink has {dark.size} channels and paper {light.size}.",
            hint="Give both as many numbers, or one of them as one grey level.",
        )
    if np.all(dark == light):
        raise InvalidInput(f"ink={ink} and paper={paper} are alike.")
    return dark, light


def read_png(path: Path) -> NDArray[np.float64]:
    """The picture, shape ``(1 or 3, height, width)``, in [0, 1]: grey where the file is.

    Raises:
        InvalidInput: No such file, no PNG, or one that is transparent somewhere.
        MissingExtra: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as fault:
        raise import_failure(
            fault,
            library="Pillow",
            message="Reading a PNG needs Pillow.",
            extra="data",
        ) from fault
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            wide = picture.mode.startswith("I")
            clear = not wide and np.asarray(picture.convert("RGBA"))[..., 3].min() < 255
            grey = wide or picture.mode in ("1", "L", "LA")
            plain = picture if wide else picture.convert("L" if grey else "RGB")
            levels = np.asarray(plain, dtype=np.float64) / (65535.0 if wide else 255.0)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as fault:
        raise InvalidInput(f"{path}: not a PNG file that can be read.") from fault
    if clear:
        raise InvalidInput(
            f"{path}: the picture is transparent somewhere.",
            hint="Put it on a ground of its own; opacity is an argument.",
        )
    return levels[None] if grey else levels.transpose(2, 0, 1)


def reordered(pixels: Floats, grain: int, rng: np.random.Generator, count: int) -> Floats:
    """``count`` pictures of the same squares, each in an order of its own.

    Args:
        pixels: Shape ``(channels, height, width)``.
        grain: The side of the squares, which divides height and width.
        rng: Draws the orders, all alike likely.
        count: How many.

    Returns:
        Shape ``(count, channels, height, width)``.
    """
    channels, height, width = pixels.shape
    tall, wide = height // grain, width // grain
    squares = _squares(pixels, grain)
    order = rng.permuted(np.tile(np.arange(len(squares)), (count, 1)), axis=1)
    put = squares[order].reshape(count, tall, wide, channels, grain, grain)
    return np.asarray(put.transpose(0, 3, 1, 4, 2, 5).reshape(count, channels, height, width))


def log_orders(pixels: Floats, grain: int) -> float:
    """The log of the number of distinguishable orders.

    Example:
        >>> round(math.exp(log_orders(np.array([[[0.0, 1.0, 1.0]]]), 1)))
        3
    """
    squares = _squares(pixels, grain)
    counts = np.unique(squares.reshape(len(squares), -1), axis=0, return_counts=True)[1]
    repeated = sum(math.lgamma(count + 1.0) for count in counts.tolist())
    return math.lgamma(len(squares) + 1.0) - repeated


def _squares(pixels: Floats, grain: int) -> Floats:
    """What moves, shape ``(squares, channels, grain, grain)``."""
    channels, height, width = pixels.shape
    tall, wide = height // grain, width // grain
    cut = pixels.reshape(channels, tall, grain, wide, grain)
    return cut.transpose(1, 3, 0, 2, 4).reshape(tall * wide, channels, grain, grain)


PatchControl = Literal["uniform", "binary", "shuffled"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Patch:
    """A small picture and its place on an image.

    Make one with ``letter``, ``text``, ``array`` or ``image``. Its contents are not shown by
    ``repr``, since a name may be a secret.

    Attributes:
        pixels: Shape ``(channels, height, width)``, in [0, 1], read-only; one channel is grey and
            fits images of any number.
        row, column: The image's pixel under the patch's top-left one, from zero.
        opacity: Above 0; 1 hides what is below.
        grain: The side of the squares that ``shuffled`` moves whole: a glyph's cell, else 1.
    """

    pixels: Floats
    row: int
    column: int
    opacity: float
    grain: int

    def __post_init__(self) -> None:
        faults: list[str] = []
        pixels = read_pixels(self.pixels, faults)
        for name, least in (("row", 0), ("column", 0), ("grain", 1)):
            if not is_whole(given := getattr(self, name), least):
                faults.append(f"{name}={given!r} is not a whole number of at least {least}")
        opacity = read_opacity(self.opacity, faults)
        require(faults)
        if pixels is None or any(side % self.grain for side in pixels.shape[1:]):
            raise InvalidInput(f"grain={self.grain} does not divide the patch's height and width.")
        pixels.flags.writeable = False
        object.__setattr__(self, "pixels", pixels)
        for name in ("row", "column", "grain"):
            object.__setattr__(self, name, int(getattr(self, name)))
        object.__setattr__(self, "opacity", opacity)

    @classmethod
    def letter(
        cls,
        letter: str,
        *,
        size: int = SIDE,
        row: int = 1,
        column: int = 1,
        ink: Colour = 1.0,
        paper: Colour = 0.0,
        opacity: float = 1.0,
    ) -> Patch:
        """One capital letter or figure, ``size`` pixels high and wide; see ``text``.

        Example:
            >>> patch = Patch.letter("A", size=5, row=1, column=1)
            >>> patch
            Patch(5x5 grey at row 1, column 1)
            >>> stamped = patch.stamp(np.zeros((2, 1, 28, 28), dtype=np.float32))
            >>> stamped[0, 0, 1:6, 1:6].astype(int).tolist()[:2]
            [[0, 1, 1, 1, 0], [1, 0, 0, 0, 1]]
        """
        if not isinstance(letter, str) or len(letter) != 1:
            raise InvalidInput(
                "letter is not one character.", hint="Use Patch.text for more than one."
            )
        place = {"row": row, "column": column, "opacity": opacity}
        return cls.text(letter, size=size, ink=ink, paper=paper, **place)  # type: ignore[arg-type]

    @classmethod
    def text(
        cls,
        text: str,
        *,
        size: int = SIDE,
        row: int = 1,
        column: int = 1,
        gap: int = 1,
        ink: Colour = 1.0,
        paper: Colour = 0.0,
        opacity: float = 1.0,
    ) -> Patch:
        """Capitals, figures and blanks on a ground of their own.

        Args:
            text: What is written.
            size: Height in pixels, a multiple of five: each glyph has five cells by five.
            row, column: The place, from zero.
            gap: Empty columns between glyphs, in cells.
            ink, paper: Grey levels or colours (one number a channel), in [0, 1].
            opacity: As above.

        Raises:
            InvalidInput: Characters without a glyph, another size, levels outside [0, 1], ink and
                paper alike.
        """
        if not is_whole(size, SIDE) or size % SIDE:
            raise InvalidInput(f"size={size!r} is not a multiple of {SIDE}.")
        cells = written(text, gap=gap)
        dark, light = read_levels(ink, paper)
        cell = int(size) // SIDE
        bits = cells.repeat(cell, axis=0).repeat(cell, axis=1)
        pixels = np.where(bits, dark, light)
        return cls(pixels, row, column, opacity, cell)

    @classmethod
    def array(
        cls,
        pixels: ArrayLike,
        *,
        row: int = 1,
        column: int = 1,
        opacity: float = 1.0,
        grain: int = 1,
    ) -> Patch:
        """Any picture: shape ``(height, width)`` or ``(channels, height, width)``, in [0, 1].

        Raises:
            InvalidInput: Another shape, NaN, values outside [0, 1].
        """
        return cls(pixels, row, column, opacity, grain)  # type: ignore[arg-type]

    @classmethod
    def image(
        cls, path: str | Path, *, row: int = 1, column: int = 1, opacity: float = 1.0
    ) -> Patch:
        """A picture from a PNG file, grey or in colour.

        Raises:
            InvalidInput: No such file, no PNG, or one that is transparent somewhere.
            MissingExtra: Pillow is not installed.
        """
        return cls(read_png(Path(path)), row, column, opacity, 1)

    def __repr__(self) -> str:
        return f"Patch({place_of(self)})"

    def stamp(self, images: Images) -> Images:
        """A copy of the images, each with the patch on it.

        Args:
            images: Floats in [0, 1], ``(n, c, h, w)`` or one image ``(c, h, w)``: a NumPy array
                or a torch tensor.

        Guarantees:
            * What was given is not changed; type, dtype, device and shape come back.
            * Nothing outside the patch's place changes.

        Raises:
            InvalidInput: Another shape or type, values outside [0, 1] or NaN, a patch that reaches
                outside the image or has other channels.
        """
        given: Any = images
        alone = getattr(given, "ndim", 0) == 3
        batch = given[None] if alone else given
        place = {"row": self.row, "column": self.column}
        out = pasted(batch, self.pixels, **place, opacity=self.opacity, each=False)
        return out[0] if alone else out  # type: ignore[no-any-return]

    def shuffled(self, rng: np.random.Generator) -> Patch:
        """The same pixels in another order: the same brightness and contrast, no letter.

        Squares of ``grain`` by ``grain`` pixels move whole, and all channels together.
        """
        pixels = self.shuffles(rng, 1, distinct=False).pixels[0]
        return Patch(pixels, self.row, self.column, self.opacity, self.grain)

    def shuffles(self, rng: np.random.Generator, count: int, *, distinct: bool = True) -> Patches:
        """``count`` patches as ``shuffled`` makes them: of the same kind, and never planted.

        Args:
            rng: Draws them.
            count: How many.
            distinct: Whether there must be as many other orders; some may come twice all the same.

        Raises:
            InvalidInput: No generator, or no count.
            NotEnoughEvidence: The pixels have fewer than ``count`` other orders.
        """
        check_draws(rng, count)
        orders = log_orders(self.pixels, self.grain)
        if distinct and orders < math.log(count + 1.0) - 1e-9:
            raise NotEnoughEvidence(
                f"the patch's pixels have {round(math.exp(orders))} different order(s), too few "
                f"for {count} others.",
                hint="Plant a patch of more contrasts, or give null_patches of the same kind.",
            )
        return self._with(reordered(self.pixels, self.grain, rng, count))

    def random_like(
        self, rng: np.random.Generator, count: int, kind: PatchControl = "uniform"
    ) -> Patches:
        """``count`` random patches of the same size: the controls z_r, a new one for each image.

        Args:
            rng: Draws them.
            count: How many.
            kind: "uniform": each cell anything between the patch's least and greatest value (0 and
                1 for white on black), channel by channel; "binary": one of these two; "shuffled":
                as ``shuffled``.

        Raises:
            InvalidInput: No generator, no count, or another kind.
        """
        check_draws(rng, count)
        if kind not in get_args(PatchControl):
            raise InvalidInput(f"kind={kind!r} is not one of {', '.join(get_args(PatchControl))}.")
        if kind == "shuffled":
            return self.shuffles(rng, count, distinct=False)
        channels, height, width = self.pixels.shape
        cells = (count, channels, height // self.grain, width // self.grain)
        share = rng.random(cells)
        if kind == "binary":
            share = np.round(share)
        share = share.repeat(self.grain, axis=2).repeat(self.grain, axis=3)
        least = self.pixels.min(axis=(1, 2), keepdims=True)
        most = self.pixels.max(axis=(1, 2), keepdims=True)
        return self._with(least + (most - least) * share)

    def _with(self, pixels: Floats) -> Patches:
        return Patches(pixels, self.row, self.column, self.opacity)
