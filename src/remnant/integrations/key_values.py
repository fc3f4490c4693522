"""A transformer's cache as plain tensors, so that one parent serves many children.

The library's cache grows in place when the model reads more tokens. Here the keys and values are
copied out after every read and into a new cache before the next, so that no state ever changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from remnant.integrations.pretrained import library

Windows = tuple[int | None, ...]


class KeyValues(NamedTuple):
    """What a transformer remembers of the tokens it has read, rows first.

    Attributes:
        tensors: Keys and values of the layers in turn, each ``(rows, heads, tokens, width)``; a
            layer with a sliding window keeps the last tokens only.
        length: Tokens read so far.
    """

    tensors: tuple[Tensor, ...]
    length: int

    def rows(self, wanted: slice) -> KeyValues:
        """Return neighbouring rows, as views."""
        return KeyValues(tuple(tensor[wanted] for tensor in self.tensors), self.length)

    def take(self, rows: Tensor) -> KeyValues:
        """Return a copy of these rows, in this order."""
        return KeyValues(tuple(t.index_select(0, rows) for t in self.tensors), self.length)


def windows_of(cache: Any) -> Windows | None:
    """Return each layer's sliding window, ``None`` where it keeps all tokens.

    The whole answer is ``None`` where some layer keeps anything but keys and values.
    """
    caches = library().cache_utils
    if type(cache) is not caches.DynamicCache or not cache.layers:
        return None
    plain = (caches.DynamicLayer, caches.DynamicSlidingWindowLayer)
    if any(type(layer) not in plain or layer.keys is None for layer in cache.layers):
        return None
    return tuple(getattr(layer, "sliding_window", None) for layer in cache.layers)


def taken_out(cache: Any, *, length: int) -> KeyValues:
    """Return the keys and values of a cache that has read ``length`` tokens."""
    pairs = ((layer.keys, layer.values) for layer in cache.layers)
    return KeyValues(tuple(tensor for pair in pairs for tensor in pair), length)


def put_in(state: KeyValues, windows: Sequence[int | None]) -> Any:
    """Return a fresh cache of these keys and values; the model may let it grow."""
    caches = library().cache_utils
    cache = caches.DynamicCache()
    for place, window in enumerate(windows):
        keys, values = state.tensors[2 * place : 2 * place + 2]
        if window is None:
            layer = caches.DynamicLayer()
        else:
            layer = caches.DynamicSlidingWindowLayer(sliding_window=window)
            layer.cumulative_length = state.length
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache
