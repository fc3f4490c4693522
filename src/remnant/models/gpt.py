"""A small GPT: causal self-attention with learned positions."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models.sequence_module import SequenceModule, State, check_sizes, dropout_layer


def attend(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None) -> Tensor:
    """Return a mean of the values a query, ``[batch, time, units]``; none is of what is hidden.

    Queries, keys and values are ``[batch, heads, time, units of a head]``; ``hidden`` fits
    ``[batch, heads, queries, keys]``.
    """
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)


SMALL = 0.02  # the spread of weights at the start


class AttentionBlock(nn.Module):
    """Attention, then a dense part, each normalised first and added to what came in."""

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

    def forward(
        self, inputs: Tensor, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None
    ) -> Tensor:
        """Attend to every time that is not ``hidden [queries, keys]``, then the dense part."""
        return self.dense(self.attended(inputs, queries, keys, values, hidden))

    def attended(
        self, inputs: Tensor, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None
    ) -> Tensor:
        """Add what is attended to."""
        seen = self.project(attend(queries, keys, values, hidden))
        return inputs + cast(Tensor, self.dropout1(seen))

    def dense(self, inputs: Tensor) -> Tensor:
        """Add what the dense part makes of it."""
        made = self.narrow(F.gelu(self.widen(self.norm2(inputs))))
        return inputs + cast(Tensor, self.dropout2(made))


class Gpt(SequenceModule):
    """Attention blocks between an embedding with positions and a head.

    The state holds the keys and values of each block, ``[rows, heads, time, units of a head]``;
    they grow with every token that is read.
    """

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
        if units % heads:
            raise InvalidInput(f"units={units} cannot be cut into heads={heads} equal parts.")
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
        for block in self._each():
            inputs = block(inputs, *block.queries_keys_values(inputs), ahead)
        return cast(Tensor, self.head(self.norm(inputs)))

    def initial(self, rows: int) -> State:
        """Return keys and values of no time at all."""
        heads = self._each()[0].heads
        each = self.embedding.embedding_dim // heads
        return tuple(self._zeros(rows, heads, 0, each) for _ in range(2 * len(self.blocks)))

    def read(self, ids: Tensor, prepared: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        inputs = self._embedded(ids[:, None], prepared[0].shape[2])
        made: list[Tensor] = []
        for place, block in enumerate(self._each()):
            queries, key, value = block.queries_keys_values(inputs)
            keys = torch.cat([prepared[2 * place], key], 2)
            values = torch.cat([prepared[2 * place + 1], value], 2)
            inputs = block(inputs, queries, keys, values, None)
            made += [keys, values]
        return self.head(self.norm(inputs[:, 0])), tuple(made)

    def _embedded(self, ids: Tensor, before: int) -> Tensor:
        """Return tokens and positions as vectors, ``before`` tokens having been read."""
        times = before + ids.shape[1]
        if times > self.context:
            raise InvalidInput(
                f"a text of {times} tokens is longer than the model's context of {self.context}.",
                hint="Use a shorter text, or a model with a larger context.",
            )
        return cast(Tensor, self.dropout(self.embedding(ids) + self.positions.weight[before:times]))

    def _each(self) -> list[AttentionBlock]:
        return [cast(AttentionBlock, block) for block in self.blocks]

    def _start(self) -> None:
        """Start small, and the more blocks add up the smaller what each adds."""
        start_small(self)
        for block in self._each():
            for added in (block.project, block.narrow):
                nn.init.normal_(added.weight, std=SMALL / math.sqrt(2 * len(self.blocks)))


def start_small(network: nn.Module) -> None:
    """Draw all dense weights and embeddings small, and set biases to zero."""
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
        vocabulary_size: How many tokens it predicts.
        units: Width throughout; the dense parts are four times as wide.
        layers: How many blocks.
        heads: Into how many equal parts attention cuts the width.
        context: The longest text that it can read; a longer one is refused.
        dropout: Rate after the embedding and after each half of a block.

    Raises:
        InvalidInput: A size that is no whole number from 1 on, a rate outside [0, 1), or heads
            that do not divide the units; later, a text longer than ``context``.

    Example:
        >>> gpt(50, units=8, context=16)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return Gpt(
        vocabulary_size,
        units=units,
        layers=layers,
        heads=heads,
        context=context,
        dropout=dropout,
    )
