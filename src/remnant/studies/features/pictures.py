"""The pictures of a run that stamped or tested a patch, as blocks of its page."""

from __future__ import annotations

from collections.abc import Sequence

from remnant.errors import InvalidInput, RecordError
from remnant.report.blocks import Picture, Pictures
from remnant.report.pictures import png
from remnant.studies.features.formats import capital
from remnant.studies.features.result import PictureKind, PictureRow
from remnant.studies.shared.pages import RunFacts

MOST_PICTURES = 6
_ALT: dict[PictureKind, str] = {
    "clean": "Training image {} as it was",
    "patched": "Training image {} with the patch",
    "random": "Training image {} with a random patch",
    "image": "Image {} as it was",
    "image patched": "Image {} with the patch",
    "image random": "Image {} with a random patch",
}


def picture_blocks(
    rows: Sequence[PictureRow], run: RunFacts, *, part: str
) -> list[tuple[PictureKind, Pictures]]:
    """Make a strip of at most six pictures of every kind that the record holds.

    Args:
        rows: Where the record holds them.
        run: Reads the arrays.
        part: Name of the result that lists them, for errors.

    Raises:
        RecordError: The record lacks an array, or an array holds no pictures.
    """
    blocks = []
    for place, row in enumerate(rows):
        images = run.array(row.array)
        try:
            files = [png(image) for image in images[:MOST_PICTURES]]
        except (InvalidInput, IndexError, TypeError) as fault:
            raise RecordError(
                f"{run.name} holds a malformed result {part!r}: {part}.pictures[{place}].array "
                f"cannot be shown: {str(fault).removesuffix('.')}."
            ) from fault
        height, width = images.shape[-2:]
        pictures = tuple(
            Picture(file, _ALT[row.what].format(number), width, height)
            for number, file in enumerate(files, start=1)
        )
        if pictures:
            blocks.append((row.what, Pictures(capital(row.title), pictures)))
    return blocks
