"""A transformer's cache as plain tensors, so that one parent serves many children.

The library's cache grows in place when the model reads more tokens. Here the keys and values are
taken out after every read and put into a new cache before the next, so that no state ever changes.
``split_attention`` lets models that use the library's attention interface attend to a prefix that
all rows share, without a copy of it for each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from torch import Tensor

from remnant.integrations.pretrained import library
from remnant.models.shared_prefix import SharedPrefix, attend_shared

Windows = tuple[int | None, ...]
_NAME = "remnant_shared_prefix"
# Arguments of an attention function that change its result; it is computed without them here.
_CHANGES = ("softcap", "s_aux", "position_bias", "head_mask")


class KeyValues(NamedTuple):
    """Keys and values as one pass of a transformer needs them, rows first.

    Attributes:
        tensors: Keys and values of the layers in turn, each ``(rows, heads, tokens, width)``; a
            layer with a sliding window keeps the last tokens only.
        length: Tokens read so far.
    """

    tensors: tuple[Tensor, ...]
    length: int


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
    grown = caches.DynamicCache()
    for place, window in enumerate(windows):
        keys, values = state.tensors[2 * place : 2 * place + 2]
        if window is None:
            layer = caches.DynamicLayer()
        else:
            layer = caches.DynamicSlidingWindowLayer(sliding_window=window)
            layer.cumulative_length = state.length
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        grown.layers.append(layer)
    return grown


def _one_token(length: int) -> Any:
    """Return a layer of a cache that hands on the token being read alone."""
    layer = _one_token_layer()()
    layer.length = length
    return layer


@cache
def _one_token_layer() -> type:
    """Make the class of such layers: of the library's, which is imported late."""

    def update(self: Any, keys: Tensor, values: Tensor, *rest: Any, **named: Any) -> Any:
        self.keys, self.values = keys, values
        return keys, values

    made = {
        "is_sliding": False,
        "lazy_initialization": lambda self, keys, values: None,
        "update": update,
        "get_mask_sizes": lambda self, query_length: (self.length + query_length, 0),
        "get_seq_length": lambda self: self.length,
        "get_max_length": lambda self: -1,
    }
    return type("OneToken", (library().cache_utils.CacheLayerMixin,), made)


@contextmanager
def split_attention(model: Any, state: SharedPrefix) -> Iterator[Any]:
    """Give the cache with which one token per row is read after a state, without copying it.

    Inside, the model's attention is computed by ``attend_shared``. It is the caller's part to check
    that the model's answers are the same: a model may not use the library's attention interface, or
    change its scores in ways that are not known here.

    Raises:
        NotImplementedError: Inside, where an attention function is called with a mask or a bias.
    """
    transformers = library()
    layers = len(state.prefix) // 2

    def attend(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        **named: Any,
    ) -> tuple[Tensor, None]:
        changes = [name for name in _CHANGES if named.get(name) is not None]
        if attention_mask is not None or changes:
            raise NotImplementedError(f"attention with a mask or {changes}")
        seen = attend_shared(
            query, key, value, state=state, layer=module.layer_idx, scaling=scaling
        )
        return seen.transpose(1, 2), None

    one_token = transformers.cache_utils.DynamicCache()
    one_token.layers = [_one_token(state.length) for _ in range(layers)]
    configs = {id(c): c for m in model.modules() if (c := getattr(m, "config", None)) is not None}
    before = [
        (config, config._attn_implementation)
        for config in configs.values()
        if hasattr(config, "_attn_implementation")
    ]
    interface = transformers.modeling_utils.AttentionInterface
    interface.register(_NAME, attend)
    try:
        for config, _ in before:
            config._attn_implementation_internal = _NAME
        yield one_token
    finally:
        for config, name in before:
            config._attn_implementation_internal = name
        interface._global_mapping.pop(_NAME, None)
