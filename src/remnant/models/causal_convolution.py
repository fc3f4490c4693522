"""Causal CNN and WaveNet language models, which read a fixed number of previous tokens.

A causal convolution is computed as one matrix product over the concatenated inputs of its taps, so
that a population of models needs one batched product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models.sequence_module import SequenceModule, State, check_sizes, dropout_layer

Convolve = Callable[[int, Tensor], Tensor]


class CausalConvolution(nn.Module):
    """A convolution over time that reads only past inputs, padded with zeros at the start.

    ``weight`` is ``[outputs, taps * inputs]``, the oldest tap first. It equals the weight of
    ``nn.Conv1d`` with its last two axes swapped and flattened.
    """

    def __init__(self, inputs: int, outputs: int, *, taps: int, dilation: int = 1) -> None:
        if taps < 2:
            raise InvalidInput(
                f"taps={taps} is less than 2.", hint="One tap sees nothing before it."
            )
        super().__init__()
        self.dilation = dilation
        self.inputs, self.back = inputs, (taps - 1) * dilation
        bound = 1 / math.sqrt(taps * inputs)
        self.weight = nn.Parameter(torch.empty(outputs, taps * inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, inputs: Tensor) -> Tensor:
        """Convolve ``[batch, time, inputs]``."""
        times = inputs.shape[1]
        padded = F.pad(inputs, (0, 0, self.back, 0))
        ends = range(0, self.back + 1, self.dilation)
        beside = torch.cat([padded[:, at : at + times] for at in ends], -1)
        return F.linear(beside, self.weight, self.bias)

    def older_taps(self, window: Tensor) -> Tensor:
        """Return the older inputs' part of the output, from ``window [rows, back, inputs]``."""
        older = window[:, :: self.dilation].flatten(1)
        return F.linear(older, self.weight[:, : -self.inputs], self.bias)

    def newest_tap(self, inputs: Tensor, older: Tensor) -> Tensor:
        """Return the output at the newest input, given the older inputs' part."""
        return torch.addmm(older, inputs, self.weight[:, -self.inputs :].t())


