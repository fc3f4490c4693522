"""A small GPT: causal self-attention with learned positions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models.sequence_module import (
    SequenceModule,
    State,
    check_sizes,
    dropout_layer,
    watched,
)
from remnant.models.shared_prefix import SharedPrefix, attend_shared


def attend(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None) -> Tensor:
    """Return the attention output of each query, ``[batch, time, units]``, over unmasked keys.

    Queries, keys and values are ``[batch, heads, time, units of a head]``; ``hidden``, the mask,
    broadcasts to ``[batch, heads, queries, keys]``.
    """
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)


SMALL = 0.02  # standard deviation of the initial weights


class AttentionBlock(nn.Module):
    """A pre-norm Transformer block: attention, then a dense part, each added to its input."""

    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.attention = nn.Linear(units, 3 * units)
        self.project = nn.Linear(units, units)
        self.widen, self.narrow = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)
        self.dropout1, self.dropout2 = dropout_layer(dropout), dropout_layer(dropout)

    def queries_keys_values(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return three tensors ``[batch, heads, time, units of a head]``."""
        cut = self.attention(self.norm1(inputs)).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = cut.permute(2, 0, 3, 1, 4).unbind(0)
        return queries, keys, values

    def attended_after(
        self, inputs: Tensor, state: State | SharedPrefix, layer: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Add the attention output of one token per row to ``inputs``.

        Args:
            inputs: Of the tokens, ``[rows, 1, units]``.
            state: Keys and values of what was read before.
            layer: This block's number in the state.

        Returns:
            The sum, and the keys and values that the next state has for this block.
        """
        queries, key, value = self.queries_keys_values(inputs)
        if isinstance(state, SharedPrefix):
            seen = attend_shared(queries, key, value, state=state, layer=layer)
            seen = self.project(seen.transpose(1, 2).flatten(2))
            return inputs + cast(Tensor, self.dropout1(seen)), (key, value)
        keys = torch.cat([state[2 * layer], key], 2)
        values = torch.cat([state[2 * layer + 1], value], 2)
        return self.attended(inputs, queries, keys, values, None), (keys, values)

    def forward(
        self, inputs: Tensor, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None
    ) -> Tensor:
        """Apply attention, masked by ``hidden [queries, keys]``, then the dense part."""
        return self.dense(self.attended(inputs, queries, keys, values, hidden))

    def attended(
        self, inputs: Tensor, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None
    ) -> Tensor:
        """Add the attention output to ``inputs``."""
        seen = self.project(attend(queries, keys, values, hidden))
        return inputs + cast(Tensor, self.dropout1(seen))

    def dense(self, inputs: Tensor) -> Tensor:
        """Add the dense part's output to ``inputs``."""
        made = self.narrow(F.gelu(self.widen(self.norm2(inputs))))
        return inputs + cast(Tensor, self.dropout2(made))


class AttentionModule(SequenceModule):
    """A network that reads tokens with learned positions through causal attention blocks.

    The state holds the keys and values of each block, ``[rows, heads, time, units of a head]``;
    they grow with every token that is read. A ``SharedPrefix`` holds them without copies.
    """

    reads = "text"
    context: int
    embedding: nn.Embedding
    positions: nn.Embedding
    dropout: nn.Module

    def initial(self, rows: int) -> State:
        """Return empty keys and values."""
        blocks = self._blocks()
        heads = blocks[0].heads
        width = self.embedding.embedding_dim // heads
        return tuple(self._zeros(rows, heads, 0, width) for _ in range(2 * len(blocks)))

    def shared(self, state: State) -> SharedPrefix:
        """Return a state of one text for continuations that all begin with it."""
        return SharedPrefix.of(state, length=state[0].shape[2])

    @abstractmethod
    def _blocks(self) -> Sequence[AttentionBlock]:
        """Return the blocks whose keys and values the state holds."""

    def _embedded(self, ids: Tensor, before: int) -> Tensor:
        """Return tokens and positions as vectors, ``before`` tokens having been read."""
        times = before + ids.shape[1]
        if times > self.context:
            raise InvalidInput(
                f"a {self.reads} of {times} tokens is longer than the model's context of "
                f"{self.context}.",
                hint="Use a shorter text, or a model with a larger context.",
            )
        positions = self.positions.weight[before:times]
        if watched(self.positions):
            places = torch.arange(before, times, device=ids.device).expand(ids.shape)
            positions = self.positions(places)
        return cast(Tensor, self.dropout(self.embedding(ids) + positions))


class Gpt(AttentionModule):
    """Attention blocks between an embedding with positions and a head."""

    def __init__(
        self,
        vocabulary_size: int,
        *,
        units: int,
        layers: int,
        heads: int,
        context: int,
        dropout: float,
    ) -> None:
        check_sizes(
            vocabulary_size=vocabulary_size,
            units=units,
            layers=layers,
            heads=heads,
            context=context,
            dropout=dropout,
        )
        super().__init__(vocabulary_size)
        self.context = context
        self.embedding = nn.Embedding(vocabulary_size + 1, units)
        self.positions = nn.Embedding(context, units)
        self.dropout = dropout_layer(dropout)
        self.blocks = nn.ModuleList(AttentionBlock(units, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(units)
        self.head = nn.Linear(units, vocabulary_size, bias=False)
        self._start()

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after every token, ``[batch, time, vocabulary]``."""
        times = ids.shape[1]
        inputs = self._embedded(ids, 0)
        ahead = torch.ones(times, times, dtype=torch.bool, device=ids.device).triu(1)
        for block in self._blocks():
            inputs = block(inputs, *block.queries_keys_values(inputs), ahead)
        return cast(Tensor, self.head(self.norm(inputs)))

    def read(self, ids: Tensor, prepared: Any) -> tuple[Tensor, Any]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        inputs = self._embedded(ids[:, None], tokens_read(prepared))
        made: list[Tensor] = []
        for layer, block in enumerate(self._blocks()):
            inputs, pair = block.attended_after(inputs, prepared, layer)
            inputs = block.dense(inputs)
            made += pair
        return self.head(self.norm(inputs[:, 0])), read_on(prepared, made)

    def _blocks(self) -> list[AttentionBlock]:
        return [cast(AttentionBlock, block) for block in self.blocks]

    def _start(self) -> None:
        """Initialise with small weights, and scale residual layers down by the number of blocks."""
        start_small(self)
        for block in self._blocks():
            for added in (block.project, block.narrow):
                nn.init.normal_(added.weight, std=SMALL / math.sqrt(2 * len(self.blocks)))


def tokens_read(state: State | SharedPrefix) -> int:
    """Return how many tokens a state of keys and values has read."""
    return state.length if isinstance(state, SharedPrefix) else state[0].shape[2]


def read_on(state: State | SharedPrefix, made: Sequence[Tensor]) -> State | SharedPrefix:
    """Return the state after one more token, given what ``attended_after`` returned for it."""
    return state.grown(made) if isinstance(state, SharedPrefix) else tuple(made)


def start_small(network: nn.Module) -> None:
    """Draw dense weights and embeddings from a narrow normal law, and set biases to zero."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=SMALL)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def gpt(
    vocabulary_size: int,
    *,
    units: int = 128,
    layers: int = 4,
    heads: int = 4,
    context: int = 256,
    dropout: float = 0.0,
) -> SequenceModule:
    """Return a small GPT: pre-norm blocks with learned positions.

    Args:
        vocabulary_size: Number of tokens that it predicts.
        units: Width throughout; the dense parts are four times as wide.
        layers: Number of blocks.
        heads: Number of attention heads.
        context: The longest text that it can read; a longer one is refused.
        dropout: Rate after the embedding and after each half of a block.

    Raises:
        InvalidInput: A size that is not a positive whole number, a rate outside [0, 1), or heads
            that do not divide the units; later, a text longer than ``context``.

    Example:
        >>> gpt(50, units=8, context=16)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return Gpt(
        vocabulary_size, units=units, layers=layers, heads=heads, context=context, dropout=dropout
    )
