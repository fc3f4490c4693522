"""Sentences and their translations: two files, line by line, or one with a tab between them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from remnant.data.text import HELD_OUT, read_text
from remnant.errors import InvalidInput, PlanError

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairCorpus:
    """Pairs of a sentence and its translation, in two parts.

    Attributes:
        train: What a model is trained on.
        validation: What it is judged by.
    """

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]

    @property
    def fingerprint(self) -> str:
        """A digest of both parts."""
        digest = hashlib.sha256()
        for part in (self.train, self.validation):
            digest.update(len(part).to_bytes(8, "big"))
            for text in (text for pair in part for text in pair):
                digest.update(len(text).to_bytes(8, "big") + text.encode())
        return digest.hexdigest()[:16]


def read_pairs(source: str | Path, target: str | Path | None = None) -> list[Pair]:
    r"""Read sentences and their translations.

    Args:
        source: A file with a sentence a line.
        target: A file with its translation in the same line. Without it, ``source`` has both, a
            tab between them; what stands after a second tab is passed over.

    Returns:
        The pairs in their order, those left out in which either side is blank.

    Raises:
        InvalidInput: A file is missing, empty or not text; the files have different numbers of
            lines; a line has no tab; nothing is left.
    """
    lines = read_text(source).removesuffix("\n").split("\n")
    if target is None:
        cut = [line.split("\t") for line in lines]
        lacking = [number for number, one in enumerate(cut, 1) if len(one) < 2 and one[0].strip()]
        if lacking:
            raise InvalidInput(
                f"{source}, line {lacking[0]}: there is no tab between a sentence and its "
                "translation.",
                hint="Name a second file, or put a tab between the two.",
            )
        pairs = [(one[0], one[1]) for one in cut if len(one) > 1]
    else:
        others = read_text(target).removesuffix("\n").split("\n")
        if len(others) != len(lines):
            raise InvalidInput(
                f"{source} has {len(lines)} lines and {target} has {len(others)}.",
                hint="Line by line, one has to be the translation of the other.",
            )
        pairs = list(zip(lines, others, strict=True))
    kept = [(one.strip(), other.strip()) for one, other in pairs]
    kept = [pair for pair in kept if all(pair)]
    if not kept:
        raise InvalidInput(f"{source} has no sentence with a translation.")
    return kept


def load_pairs(
    source: str,
    target: str | None = None,
    *,
    folder: Path | None,
    pairs: int | None = None,
    longest: int | None = None,
    seed: int = 0,
) -> PairCorpus:
    """Load pairs and cut them into a part to train on and a tenth as much to judge by.

    Args:
        source, target: Files in ``folder``; see ``read_pairs``.
        folder: Holds them.
        pairs: How many to train on; all that there are, if not given.
        longest: Leave out pairs of which either side has more words.
        seed: Draws which ones, and their order. A pair that comes twice is kept once, so that none
            is in both parts.

    Raises:
        PlanError: No folder.
        InvalidInput: Files that cannot be read, or too few pairs.
    """
    if folder is None:
        raise PlanError(f"{source} is read from a file.", hint="Pass --data FOLDER.")
    found = read_pairs(folder / source, None if target is None else folder / target)
    if longest is not None:
        found = [pair for pair in found if max(len(text.split()) for text in pair) <= longest]
    found = list(dict.fromkeys(found))
    many = len(found) * HELD_OUT // (HELD_OUT + 1) if pairs is None else pairs
    held_out = many // HELD_OUT
    if held_out < 1 or many + held_out > len(found):
        raise InvalidInput(
            f"{folder / source} has {len(found)} different pairs of the length asked for, too few "
            f"for {many} and a tenth more.",
            hint="Ask for fewer pairs, ten at the least, or for longer ones.",
        )
    order = np.random.default_rng(seed).permutation(len(found))
    drawn = [found[place] for place in order[: many + held_out].tolist()]
    return PairCorpus(tuple(drawn[:many]), tuple(drawn[many:]))
