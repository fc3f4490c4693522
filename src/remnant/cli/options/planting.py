"""Plants the canaries of several sets in one text file, and records their lines."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.options.naming import naming
from remnant.cli.options.out_files import OWNER_ONLY, check_place, other_content
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.canaries import CanarySet

Lines = list[list[list[int]]]


@dataclass(frozen=True, slots=True)
class PlantedCopy:
    """A planted copy in a temporary place.

    Attributes:
        copy: Its temporary place.
        place: Its final place.
        lines: For each set and each of its canaries, the lines that hold it, counted from 1.
        force: Whether another file at ``place`` may be overwritten.
    """

    copy: Path
    place: Path
    lines: Lines
    force: bool

    def check(self) -> None:
        """Refuse to overwrite a file of other content.

        Raises:
            InvalidInput: There is one at ``place``, and ``force`` is not set.
        """
        if self.force or not self.place.exists():
            return
        if not filecmp.cmp(self.copy, self.place, shallow=False):
            raise other_content("--into", self.place)

    def settle(self) -> None:
        """Move the copy to its final place; only its owner can read it.

        Raises:
            InvalidInput: It cannot be written.
        """
        try:
            os.chmod(self.copy, OWNER_ONLY)
            os.replace(self.copy, self.place)
        except OSError as fault:
            raise InvalidInput(
                f"--into {self.place} cannot be written: {fault.strerror}."
            ) from None


@contextmanager
def planting(
    sets: Sequence[CanarySet],
    *,
    corpus: Path,
    into: Path,
    field: str | None,
    seed: int,
    force: bool,
) -> Iterator[PlantedCopy]:
    """Plant the sets one after another, in a folder of their own beside ``into``.

    Args:
        sets: What is planted.
        corpus: The text file to copy.
        into: The file to write.
        field: For JSON lines, the field that holds the text.
        seed: Of the places of the copies.
        force: Whether another file at ``into`` may be overwritten.

    Raises:
        InvalidInput: See ``insert_into_file``; or ``into`` is no place for a file.
    """
    check_place("--into", into)
    if into.exists() and corpus.exists() and into.samefile(corpus):
        raise InvalidInput(
            f"--into {into} is also the corpus.", hint="Write the planted copy to another file."
        )
    with _folder(into) as beside:
        source = corpus
        lines: Lines = []
        for number, canary_set in enumerate(sets):
            copy = beside / str(number)
            with naming(source="--insert", field="--field", seed="--seed"):
                where = _plant(canary_set, source, copy, field, [seed, number], corpus)
            shifted = [[_moved(earlier, where) for earlier in each] for each in lines]
            lines = [*shifted, [[] for _ in canary_set.canaries]]
            for position, canary in where:
                lines[-1][canary].append(position)
            if source is not corpus:
                source.unlink()
            source = copy
        yield PlantedCopy(
            source, into, [[[at + 1 for at in c] for c in each] for each in lines], force
        )


@contextmanager
def _folder(into: Path) -> Iterator[Path]:
    from remnant.canaries.whole_file import folder_beside

    with ExitStack() as stack:
        try:
            folder = stack.enter_context(folder_beside(into))
        except OSError as fault:
            raise InvalidInput(f"--into {into} cannot be written: {fault.strerror}.") from None
        yield folder


def _plant(
    canary_set: CanarySet,
    source: Path,
    copy: Path,
    field: str | None,
    seed: list[int],
    corpus: Path,
) -> list[list[int]]:
    """Plant a set and return its positions; errors name the corpus, not a temporary copy."""
    import numpy as np

    from remnant.canaries import insert_into_file

    rng = np.random.default_rng(seed)
    try:
        where: list[list[int]] = insert_into_file(
            source, copy, canary_set, rng=rng, field=field, mode=OWNER_ONLY
        ).tolist()
    except InvalidInput as fault:
        fault.message = fault.message.replace(str(source), str(corpus))
        raise
    return where


def _moved(positions: list[int], where: list[list[int]]) -> list[int]:
    """Return the new positions of lines after others were inserted, both in rising order."""
    moved = []
    inserted = 0
    for position in positions:
        while inserted < len(where) and where[inserted][0] <= position + inserted:
            inserted += 1
        moved.append(position + inserted)
    return moved
