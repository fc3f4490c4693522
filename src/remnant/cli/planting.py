"""Puts the canaries of several sets into one text file, and keeps count of where they stand."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.naming import naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.canaries import CanarySet

Lines = list[list[list[int]]]
_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted copy that waits beside its place.

    Attributes:
        copy: Where it waits.
        place: Where it goes.
        lines: For each set and each of its canaries, the lines that hold it, counted from 1.
    """

    copy: Path
    place: Path
    lines: Lines

    def settle(self) -> None:
        """Put the copy in its place; only its owner can read it.

        Raises:
            InvalidInput: It cannot be put there.
        """
        try:
            os.chmod(self.copy, _OWNER_ONLY)
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
) -> Iterator[Planted]:
    """Plant the sets one after another, in a folder of their own beside ``into``.

    Args:
        sets: What is planted.
        corpus: The text file to copy.
        into: The file to write.
        field: For JSON lines, the field that holds the text.
        seed: Places the copies.
        force: Whether another file at ``into`` may be overwritten.

    Raises:
        InvalidInput: See ``insert_into_file``; or ``into`` is taken or cannot be written.
    """
    if into.is_dir() or not into.parent.is_dir():
        raise InvalidInput(f"--into {into} is not the path of a file in a folder that exists.")
    refuse_odd("--into", into)
    if into.exists() and corpus.exists() and into.samefile(corpus):
        raise InvalidInput(
            f"--into {into} is the corpus too.", hint="Write the planted copy to another file."
        )
    with _folder(into) as beside:
        source = corpus
        lines: Lines = []
        for number, one in enumerate(sets):
            copy = beside / str(number)
            with naming(source="--insert", field="--field", seed="--seed"):
                where = _plant(one, source, copy, field, [seed, number], corpus)
            shifted = [[_moved(earlier, where) for earlier in each] for each in lines]
            lines = [*shifted, [[] for _ in one.canaries]]
            for position, canary in where:
                lines[-1][canary].append(position)
            if source is not corpus:
                source.unlink()
            source = copy
        if into.exists() and not force and not filecmp.cmp(source, into, shallow=False):
            raise taken("--into", into)
        yield Planted(source, into, [[[at + 1 for at in c] for c in each] for each in lines])


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
    one: CanarySet, source: Path, copy: Path, field: str | None, seed: list[int], corpus: Path
) -> list[list[int]]:
    """Plant one set, and return where; an error names the corpus, whichever copy was read."""
    import numpy as np

    from remnant.canaries import insert_into_file

    rng = np.random.default_rng(seed)
    try:
        found: list[list[int]] = insert_into_file(
            source, copy, one, rng=rng, field=field, mode=_OWNER_ONLY
        ).tolist()
    except InvalidInput as fault:
        fault.message = fault.message.replace(str(source), str(corpus))
        raise
    return found


def _moved(positions: list[int], where: list[list[int]]) -> list[int]:
    """Return where lines stand once others were inserted, both in rising order."""
    found = []
    inserted = 0
    for position in positions:
        while inserted < len(where) and where[inserted][0] <= position + inserted:
            inserted += 1
        found.append(position + inserted)
    return found


def refuse_odd(option: str, path: Path) -> None:
    """Refuse to put a file in the place of a device, a pipe or the like.

    Raises:
        InvalidInput: Something is there that is neither a file nor a folder.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InvalidInput(
            f"{option} {path} is there already, and is no plain file.", hint="Name another file."
        )


def taken(option: str, path: Path) -> InvalidInput:
    """Return the error of a file that is there already and is not the same."""
    return InvalidInput(
        f"{option} {path} is there already, with other content.",
        hint="Name another file, or overwrite it with --force.",
    )
