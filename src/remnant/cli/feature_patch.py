"""The patch that ``remnant feature`` asks about, from a picture or from words nobody prints."""

from __future__ import annotations

import math
import string
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.naming import naming
from remnant.errors import InvalidInput, NotEnoughEvidence

if TYPE_CHECKING:
    import numpy as np

    from remnant.canaries import Patch, Patches

_KINDS = (string.ascii_uppercase, string.digits)
_OPTIONS = {name: f"--{name}" for name in ("size", "row", "column", "opacity", "ink", "paper")}
_ENDINGS = (".png", ".npy")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AskedPatch:
    """The options that say what the patch is; what is written is not shown by ``repr``."""

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

    def faults(self) -> list[str]:
        """Return what does not go together."""
        given = [one for one in (self.patch, self.text, self.text_file) if one is not None]
        if len(given) != 1:
            which = "none is" if not given else "more than one is"
            return [f"it takes one of --patch, --text and --text-file, and {which} given"]
        if self.patch is None:
            return []
        idle = {
            "--size": self.size != 5,
            "--ink": self.ink is not None,
            "--paper": self.paper is not None,
            "--against words": self.against == "words",
        }
        return [f"{option} is for --text and --text-file" for option, used in idle.items() if used]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Found:
    """A patch, and what may be said about it.

    Attributes:
        patch: The patch.
        what: Kind and size in words, never what is written.
        text: What is written, for other words of the same kind; None for a picture.
    """

    patch: Patch
    what: str
    text: str | None


def read_patch(asked: AskedPatch) -> Found:
    """Make the patch.

    Raises:
        InvalidInput: In the words of the options; what is written is never in it.
        MissingExtra: Pillow is not installed, for a picture.
    """
    place = {"row": asked.row, "column": asked.column, "opacity": asked.opacity}
    with naming("--patch", asked.patch, **_OPTIONS):
        if asked.patch is not None:
            patch, kind, text = _picture(asked.patch, place), "a picture", None
        else:
            text = _checked(asked.text if asked.text is not None else _from_file(asked.text_file))
            patch = _written(text, asked, place)
            kind = "a letter" if len(text) == 1 else "a text"
    height, width = patch.pixels.shape[1:]
    return Found(patch, f"{kind} of {height} x {width} pixels", text)


def other_words(found: Found, asked: AskedPatch, count: int, rng: np.random.Generator) -> Patches:
    """Other words, each letter another letter or the same, each figure a figure, all different.

    Raises:
        InvalidInput: The patch is a picture.
        NotEnoughEvidence: There are not so many.
    """
    from remnant.canaries import Patches

    if found.text is None:
        raise InvalidInput("--against words is for --text and --text-file.")
    kinds = [next((kind for kind in _KINDS if one in kind), one) for one in found.text]
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
        if word != found.text:
            drawn[word] = None
    place = {"row": asked.row, "column": asked.column, "opacity": asked.opacity}
    return Patches.of([_written(word, asked, place) for word in drawn])


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


def _written(text: str, asked: AskedPatch, place: dict[str, Any]) -> Patch:
    from remnant.canaries import Patch

    ink, paper = (
        level if given is None else given[0] if len(given) == 1 else given
        for given, level in ((asked.ink, 1.0), (asked.paper, 0.0))
    )
    return Patch.text(text, size=asked.size, ink=ink, paper=paper, **place)


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
    wrong = [at for at, one in enumerate(text, start=1) if one not in GLYPHS]
    if wrong:
        raise InvalidInput(
            f"{len(wrong)} character(s) of the text have no glyph, the first at place {wrong[0]}.",
            hint="Use capitals A to Z, 0 to 9 and blanks; or pass a picture of it as --patch.",
        )
    return text
