"""The patch of ``remnant feature``, from a picture, or from a text that is never printed."""

from __future__ import annotations

import math
import string
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.options.declared import given, option_names
from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput, NotEnoughEvidence

if TYPE_CHECKING:
    import numpy as np

    from remnant.canaries import Patch, Patches

_KINDS = (string.ascii_uppercase, string.digits)
_OPTIONS = option_names("size", "row", "column", "opacity", "ink", "paper")
_ENDINGS = (".png", ".npy")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PatchOptions:
    """The options that say what the patch is; ``repr`` does not show its text."""

    patch: Path | None
    text: str | None
    text_file: str | None
    size: int
    row: int
    column: int
    opacity: float
    ink: tuple[float, ...] | None
    paper: tuple[float, ...] | None
    against: str

    @property
    def place(self) -> dict[str, Any]:
        """Row, column and opacity of the patch."""
        return {"row": self.row, "column": self.column, "opacity": self.opacity}

    def faults(self) -> list[str]:
        """Return which options contradict each other or are missing."""
        sources = given({"patch": self.patch, "text": self.text, "text_file": self.text_file})
        if len(sources) != 1:
            which = "more than one is" if sources else "none is"
            return [f"it takes one of --patch, --text and --text-file, and {which} given"]
        if self.patch is None:
            return []
        of_text = given({"size": self.size != 5, "ink": self.ink, "paper": self.paper})
        of_text += ["--against words"] if self.against == "words" else []
        return [f"{option} is for --text and --text-file" for option in of_text]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadPatch:
    """A patch, and its description.

    Attributes:
        patch: The patch.
        what: Kind and size in words, never its text.
        text: Its text, from which other words are made; None for a picture.
    """

    patch: Patch
    what: str
    text: str | None


def read_patch(options: PatchOptions) -> ReadPatch:
    """Make the patch.

    Raises:
        InvalidInput: It names options, and never contains the text.
        MissingExtra: Pillow is not installed, for a picture.
    """
    with naming("--patch", options.patch, **_OPTIONS):
        if options.patch is not None:
            patch, kind, text = _picture(options.patch, options.place), "a picture", None
        else:
            text = _checked(
                options.text if options.text is not None else _from_file(options.text_file)
            )
            patch = _written(text, options)
            kind = "a letter" if len(text) == 1 else "a text"
    height, width = patch.pixels.shape[1:]
    return ReadPatch(patch, f"{kind} of {height} x {width} pixels", text)


def other_words(
    read: ReadPatch, options: PatchOptions, count: int, rng: np.random.Generator
) -> Patches:
    """Other words of the same length: letters for letters, digits for digits, all different.

    Raises:
        InvalidInput: The patch is a picture.
        NotEnoughEvidence: There are fewer than ``count``.
    """
    from remnant.canaries import Patches

    if read.text is None:
        raise InvalidInput("--against words is for --text and --text-file.")
    kinds = [next((kind for kind in _KINDS if sign in kind), sign) for sign in read.text]
    others = math.prod(len(kind) for kind in kinds) - 1
    if others < count:
        raise NotEnoughEvidence(
            f"--nulls {count}: there are {others} other words of this length and kind.",
            hint=f"Pass --nulls {others}, or --against pixels."
            if others >= 19
            else "Pass --against pixels.",
        )
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        word = "".join(kind[int(rng.integers(len(kind)))] for kind in kinds)
        if word != read.text:
            drawn[word] = None
    return Patches.of([_written(word, options) for word in drawn])


def _picture(path: Path, place: dict[str, Any]) -> Patch:
    import numpy as np

    from remnant.canaries import Patch
    from remnant.integrations.classifiers.samples import read_array

    if path.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"{path} is neither a .png nor an .npy file.")
    if not path.is_file():
        raise InvalidInput(f"{path} is not there.", hint="Check its path.")
    if path.suffix.lower() == ".png":
        return Patch.image(path, **place)
    pixels = read_array(path)
    if pixels.dtype == np.uint8:
        pixels = pixels / 255
    return Patch.array(pixels, **place)


def _written(text: str, options: PatchOptions) -> Patch:
    from remnant.canaries import Patch

    ink, paper = (
        level if own is None else own[0] if len(own) == 1 else own
        for own, level in ((options.ink, 1.0), (options.paper, 0.0))
    )
    return Patch.text(text, size=options.size, ink=ink, paper=paper, **options.place)


def _from_file(name: str | None) -> str:
    """The one line of a file, or of standard input for ``-``."""
    try:
        file = Path(str(name))
        read = sys.stdin.read() if name == "-" else file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"--text-file {name} is not there.", hint="Check its path.") from None
    except OSError as fault:
        raise InvalidInput(f"--text-file {name} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"--text-file {name} is not text in UTF-8.") from None
    text = read.rstrip("\r\n")
    if "\n" in text:
        raise InvalidInput(
            f"--text-file {name} holds several lines.", hint="Write the text into one line."
        )
    return text


def _checked(text: str) -> str:
    from remnant.canaries.patches.glyphs import GLYPHS

    if not text.strip(" "):
        raise InvalidInput("the text is empty.", hint="Use A to Z, 0 to 9, and blanks between.")
    wrong = [at for at, sign in enumerate(text, start=1) if sign not in GLYPHS]
    if wrong:
        raise InvalidInput(
            f"{len(wrong)} character(s) of the text have no glyph, the first at place {wrong[0]}.",
            hint="Use capitals A to Z, 0 to 9 and blanks; or pass a picture of it as --patch.",
        )
    return text
