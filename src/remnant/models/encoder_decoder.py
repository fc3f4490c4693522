"""A small Transformer that translates: an encoder reads the source, a decoder writes the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput
from remnant.models.decoder_only import (
    SMALL,
    AttentionBlock,
    AttentionModule,
    attend,
    read_on,
    start_small,
    tokens_read,
)
from remnant.models.sequence_module import SequenceModule, State, check_sizes, dropout_layer
from remnant.models.shared_prefix import SharedPrefix


class DecoderBlock(AttentionBlock):
    """A block that attends to the target read so far, then to the source."""

    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__(units, heads, dropout)
        self.norm_asking = nn.LayerNorm(units)
        self.asking = nn.Linear(units, units)
        self.source = nn.Linear(units, 2 * units)
        self.project_source = nn.Linear(units, units)
        self.dropout_source = dropout_layer(dropout)

    def source_keys_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors ``[batch, heads, places, units of a head]``."""
        cut = self.source(encoded).unflatten(-1, (2, self.heads, -1))
        keys, values = cut.permute(2, 0, 3, 1, 4).unbind(0)
        return keys, values

    def crossed(
        self, inputs: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None
    ) -> Tensor:
        """Add the attention over the source to ``inputs``."""
        queries = self.asking(self.norm_asking(inputs)).unflatten(-1, (self.heads, -1))
        seen = attend(queries.transpose(1, 2), keys, values, hidden)
        return inputs + cast(Tensor, self.dropout_source(self.project_source(seen)))


