"""Keys and values of many rows that begin alike: what they share is stored and read once.

A search reads a prefix once and then many continuations of it, token by token. The keys and values
of the prefix are stored in one copy. Each token after it adds a *level*, which holds the keys and
values of the rows that read it. A row of a later level points to its ancestors, so that taking
children copies a few integers. Keys and values of ancestors are gathered when attention needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class SharedPrefix:
    """What a causal transformer remembers of rows with a common prefix; it is never changed.

    Attributes:
        prefix: Keys and values of the layers in turn, each ``(1, heads, tokens, width)``.
        levels: For each token after the prefix, the same with ``(rows of the level, heads, 1,
            width)``.
        places: Which row of each level a row has, int64 ``(rows, levels)``.
        length: Tokens read so far.

    Guarantees:
        * ``whole()`` gives the keys and values of every row as if none were shared.
        * ``take`` copies ``places`` only.

    Example:
        >>> one = SharedPrefix.of((torch.zeros(1, 2, 5, 3), torch.zeros(1, 2, 5, 3)), length=5)
        >>> rows = one.take(torch.tensor([0, 0]))
        >>> grown = rows.grown((torch.ones(2, 2, 1, 3), torch.ones(2, 2, 1, 3)))
        >>> grown.rows, grown.length, grown.whole()[0].shape
        (2, 6, torch.Size([2, 2, 6, 3]))
    """

    prefix: tuple[Tensor, ...]
    levels: tuple[tuple[Tensor, ...], ...]
    places: Tensor
    length: int

    @classmethod
    def of(cls, prefix: Sequence[Tensor], *, length: int) -> SharedPrefix:
        """Return the state of one row that has read a prefix."""
        places = torch.zeros((1, 0), dtype=torch.int64, device=prefix[0].device)
        return cls(tuple(prefix), (), places, length)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def row_bytes(self) -> int:
        """Bytes of one more row: its newest token, and ancestors gathered for one layer."""
        return self.row_bytes_after(0)

    def row_bytes_after(self, tokens: int) -> int:
        """Return an upper bound of ``row_bytes`` of a state with more tokens.

        Each of these tokens is a level that holds keys and values of its own.
        """
        each = [_token_bytes(tensor) for tensor in self.prefix]
        if not tokens and not self.levels:
            return max(sum(each), 1)
        depth = len(self.levels) + tokens
        return max(tokens, 1) * sum(each) + depth * (4 * max(each) + 8)

    def take(self, rows: Tensor) -> SharedPrefix:
        """Return these rows, in this order; a row may be taken many times."""
        places = self.places.index_select(0, rows.to(self.places.device))
        return SharedPrefix(self.prefix, self.levels, places, self.length)

    def cut(self, rows: slice) -> SharedPrefix:
        """Return neighbouring rows."""
        return SharedPrefix(self.prefix, self.levels, self.places[rows], self.length)

    def grown(self, tokens: Sequence[Tensor]) -> SharedPrefix:
        """Return the state after one more token, given its keys and values in every row."""
        own = torch.arange(self.rows, device=self.places.device)[:, None]
        places = torch.cat([self.places, own], 1)
        # A view may hold on to a larger tensor, such as queries that are no longer needed.
        level = tuple(tensor.contiguous() for tensor in tokens)
        return SharedPrefix(self.prefix, (*self.levels, level), places, self.length + 1)

    def since(self, which: int, *newest: Tensor) -> Tensor:
        """Return keys or values since the prefix, ``(rows, heads, levels, width)``.

        Args:
            which: Number of the tensor in ``prefix``.
            newest: Of a token that is being read.
        """
        device = self.prefix[which].device
        places = self.places.to(device).unbind(1)
        gathered = [
            level[which].index_select(0, place)
            for level, place in zip(self.levels, places, strict=True)
        ]
        together = [*gathered, *newest]
        return together[0] if len(together) == 1 else torch.cat(together, 2)

    def whole(self, windows: Sequence[int | None] | None = None) -> tuple[Tensor, ...]:
        """Return copies of all keys and values, ``(rows, heads, tokens, width)``.

        Args:
            windows: Of each layer, how many of the last tokens it may see, the one that is being
                read included; None for all of them.
        """
        made = []
        for which, shared in enumerate(self.prefix):
            parts = [shared.expand(self.rows, -1, -1, -1)]
            if self.levels:
                parts.append(self.since(which))
            full = torch.cat(parts, 2)
            window = None if windows is None else windows[which // 2]
            made.append(full if window is None else full[:, :, -window + 1 :])
        return tuple(made)


def attend_shared(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    state: SharedPrefix,
    layer: int,
    scaling: float | None = None,
) -> Tensor:
    """Return the attention output of one token per row, ``(rows, heads, 1, width)``.

    Scores over the prefix are one matrix product for all rows. Only ancestors since the prefix are
    gathered. The softmax is over both, so that the result is that of ordinary attention.

    Args:
        queries: Of the token, ``(rows, heads, 1, width)``.
        keys, values: Of the token, ``(rows, groups, 1, width)``; several query heads may share one
            group.
        state: What was read before.
        layer: Which layer of the state.
        scaling: Factor of the scores; by default one over the root of the width.
    """
    rows, heads, _, width = queries.shape
    shared_keys, shared_values = (state.prefix[2 * layer + i][0] for i in (0, 1))
    groups = len(shared_keys)
    scaling = 1.0 / math.sqrt(width) if scaling is None else scaling
    asked = queries.reshape(rows, groups, heads // groups, width)
    together = asked.transpose(0, 1).reshape(groups, -1, width)
    over_prefix = (together @ shared_keys.transpose(1, 2)).unflatten(1, (rows, -1)).transpose(0, 1)
    own_keys, own_values = state.since(2 * layer, keys), state.since(2 * layer + 1, values)
    over_own = asked @ own_keys.transpose(2, 3)
    scores = torch.cat([over_prefix, over_own], 3) * scaling
    wide = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(3, dtype=wide).to(values.dtype)
    before, since = weights.split([shared_keys.shape[1], own_keys.shape[2]], 3)
    of_prefix = before.transpose(0, 1).reshape(groups, -1, before.shape[3]) @ shared_values
    seen: Tensor = of_prefix.unflatten(1, (rows, -1)).transpose(0, 1) + since @ own_values
    return seen.reshape(rows, heads, 1, -1)


def _token_bytes(tensor: Tensor) -> int:
    """Bytes of one token of one row."""
    return tensor.nbytes // max(1, tensor.shape[0] * tensor.shape[2])