class Convolutional(SequenceModule):
    """Causal convolutions between an embedding and a head.

    The state holds the last ``back`` inputs of each convolution.
    """

    def __init__(
        self, vocabulary_size: int, embedding: int, convolutions: list[CausalConvolution]
    ) -> None:
        super().__init__(vocabulary_size)
        self.embedding = nn.Embedding(vocabulary_size + 1, embedding)
        self.convolutions = nn.ModuleList(convolutions)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits after every token, ``[batch, time, vocabulary]``."""
        return self._through(
            self.embedding(ids), lambda place, inputs: self.convolutions[place](inputs)
        )

    def initial(self, rows: int) -> State:
        """Return windows of zeros."""
        return tuple(
            self._zeros(rows, convolution.back, convolution.inputs) for convolution in self._each()
        )

    def prepare(self, state: State) -> State:
        """Return the older taps' part, and the window without its oldest input, per convolution."""
        made = []
        for window, convolution in zip(state, self._each(), strict=True):
            made += [convolution.older_taps(window), window[:, 1:]]
        return tuple(made)

    def read(self, ids: Tensor, prepared: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        windows = []
        convolutions = self._each()

        def convolve(place: int, inputs: Tensor) -> Tensor:
            older, window = prepared[2 * place : 2 * place + 2]
            windows.append(torch.cat([window, inputs[:, None]], 1))
            return convolutions[place].newest_tap(inputs, older)

        return self._through(self.embedding(ids), convolve), tuple(windows)

    def _each(self) -> list[CausalConvolution]:
        return [cast(CausalConvolution, convolution) for convolution in self.convolutions]

    def _through(self, inputs: Tensor, convolve: Convolve) -> Tensor:
        """Map embedded tokens to logits; ``convolve(place, x)`` applies one convolution."""
        raise NotImplementedError


class CausalCnn(Convolutional):
    """A stack of causal convolutions, each followed by ReLU and dropout."""

    def __init__(
        self, vocabulary_size: int, *, units: int, layers: int, taps: int, dropout: float
    ) -> None:
        check_sizes(
            vocabulary_size=vocabulary_size, units=units, layers=layers, taps=taps, dropout=dropout
        )
        made = [CausalConvolution(units, units, taps=taps) for _ in range(layers)]
        super().__init__(vocabulary_size, units, made)
        self.dropouts = nn.ModuleList(dropout_layer(dropout) for _ in made)
        self.head = nn.Linear(units, vocabulary_size)

    def _through(self, inputs: Tensor, convolve: Convolve) -> Tensor:
        for place, dropout in enumerate(self.dropouts):
            inputs = dropout(convolve(place, inputs).relu())
        return cast(Tensor, self.head(inputs))


class WaveNet(Convolutional):
    """Gated dilated convolutions, each with a residual and a skip connection."""

    def __init__(
        self,
        vocabulary_size: int,
        *,
        units: int,
        layers: int,
        stacks: int,
        taps: int,
        dropout: float,
    ) -> None:
        check_sizes(
            vocabulary_size=vocabulary_size,
            units=units,
            layers=layers,
            stacks=stacks,
            taps=taps,
            dropout=dropout,
        )
        made = [
            CausalConvolution(units, 2 * units, taps=taps, dilation=2**layer)
            for _ in range(stacks)
            for layer in range(layers)
        ]
        super().__init__(vocabulary_size, units, made)
        self.dropouts = nn.ModuleList(dropout_layer(dropout) for _ in made)
        self.skips = nn.ModuleList(nn.Linear(units, units) for _ in made)
        # The last block has no residual connection, only its skip.
        self.residuals = nn.ModuleList(nn.Linear(units, units) for _ in made[1:])
        self.hidden = nn.Linear(units, units)
        self.head = nn.Linear(units, vocabulary_size)

    def _through(self, inputs: Tensor, convolve: Convolve) -> Tensor:
        total = torch.zeros_like(inputs)
        for place, (dropout, skip) in enumerate(zip(self.dropouts, self.skips, strict=True)):
            signal, gate = convolve(place, inputs).chunk(2, -1)
            gated = dropout(signal.tanh() * gate.sigmoid())
            total = total + skip(gated)
            if place < len(self.residuals):
                inputs = inputs + self.residuals[place](gated)
        return cast(Tensor, self.head(self.hidden(total.relu()).relu()))


def causal_cnn(
    vocabulary_size: int,
    *,
    units: int = 140,
    layers: int = 4,
    taps: int = 8,
    dropout: float = 0.0,
) -> SequenceModule:
    """Return a causal CNN; it sees ``1 + layers * (taps - 1)`` tokens, 29 by default.

    Args:
        vocabulary_size: Number of tokens that it predicts.
        units: Channels of the embedding and of each layer.
        layers: How many convolutions.
        taps: Kernel size: how many consecutive inputs a convolution reads.
        dropout: Rate after each layer.

    Raises:
        InvalidInput: A size that is not a positive whole number, or a rate outside [0, 1).

    Example:
        >>> causal_cnn(50, units=8)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return CausalCnn(vocabulary_size, units=units, layers=layers, taps=taps, dropout=dropout)


def wavenet(
    vocabulary_size: int,
    *,
    units: int = 96,
    layers: int = 5,
    stacks: int = 2,
    taps: int = 2,
    dropout: float = 0.0,
) -> SequenceModule:
    """Return a WaveNet; it sees 63 tokens by default.

    In general ``1 + stacks * (taps - 1) * (2**layers - 1)``.

    Args:
        vocabulary_size: Number of tokens that it predicts.
        units: Channels throughout.
        layers: Blocks of a stack; each reads twice as far back as the previous one.
        stacks: How many times the dilations 1, 2, 4, ... are repeated.
        taps: Kernel size: how many inputs a convolution reads.
        dropout: Rate after each gate.

    Raises:
        InvalidInput: A size that is not a positive whole number, or a rate outside [0, 1).

    Example:
        >>> wavenet(50, units=8)(torch.zeros(2, 5, dtype=torch.int64)).shape
        torch.Size([2, 5, 50])
    """
    return WaveNet(
        vocabulary_size, units=units, layers=layers, stacks=stacks, taps=taps, dropout=dropout
    )
