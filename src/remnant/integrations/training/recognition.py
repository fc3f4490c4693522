"""Finds canaries in batches of tokens, however the rows were tokenised, shuffled or packed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput

Ids = NDArray[np.int64]
_BASE = np.int64(1_000_003)
_NOTHING = -1  # no token has this number


@dataclass(frozen=True, slots=True)
class Sighting:
    """One canary in one row of tokens.

    Attributes:
        row: Which row.
        start: Where the canary's known tokens begin.
        end: Where they end.
        canary: Which text.
    """

    row: int
    start: int
    end: int
    canary: int


class TokenMatcher:
    """Knows the tokens of some texts and finds them in rows of tokens.

    A text in a document is cut into the same tokens as the text alone, but for the first token: a
    blank or line break before it may join it. So the first token is left out where the others
    still distinguish all texts.

    Args:
        encoded: The tokens of each text alone.
        one_template: Whether all texts begin alike, so that the first token is left out only where
            they share it; it is then a part of what comes before them.

    Attributes:
        skipped: How many tokens of each text are left out at its beginning, 0 or 1.
        cores: The tokens of each text that are searched for.

    Raises:
        InvalidInput: Two texts have the same tokens, or a text has none.
    """

    def __init__(self, encoded: Sequence[Sequence[int]], *, one_template: bool = True) -> None:
        whole = [tuple(map(int, ids)) for ids in encoded]
        if len(set(whole)) < len(whole) or not all(whole):
            raise InvalidInput(
                "The tokenizer gives two secrets the same tokens, so that they cannot be "
                "distinguished.",
                hint="It may drop case or characters; use a template of digits, such as "
                "'{digits:6}'."
                if one_template
                else "It may drop case or characters; use texts that differ in more.",
            )
        inner = [ids[1:] for ids in whole]
        distinct = len(set(inner)) == len(inner)
        if one_template:
            distinct = len({ids[0] for ids in whole}) == 1
        self.skipped = int(distinct and all(inner))
        self.cores = inner if self.skipped else whole
        self._numbers = {core: number for number, core in enumerate(self.cores)}
        self._lengths = sorted({len(core) for core in self.cores})
        # Every text is looked for by as many tokens as the shortest has.
        anchors = {core[: self._lengths[0]] for core in self.cores}
        self._shared = _common_start(anchors)
        ends = np.array(sorted(anchors), dtype=np.int64)[:, len(self._shared) :]
        self._anchor_hashes = np.unique(_hashes_of(ends.T))
        self._longest = max(map(len, self.cores))
        self._sorted = sorted(self.cores)
        self._pairs = {core[:2] for core in self.cores}
        self._shortest_part = min(_part(core) for core in self.cores)

    def find(self, rows: Sequence[Sequence[int] | Ids]) -> list[Sighting]:
        """Return where texts are, by row and place."""
        arrays = [np.asarray(row, dtype=np.int64).ravel() for row in rows]
        if not arrays:
            return []
        gap = np.array([_NOTHING], dtype=np.int64)
        flat = np.concatenate([part for row in arrays for part in (row, gap)])
        starts = np.cumsum([0, *(len(row) + 1 for row in arrays)])
        sightings = []
        for place in self._anchored(flat).tolist():
            window = tuple(flat[place : place + self._lengths[-1]].tolist())
            for length in self._lengths:
                number = self._numbers.get(window[:length])
                if number is not None and len(window) >= length:
                    row = int(np.searchsorted(starts, place, side="right")) - 1
                    start = place - int(starts[row])
                    sightings.append(Sighting(row, start, start + length, number))
        return sorted(sightings, key=lambda sighting: (sighting.row, sighting.start))

    def _anchored(self, flat: Ids) -> Ids:
        """The places where some text's first tokens seem to be, few of them by mistake."""
        last = len(flat) - self._lengths[0] + 1
        if last <= 0:
            return np.zeros(0, dtype=np.int64)
        places: Ids | None = None
        for offset, token in enumerate(self._shared):
            if places is None:
                places = np.flatnonzero(flat[:last] == token)
            else:
                places = places[flat[places + offset] == token]
            if not len(places):
                return places
        offsets = range(len(self._shared), self._lengths[0])
        if not offsets:
            return np.arange(last) if places is None else places
        if places is None:
            hashes = _hashes_of([flat[offset : offset + last] for offset in offsets])
            places = np.arange(last)
        else:
            hashes = _hashes_of([flat[places + offset] for offset in offsets])
        nearest = np.searchsorted(self._anchor_hashes, hashes)
        known = self._anchor_hashes[np.minimum(nearest, len(self._anchor_hashes) - 1)]
        anchored: Ids = places[known == hashes]
        return anchored

    def cut_off(self, rows: Sequence[Sequence[int] | Ids]) -> int:
        """Count the rows that end with half of a text or more, and not with all of it."""
        return sum(self._is_cut_off(row) for row in rows)

    def _is_cut_off(self, row: Sequence[int] | Ids) -> bool:
        ids = tuple(np.asarray(row[-self._longest :], dtype=np.int64).tolist())
        return any(
            ids[start : start + 2] in self._pairs and self._begins_a_text(ids[start:])
            for start in range(len(ids) - self._shortest_part + 1)
        )

    def _begins_a_text(self, ids: tuple[int, ...]) -> bool:
        """Whether the tokens are half of a text or more, and not all of it."""
        for core in self._sorted[bisect_left(self._sorted, ids) :]:
            if core[: len(ids)] != ids:
                return False
            if _part(core) <= len(ids) < len(core):
                return True
        return False


def _part(core: tuple[int, ...]) -> int:
    """How many tokens of a text at the end of a row count as a text that was cut off."""
    return max(2, len(core) // 2)


def _hashes_of(columns: Sequence[Ids] | Ids) -> Ids:
    """A number for each row of columns of tokens; equal rows have equal numbers."""
    total = np.zeros(len(columns[0]) if len(columns) else 0, dtype=np.int64)
    with np.errstate(over="ignore"):
        for column in columns:
            total = total * _BASE + column
    return total


def _common_start(texts: Collection[tuple[int, ...]]) -> tuple[int, ...]:
    lowest, highest = min(texts), max(texts)  # they differ first where any two do
    most = min(len(lowest), len(highest))
    return lowest[: next((i for i in range(most) if lowest[i] != highest[i]), most)]


def common_ending(contexts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the longest ending that all sequences share.

    Example:
        >>> common_ending([(5, 1, 2), (1, 2), (9, 1, 2)])
        (1, 2)
    """
    shortest = min((len(context) for context in contexts), default=0)
    shared: list[int] = []
    for place in range(1, shortest + 1):
        if len({context[-place] for context in contexts}) > 1:
            break
        shared.insert(0, int(contexts[0][-place]))
    return tuple(shared)
