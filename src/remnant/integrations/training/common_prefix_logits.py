"""Logits for many rows that begin with the same tokens, with as little work as the model allows.

Every scored row is the same context and template, followed by a secret. The common tokens are read
once into a key-value cache that all rows share, and logits are made only for the tokens that are
scored. Both need a plain model of the transformers library; ``can_be_fast`` says which models are.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import UnsupportedModel
from remnant.integrations.training.trained_model import is_adapted, is_sharded, unwrapped

_LEAST_SAVED = 256  # tokens that a cache must save, to be worth a call of its own
_KEEP, _CACHE, _USE_CACHE = "logits_to_keep", "past_key_values", "use_cache"
_POSITIONS = "position_ids"


def can_be_fast(model: nn.Module) -> bool:
    """Whether the model is a plain one of transformers: not wrapped, sharded or compiled."""
    config = getattr(model, "config", None)
    return (
        hasattr(config, "get_text_config")
        and not getattr(config, "is_encoder_decoder", False)
        and unwrapped(model) is model
        and not is_sharded(model)
        and (is_adapted(model) or not hasattr(model, "get_base_model"))  # no learnt prompts
        and _KEEP in _known(model)
    )


class FastForward:
    """The model's predictions of the tokens that follow a shared beginning.

    Args:
        model: A model for which ``can_be_fast`` is true, in evaluation mode.
        beginning: The tokens that all rows begin with; at least one.
        rows: How many rows will be asked for; few of them are not worth a cache.

    Attributes:
        device: Of the model.
        row_bytes: Memory of the cache for one row, 0 without a cache.
        takes_trees: Whether it can be asked for trees of tokens.
        low_precision: Whether the model calculates in fewer bits than float32 has.
    """

    def __init__(self, model: nn.Module, beginning: Sequence[int], *, rows: int) -> None:
        self._model = model
        self.device = next(model.parameters()).device
        self._beginning = torch.tensor([list(beginning)], device=self.device)
        known = _known(model)
        self._options = {_USE_CACHE: False} if _USE_CACHE in known else {}
        self._cache: Any = None
        self.row_bytes = 0
        self.low_precision = next(model.parameters()).dtype != torch.float32
        saved = (rows - 1) * len(beginning)
        if _CACHE in known and _USE_CACHE in known and saved >= _LEAST_SAVED:
            self._read_beginning()
        self.takes_trees = self._cache is not None and _POSITIONS in known

    def _read_beginning(self) -> None:
        beginning = self._beginning
        output = self._call(beginning, beginning.shape[1], use_cache=True, **{_KEEP: 1})
        self._cache = output.past_key_values
        self._first = output.logits[:, -1:]
        tensors = [part for layer in self._cache.layers for part in (layer.keys, layer.values)]
        self.row_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        self.low_precision |= any(tensor.dtype != torch.float32 for tensor in tensors)

    def _call(self, ids: Tensor, read: int, **given: Any) -> Any:
        """Call the model; every one of the ``read`` tokens so far is a real one."""
        mask = torch.ones(len(ids), read, dtype=torch.long, device=self.device)
        return self._model(input_ids=ids, attention_mask=mask, **given)

    def logits(self, tails: Tensor) -> tuple[Tensor, Tensor]:
        """Predict the tokens after the beginning.

        Args:
            tails: The tokens of each row after the beginning, ``(rows, tokens)``.

        Returns:
            The logits of the first of these tokens, ``(rows or 1, 1, vocabulary)``, and those of
            the others, ``(rows, tokens - 1, vocabulary)``.
        """
        rows, tokens = tails.shape
        if self._cache is None:
            ids = torch.cat([self._beginning.expand(rows, -1), tails[:, :-1]], 1)
            logits = self._call(ids, len(ids[0]), **{_KEEP: tokens}, **self._options).logits
            _check(logits, rows, tokens)
            return logits[:, :1], logits[:, 1:]
        if tokens == 1:
            return self._first, self._first[:, :0].expand(rows, -1, -1)
        cache = _expanded(self._cache, rows)
        read = self._beginning.shape[1] + tokens - 1
        logits = self._call(tails[:, :-1], read, past_key_values=cache, use_cache=True).logits
        _check(logits, rows, tokens - 1)
        return self._first, logits

    def tree_logits(self, tokens: Tensor, depths: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """Predict what follows each node of trees of tokens; see ``token_trees``.

        Args:
            tokens: Shape ``(trees, nodes)``.
            depths: How many tokens come between the beginning and each node.
            visible: Which nodes each one sees, shape ``(trees, nodes, nodes)``.

        Returns:
            The logits of the token after the beginning, ``(1, 1, vocabulary)``, and those of the
            tokens after the nodes, ``(trees, nodes, vocabulary)``.
        """
        trees, nodes = tokens.shape
        read = self._beginning.shape[1]
        dtype = self._cache.layers[0].keys.dtype
        mask = torch.zeros(trees, 1, nodes, read + nodes, dtype=dtype, device=self.device)
        mask[:, 0, :, read:].masked_fill_(~visible, torch.finfo(dtype).min)
        logits = self._model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=depths + read,
            past_key_values=_expanded(self._cache, trees),
            use_cache=True,
        ).logits
        _check(logits, trees, nodes)
        return self._first, logits


def _expanded(cache: Any, rows: int) -> Any:
    """The cache of one row for many: all rows look at the same memory where the cache allows."""
    made = deepcopy(cache)
    if all(type(layer).__name__ == "DynamicLayer" for layer in made.layers):
        for layer in made.layers:
            layer.keys = layer.keys.expand(rows, -1, -1, -1)
            layer.values = layer.values.expand(rows, -1, -1, -1)
    else:
        made.batch_repeat_interleave(rows)
    return made


def _check(logits: Tensor, rows: int, tokens: int) -> None:
    if logits.shape[:2] != (rows, tokens):
        raise UnsupportedModel("The model returns logits for other tokens than it was asked for.")


def _known(model: nn.Module) -> set[str]:
    """The arguments of the model's forward, or of the model's within an adapter."""
    within: Any = model
    if hasattr(within, "get_base_model"):
        within = within.get_base_model()
    return set(inspect.signature(within.forward).parameters)
