"""LSTM and GRU language models, written so that ``vmap`` can run a population of them.

Gates, their order, the two biases and the initialisation are those of ``nn.LSTM`` and ``nn.GRU``,
whose weights can be copied in. With ``embedding=None`` the input is one-hot.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.models.recurrent_scan import gru_cell, gru_scan, lstm_scan
from remnant.models.sequence_module import (
    SequenceModule,
    State,
    check_sizes,
    dropout_layer,
    watched,
)


class RecurrentLayer(nn.Module):
    """One layer, its weights named as torch names them.

    Attributes:
        recurrence: ``lstm`` or ``gru``: which gates it has, and in which order.
    """

    def __init__(self, inputs: int, units: int, *, gates: int) -> None:
        super().__init__()
        self.recurrence = "lstm" if gates == 4 else "gru"
        self.weight_ih = nn.Parameter(torch.empty(gates * units, inputs))
        self.weight_hh = nn.Parameter(torch.empty(gates * units, units))
        self.bias_ih = nn.Parameter(torch.empty(gates * units))
        self.bias_hh = nn.Parameter(torch.empty(gates * units))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(units), 1 / math.sqrt(units))

    def forward(self, inputs: Tensor, given: Tensor) -> Tensor:
        """Return the hidden states after each time, ``[time, batch, units]``.

        Args:
            inputs: The inputs' part of the gates, ``[time, batch, gates * units]``.
            given: What that part was computed from: vectors, or tokens that are read one-hot. The
                layer does not use it; it is for hooks.
        """
        if self.recurrence == "lstm":
            return lstm_scan(inputs, self.weight_hh)
        return gru_scan(inputs, self.weight_hh, self.bias_hh)


class Recurrent(SequenceModule):
    """Layers of recurrent units between a table of tokens and a linear head.

    A token's part of the first layer's gates is one row of a table, so that this layer multiplies
    only its hidden state. The inputs of the other layers are multiplied for all times at once.
    """

    gates: int
    tensors: int  # of the state, a layer

    def __init__(
        self,
        vocabulary_size: int,
        *,
        units: int,
        layers: int,
        embedding: int | None,
        dropout: float,
    ) -> None:
        check_sizes(
            vocabulary_size=vocabulary_size,
            units=units,
            layers=layers,
            embedding=1 if embedding is None else embedding,
            dropout=dropout,
        )
        super().__init__(vocabulary_size)
        read = vocabulary_size + 1  # with the token "begin"
        self.embedding = None if embedding is None else nn.Embedding(read, embedding)
        widths = [embedding or read, *[units] * (layers - 1)]
        self.layers = nn.ModuleList(RecurrentLayer(w, units, gates=self.gates) for w in widths)
        self.dropouts = nn.ModuleList(dropout_layer(dropout) for _ in widths)
        self.head = nn.Linear(units, vocabulary_size)
        self.units = units
        self._folded: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after every token, ``[batch, time, vocabulary]``."""
        given, inputs = self._first_gates(ids.t())
        for place, (layer, dropout) in enumerate(zip(self._each(), self.dropouts, strict=True)):
            if place:
                flat = F.linear(given.flatten(0, 1), layer.weight_ih, self._input_bias(layer))
                inputs = flat.unflatten(0, given.shape[:2])
            given = dropout(layer(inputs, given))
        if watched(self.head):
            return cast(Tensor, self.head(given)).transpose(0, 1)
        logits: Tensor = self.head(given.flatten(0, 1)).unflatten(0, given.shape[:2])
        return logits.transpose(0, 1)

    def initial(self, rows: int) -> State:
        """Return zeros for the hidden state, and the cell if there is one, of each layer."""
        return tuple(self._zeros(rows, self.units) for _ in range(self.tensors * len(self.layers)))

    def fold(self) -> None:
        """Compute once the table of each token's part of the first layer's gates."""
        self._folded = self._table().detach()

    def _first_gates(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the first layer reads, and its part of the gates.

        Where a hook watches the first layer, tokens go through the embedding and not the table, so
        that every product belongs to a layer.
        """
        first = self._each()[0]
        if self.embedding is None or not watched(first):
            return ids, self._token_gates(ids)
        vectors = self.embedding(ids)
        return vectors, F.linear(vectors, first.weight_ih, self._input_bias(first))

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        """Return the bias that is added to a layer's inputs."""
        raise NotImplementedError

    def _each(self) -> list[RecurrentLayer]:
        return [cast(RecurrentLayer, layer) for layer in self.layers]

    def _table(self) -> Tensor:
        first = self._each()[0]
        columns = first.weight_ih.t()
        rows = columns.contiguous() if self.embedding is None else self.embedding.weight @ columns
        return rows + self._input_bias(first)

    def _token_gates(self, ids: Tensor) -> Tensor:
        """Return the tokens' part of the first layer's gates, by table where tokens repeat."""
        if self._folded is not None:
            return F.embedding(ids, self._folded)
        if ids.numel() > self.vocabulary_size:
            return F.embedding(ids, self._table())
        first = self._each()[0]
        if self.embedding is None:
            return F.embedding(ids, first.weight_ih.t()) + self._input_bias(first)
        return F.linear(self.embedding(ids), first.weight_ih, self._input_bias(first))


class Lstm(Recurrent):
    """Long short-term memory."""

    gates, tensors = 4, 2

    def prepare(self, state: State) -> State:
        """Return the hidden state's part of the gates, and the cell, of each layer."""
        made = []
        for place, layer in enumerate(self._each()):
            hidden, cell = state[2 * place : 2 * place + 2]
            if place:
                gates = torch.addmm(self._input_bias(layer), hidden, layer.weight_hh.t())
            else:
                gates = hidden @ layer.weight_hh.t()
            made += [gates, cell]
        return tuple(made)

    def read(self, ids: Tensor, prepared: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        inputs = self._token_gates(ids)
        made: list[Tensor] = []
        for place, layer in enumerate(self._each()):
            if place:
                inputs = made[-2] @ layer.weight_ih.t()
            made += _lstm_cell(inputs, *prepared[2 * place : 2 * place + 2])
        return self.head(made[-2]), tuple(made)

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        return layer.bias_ih + layer.bias_hh


class Gru(Recurrent):
    """Gated recurrent units."""

    gates, tensors = 3, 1

    def prepare(self, state: State) -> State:
        """Return the hidden state's part of the gates, and the hidden state, of each layer."""
        made = []
        for hidden, layer in zip(state, self._each(), strict=True):
            made += [torch.addmm(layer.bias_hh, hidden, layer.weight_hh.t()), hidden]
        return tuple(made)

    def read(self, ids: Tensor, prepared: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        inputs = self._token_gates(ids)
        made: list[Tensor] = []
        for place, layer in enumerate(self._each()):
            if place:
                inputs = torch.addmm(layer.bias_ih, made[-1], layer.weight_ih.t())
            made.append(gru_cell(inputs, *prepared[2 * place : 2 * place + 2]))
        return self.head(made[-1]), tuple(made)

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        return layer.bias_ih


def _lstm_cell(inputs: Tensor, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return the hidden state and cell after one step; overwrites ``inputs``."""
    if inputs.is_cuda:  # one kernel instead of nine, each bound by memory
        hidden, cell, _ = torch.ops.aten._thnn_fused_lstm_cell(inputs, gates, cell)
        return hidden, cell
    # torch's tanh takes three times as long as its sigmoid on a CPU: tanh(x) = 2 sigmoid(2x) - 1.
    units = cell.shape[-1]
    inputs.add_(gates)
    inputs[:, 2 * units : 3 * units] *= 2
    i, f, g, o = inputs.sigmoid_().chunk(4, -1)
    cell = (f * cell).addcmul_(i, g, value=2).sub_(i)
    squashed = (2 * cell).sigmoid_()
    return (o * squashed).mul_(2).sub_(o), cell


def lstm(
    vocabulary_size: int,
    *,
    units: int = 200,
    layers: int = 2,
    embedding: int | None = None,
    dropout: float = 0.0,
) -> SequenceModule:
    """Return an LSTM language model.

    Args:
        vocabulary_size: Number of tokens that it predicts.
        units, layers: Size of the recurrent part; 2 layers of 200 have some 600 000 weights.
        embedding: Width of the tokens' vectors; ``None`` reads them one-hot.
        dropout: Rate after each layer, the last included.

    Raises:
        InvalidInput: A size that is not a positive whole number, or a rate outside [0, 1).

    Example:
        >>> lstm(50, units=8)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return Lstm(vocabulary_size, units=units, layers=layers, embedding=embedding, dropout=dropout)


def gru(
    vocabulary_size: int,
    *,
    units: int = 230,
    layers: int = 2,
    embedding: int | None = None,
    dropout: float = 0.0,
) -> SequenceModule:
    """Return a GRU language model; its options are those of ``lstm``.

    Example:
        >>> gru(50, units=8)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return Gru(vocabulary_size, units=units, layers=layers, embedding=embedding, dropout=dropout)
