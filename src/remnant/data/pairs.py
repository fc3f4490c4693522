"""Sentences and their translations: two files, line by line, one with tabs, or rows with fields."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from remnant.data.own_files import Origin, OwnFiles, data_files, with_origin
from remnant.data.rows import ROW_ENDINGS, has_rows, read_rows, text_values
from remnant.data.text import HELD_OUT, read_text
from remnant.errors import InvalidInput, PlanError

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairCorpus:
    """Pairs of a sentence and its translation, in two parts.

    Attributes:
        train: What a model is trained on.
        validation: What it is judged by.
        origin: The user's own files that they were read from; None for ``load_pairs``.
    """

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    origin: Origin | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of both parts, and of the user's own files."""
        digest = hashlib.sha256()
        for part in (self.train, self.validation):
            digest.update(len(part).to_bytes(8, "big"))
            for text in (text for pair in part for text in pair):
                digest.update(len(text).to_bytes(8, "big") + text.encode())
        return with_origin(digest.hexdigest()[:16], self.origin)


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
        lacking = [
            number
            for number, columns in enumerate(cut, 1)
            if len(columns) < 2 and columns[0].strip()
        ]
        if lacking:
            raise InvalidInput(
                f"{source}, line {lacking[0]}: there is no tab between a sentence and its "
                "translation.",
                hint="Name a second file, or put a tab between the two.",
            )
        pairs = [(columns[0], columns[1]) for columns in cut if len(columns) > 1]
    else:
        others = read_text(target).removesuffix("\n").split("\n")
        if len(others) != len(lines):
            raise InvalidInput(
                f"{source} has {len(lines)} lines and {target} has {len(others)}.",
                hint="Line by line, one has to be the translation of the other.",
            )
        pairs = list(zip(lines, others, strict=True))
    kept = [(sentence.strip(), translation.strip()) for sentence, translation in pairs]
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
    kept = _different(
        read_pairs(folder / source, None if target is None else folder / target), longest
    )
    train, validation = _cut(kept, str(folder / source), pairs, seed)
    return PairCorpus(train, validation)


def load_own_pairs(
    files: OwnFiles,
    *,
    source: str = "source",
    target: str = "target",
    pairs: int | None = None,
    longest: int | None = None,
    seed: int = 0,
) -> PairCorpus:
    """Load the user's own pairs: a part to train on, and a part to judge by.

    A path is a file or a folder of files of one kind: JSON lines, CSV or TSV with a field for each
    side, or lines of plain text with a tab between the sides. Pairs with a blank side are left out.

    Args:
        files: Where they are. Without a held-out part, a tenth as many are held out.
        source, target: The fields of JSON lines and tables.
        pairs, longest, seed: As for ``load_pairs``. Held-out pairs that are in the training part
            too are left out.

    Raises:
        InvalidInput: A file is missing, damaged, or lacks a field; or there are too few pairs.
    """
    left_out = 0

    def read(path: Path) -> tuple[list[Pair], Sequence[Path]]:
        nonlocal left_out
        places = data_files(path, (".txt", *ROW_ENDINGS))
        read = [pair for place in places for pair in _own_pairs(place, source, target)]
        kept = [pair for pair in read if all(pair)]
        left_out += len(read) - len(kept)
        return kept, places

    given, held_out, origin = files.read(read)
    origin = replace(origin, left_out=left_out)
    kept = _different(given, longest)
    if held_out is None:
        return PairCorpus(*_cut(kept, files.path, pairs, seed), origin)
    count = len(kept) if pairs is None else pairs
    if not 1 <= count <= len(kept):
        raise InvalidInput(
            f"data.path: {files.path} has {len(kept)} different pairs of at most {longest} words, "
            f"fewer than the {max(count, 1)} to train on.",
            hint="Lower pairs.pairs, raise pairs.longest, or give more pairs.",
        )
    order = np.random.default_rng(seed).permutation(len(kept))
    train = tuple(kept[place] for place in order[:count].tolist())
    seen = set(kept)
    later = tuple(pair for pair in _different(held_out, longest) if pair not in seen)
    if not later:
        raise InvalidInput(
            f"data.held_out: {files.held_out} has no pair of at most {longest} words that is not "
            "in data.path.",
            hint="Hold out other pairs.",
        )
    return PairCorpus(train, later, origin)


def _own_pairs(path: Path, source: str, target: str) -> list[Pair]:
    if not has_rows(path):
        return read_pairs(path)
    rows = read_rows(path, {source: "data.source", target: "data.target"})
    sides = (text_values(path, rows, field) for field in (source, target))
    return [(sentence.strip(), other.strip()) for sentence, other in zip(*sides, strict=True)]


def _different(pairs: Iterable[Pair], longest: int | None) -> list[Pair]:
    """Return each pair once, without those that are too long."""
    return [
        pair
        for pair in dict.fromkeys(pairs)
        if longest is None or max(len(text.split()) for text in pair) <= longest
    ]


def _cut(
    kept: list[Pair], named: str, pairs: int | None, seed: int
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Draw pairs to train on, and a tenth as many to judge by."""
    count = len(kept) * HELD_OUT // (HELD_OUT + 1) if pairs is None else pairs
    held_out = count // HELD_OUT
    if held_out < 1 or count + held_out > len(kept):
        raise InvalidInput(
            f"{named} has {len(kept)} different pairs of the length asked for, too few "
            f"for {count} and a tenth more.",
            hint="Ask for fewer pairs, ten at the least, or for longer ones.",
        )
    order = np.random.default_rng(seed).permutation(len(kept))
    drawn = [kept[place] for place in order[: count + held_out].tolist()]
    return tuple(drawn[:count]), tuple(drawn[count:])
