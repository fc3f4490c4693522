"""LSTM and GRU language models, written so that ``vmap`` can run a population of them.

Gates, their order, the two biases and the start are those of ``nn.LSTM`` and ``nn.GRU``, whose
weights can be copied in; with ``embedding=None`` the input is one-hot.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.models.recurrent_scan import gru_cell, gru_scan, lstm_scan
from remnant.models.sequence_module import SequenceModule, State, check_sizes, dropout_layer


class RecurrentLayer(nn.Module):
    """The weights of one layer, named as torch names them."""

    def __init__(self, inputs: int, units: int, *, gates: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(gates * units, inputs))
        self.weight_hh = nn.Parameter(torch.empty(gates * units, units))
        self.bias_ih = nn.Parameter(torch.empty(gates * units))
        self.bias_hh = nn.Parameter(torch.empty(gates * units))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(units), 1 / math.sqrt(units))


class Recurrent(SequenceModule):
    """Layers of recurrent units between a table of tokens and a linear head.

    What a token adds to the first layer's gates is one row of a table, so that layer multiplies
    nothing but its hidden state. The other layers' inputs are multiplied for all times at once.
    """

    gates: int

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
        hidden = inputs = self._token_gates(ids.t())
        for place, (layer, dropout) in enumerate(zip(self._each(), self.dropouts, strict=True)):
            if place:
                flat = F.linear(hidden.flatten(0, 1), layer.weight_ih, self._input_bias(layer))
                inputs = flat.unflatten(0, hidden.shape[:2])
            hidden = dropout(self._scan(inputs, layer))
        logits: Tensor = self.head(hidden.flatten(0, 1)).unflatten(0, hidden.shape[:2])
        return logits.transpose(0, 1)

    def fold(self) -> None:
        """Keep the table of what each token adds to the first layer's gates."""
        self._folded = self._table().detach()

    def _scan(self, inputs: Tensor, layer: RecurrentLayer) -> Tensor:
        """Return the hidden states after each time of ``inputs [time, batch, gates * units]``."""
        raise NotImplementedError

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        """Return what is added to a layer's inputs before its hidden states are."""
        raise NotImplementedError

    def _each(self) -> list[RecurrentLayer]:
        return [cast(RecurrentLayer, layer) for layer in self.layers]

    def _table(self) -> Tensor:
        first = self._each()[0]
        columns = first.weight_ih.t()
        rows = columns.contiguous() if self.embedding is None else self.embedding.weight @ columns
        return rows + self._input_bias(first)

    def _token_gates(self, ids: Tensor) -> Tensor:
        """Return what tokens add to the first layer's gates; cheaper by table if they repeat."""
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

    gates = 4

    def initial(self, rows: int) -> State:
        """Return zeros for the hidden state and the cell of each layer."""
        return tuple(self._zeros(rows, self.units) for _ in range(2 * len(self.layers)))

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

    def _scan(self, inputs: Tensor, layer: RecurrentLayer) -> Tensor:
        return lstm_scan(inputs, layer.weight_hh)

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        return layer.bias_ih + layer.bias_hh


class Gru(Recurrent):
    """Gated recurrent units."""

    gates = 3

    def initial(self, rows: int) -> State:
        """Return zeros for the hidden state of each layer."""
        return tuple(self._zeros(rows, self.units) for _ in self.layers)

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

    def _scan(self, inputs: Tensor, layer: RecurrentLayer) -> Tensor:
        return gru_scan(inputs, layer.weight_hh, layer.bias_hh)

    def _input_bias(self, layer: RecurrentLayer) -> Tensor:
        return layer.bias_ih


def _lstm_cell(inputs: Tensor, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step; ``inputs`` is written into."""
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
        vocabulary_size: How many tokens it predicts.
        units, layers: Of the recurrent part; 2 layers of 200 have some 600 000 weights.
        embedding: Width of the tokens' vectors; ``None`` reads them one-hot.
        dropout: Rate after each layer, the last included.

    Raises:
        InvalidInput: A size that is no whole number from 1 on, or a rate outside [0, 1).

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
