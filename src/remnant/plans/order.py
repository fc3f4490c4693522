"""In which order a stream meets its pool: shuffled epochs, draws with replacement, or as it stands.

All are random access: the rows of step ``s`` come from a counter-based generator keyed by the
stream and by the epoch (or block of steps) that holds ``s``, never from the steps before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SAMPLINGS = ("epoch", "replacement", "fixed")
_BLOCK = 128  # steps drawn at once with replacement; part of the numbers, so never change it
_KEPT = 3  # epochs or blocks kept in memory


def generator(*key: int) -> np.random.Generator:
    """Return the counter-based generator of this key; equal keys give equal streams."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(list(key))))


class Order:
    """Batches of several streams over pools of one size.

    Args:
        keys: One key per stream; a stream depends on its own key alone.
        pool: Size of the pool that each stream draws from.
        batch: Rows a step.
        sampling: ``"epoch"`` walks through one permutation after another, so that every row of
            the pool is used once before any is used twice, also across a batch's border;
            ``"replacement"`` draws each row independently; ``"fixed"`` shuffles nothing and walks
            through the pool as it stands, again and again.
    """

    def __init__(self, *, keys: Sequence[tuple[int, ...]], pool: int, batch: int, sampling: str):
        self._keys = list(keys)
        self._pool = pool
        self._batch = batch
        self._by_epoch = sampling != "replacement"
        self._shuffled = sampling != "fixed"
        self._kept: OrderedDict[int, NDArray[np.int32]] = OrderedDict()

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the pool's rows at ``step``, shape ``(streams, batch)``."""
        first = step * self._batch
        length = self._pool if self._by_epoch else _BLOCK * self._batch
        parts = []
        position, end = first, first + self._batch
        while position < end:
            part, offset = divmod(position, length)
            taken = min(end - position, length - offset)
            parts.append(self._part(part, length)[:, offset : offset + taken])
            position += taken
        return np.concatenate(parts, axis=1).astype(np.int64)

    def _part(self, part: int, length: int) -> NDArray[np.int32]:
        part = part if self._shuffled else 0
        if part in self._kept:
            self._kept.move_to_end(part)
            return self._kept[part]
        drawn = np.empty((len(self._keys), length), dtype=np.int32)
        for row, key in zip(drawn, self._keys, strict=True):
            rng = generator(*key, part)
            if not self._by_epoch:
                row[:] = rng.integers(0, self._pool, size=length)
            else:
                row[:] = rng.permutation(self._pool) if self._shuffled else np.arange(self._pool)
        self._kept[part] = drawn
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return drawn