class EncoderDecoder(AttentionModule):
    """A Transformer with an encoder and a decoder, one vocabulary for both.

    An example is one row of tokens: the source, padded with ``pad`` to ``source_length`` tokens,
    then the target, which begins with ``begin``. The logits are those after each token of the
    target. ``given`` fixes the source, so that a target can be read token by token.
    """

    begins = True
    reads = "target"

    def __init__(
        self,
        vocabulary_size: int,
        *,
        units: int,
        layers: int,
        heads: int,
        source_length: int,
        context: int,
        dropout: float,
    ) -> None:
        check_sizes(
            vocabulary_size=vocabulary_size,
            units=units,
            layers=layers,
            heads=heads,
            source_length=source_length,
            context=context,
            dropout=dropout,
        )
        super().__init__(vocabulary_size)
        self.source_length, self.context = source_length, context
        self.embedding = nn.Embedding(vocabulary_size + 2, units)
        self.source_positions = nn.Embedding(source_length, units)
        self.positions = nn.Embedding(context, units)
        self.dropout = dropout_layer(dropout)
        self.encoder = nn.ModuleList(AttentionBlock(units, heads, dropout) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(units)
        self.decoder = nn.ModuleList(DecoderBlock(units, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(units)
        self.head = nn.Linear(units, vocabulary_size, bias=False)
        self._start()

    @property
    def pad(self) -> int:
        """The token that pads a source; attention ignores it."""
        return self.vocabulary_size + 1

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after every token of the target, ``[batch, time, vocabulary]``."""
        source, target = ids[:, : self.source_length], ids[:, self.source_length :]
        unread = (source == self.pad)[:, None, None, :]
        encoded = self.encoded(source, unread)
        times = target.shape[1]
        ahead = torch.ones(times, times, dtype=torch.bool, device=ids.device).triu(1)
        inputs = self._embedded(target, 0)
        for block in self._blocks():
            inputs = block.attended(inputs, *block.queries_keys_values(inputs), ahead)
            inputs = block.crossed(inputs, *block.source_keys_values(encoded), unread)
            inputs = block.dense(inputs)
        return cast(Tensor, self.head(self.norm(inputs)))

    def encoded(self, source: Tensor, unread: Tensor | None) -> Tensor:
        """Return the encoder's output for a source, ``[batch, places, units]``."""
        at = self.source_positions.weight[: source.shape[1]]
        inputs = self.dropout(self.embedding(source) + at)
        for module in self.encoder:
            block = cast(AttentionBlock, module)
            inputs = block(inputs, *block.queries_keys_values(inputs), unread)
        return cast(Tensor, self.encoder_norm(inputs))

    def source_keys_values(self, source_ids: Sequence[int]) -> State:
        """Return the keys and values of one source, a pair for each block of the decoder."""
        ids = torch.tensor([list(source_ids)], device=self.embedding.weight.device)
        encoded = self.encoded(ids, None)
        return tuple(t for block in self._blocks() for t in block.source_keys_values(encoded))

    def written(self, ids: Tensor, state: Any, source: State) -> tuple[Tensor, Any]:
        """Read one target token per row, for one shared source; return ``(logits, state)``."""
        inputs = self._embedded(ids[:, None], tokens_read(state))
        made: list[Tensor] = []
        for place, block in enumerate(self._blocks()):
            inputs, pair = block.attended_after(inputs, state, place)
            # Rows are put on the time axis, so that all rows share one source without copying it.
            together = inputs.transpose(0, 1)
            crossed = block.crossed(together, source[2 * place], source[2 * place + 1], None)
            inputs = block.dense(crossed.transpose(0, 1))
            made += pair
        return self.head(self.norm(inputs[:, 0])), read_on(state, made)

    def given(self, source_ids: Sequence[int]) -> GivenSource:
        """Return the network with a fixed source, which reads and predicts targets only.

        Raises:
            InvalidInput: The source is empty, too long, or has a token that is not one.
        """
        ids = [int(i) for i in source_ids]
        if not 1 <= len(ids) <= self.source_length:
            raise InvalidInput(
                f"the source has {len(ids)} tokens; this model reads 1 to {self.source_length}.",
                hint="Give a shorter source, or train with longer ones.",
            )
        if not 0 <= min(ids) <= max(ids) < self.vocabulary_size:
            raise InvalidInput("the source has a token that is not in the vocabulary.")
        return GivenSource(self, ids)

    def _blocks(self) -> list[DecoderBlock]:
        return [cast(DecoderBlock, block) for block in self.decoder]

    def _start(self) -> None:
        """Initialise with small weights, and scale residual layers down by the number of blocks."""
        start_small(self)
        for module in (*self.encoder, *self.decoder):
            block = cast(AttentionBlock, module)
            added = [block.project, block.narrow]
            added += [block.project_source] if isinstance(block, DecoderBlock) else []
            for layer in added:
                nn.init.normal_(layer.weight, std=SMALL / math.sqrt(len(added) * len(self.decoder)))


class GivenSource(SequenceModule):
    """An encoder-decoder with a fixed source, as a model of the target.

    Guarantees:
        * Its logits are those of the encoder-decoder's ``forward`` on source and target.
        * ``fold`` encodes the source once, in the type of the weights.
    """

    begins = True

    def __init__(self, module: EncoderDecoder, source_ids: Sequence[int]) -> None:
        super().__init__(module.vocabulary_size)
        self.module, self.source_ids = module, tuple(source_ids)
        self._source: State | None = None

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after every token of the target, ``[batch, time, vocabulary]``."""
        left = self.module.source_length - len(self.source_ids)
        source = torch.tensor([*self.source_ids, *[self.module.pad] * left], device=ids.device)
        return cast(Tensor, self.module(torch.cat([source.expand(len(ids), -1), ids], 1)))

    def initial(self, rows: int) -> State:
        """Return the state of ``rows`` targets of which nothing has been read."""
        return self.module.initial(rows)

    def shared(self, state: State) -> SharedPrefix:
        """Return a state of one target for continuations that all begin with it."""
        return self.module.shared(state)

    def read(self, ids: Tensor, prepared: Any) -> tuple[Tensor, Any]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        source = self._source
        if source is None:
            source = self.module.source_keys_values(self.source_ids)
        return self.module.written(ids, prepared, source)

    def fold(self) -> None:
        """Encode the source once."""
        self._source = self.module.source_keys_values(self.source_ids)


def transformer(
    vocabulary_size: int,
    *,
    units: int = 128,
    layers: int = 2,
    heads: int = 4,
    source_length: int = 32,
    context: int = 33,
    dropout: float = 0.0,
) -> EncoderDecoder:
    """Return a small Transformer for translation: pre-norm blocks with learned positions.

    Args:
        vocabulary_size: How many tokens it reads and predicts, in both languages.
        units: Width throughout; the dense parts are four times as wide.
        layers: Number of blocks of the encoder, and of the decoder.
        heads: Number of attention heads.
        source_length: The longest source.
        context: The longest target, its ``begin`` included.
        dropout: Rate after the embeddings and after each part of a block.

    Raises:
        InvalidInput: A size that is not a positive whole number, a rate outside [0, 1), or heads
            that do not divide the units; later, a source or target that is too long.

    Example:
        >>> model = transformer(50, units=8, source_length=4, context=6)
        >>> model(torch.zeros(2, 4 + 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return EncoderDecoder(
        vocabulary_size,
        units=units,
        layers=layers,
        heads=heads,
        source_length=source_length,
        context=context,
        dropout=dropout,
    )
