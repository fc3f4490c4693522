"""A small Conformer: attention and convolutions in turn, for speech, with outputs for CTC."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.errors import InvalidInput, require
from remnant.models.decoder_only import attend
from remnant.models.sequence_module import check_sizes, dropout_layer

SUBSAMPLED = 4  # frames of the input for one of the output


def conformer(
    vocabulary: int,
    *,
    bands: int = 80,
    width: int = 96,
    layers: int = 4,
    heads: int = 4,
    kernel: int = 15,
    dropout: float = 0.0,
) -> nn.Module:
    """Return a recogniser of speech: features to log-probabilities of tokens, frame by frame.

    It is called with ``features [n, frames, bands]`` and ``lengths [n]``, and returns natural
    log-probabilities ``[n, frames', vocabulary]`` and ``lengths' [n]``, a quarter of those that
    entered, rounded up. Frames beyond an utterance's length change nothing. Token 0 is the blank.

    Args:
        vocabulary: Tokens, with the blank.
        bands: Features of a frame.
        width: Units of a frame inside the network; twice the heads must divide it.
        layers: Conformer blocks.
        heads: Of the attention.
        kernel: Frames that a convolution sees, an odd number.
        dropout: Rate of every dropout layer.
    """
    check_sizes(
        dropout=dropout,
        vocabulary=vocabulary,
        bands=bands,
        width=width,
        layers=layers,
        heads=heads,
        kernel=kernel,
    )
    faults = [] if kernel % 2 else [f"kernel={kernel} is not odd"]
    if width % (2 * heads):
        faults.append(f"width={width} is not a multiple of 2 x heads = {2 * heads}")
    if vocabulary < 2:
        faults.append(f"vocabulary={vocabulary} has no token beside the blank")
    require(faults, error=InvalidInput)
    return Conformer(vocabulary, bands, width, layers, heads, kernel, dropout)


class Conformer(nn.Module):
    """The recogniser that ``conformer`` makes."""

    def __init__(
        self,
        vocabulary: int,
        bands: int,
        width: int,
        layers: int,
        heads: int,
        kernel: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.vocabulary, self.bands, self.units_of_a_head = vocabulary, bands, width // heads
        self.first = nn.Conv1d(bands, width, 3, stride=2, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.dropout = dropout_layer(dropout)
        self.blocks = nn.ModuleList(
            [ConformerBlock(width, heads, kernel, dropout) for _ in range(layers)]
        )
        self.out = nn.Linear(width, vocabulary)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities ``[n, frames', vocabulary]`` and their lengths."""
        hidden = F.relu(self.first(_only(features.transpose(1, 2), lengths)))
        lengths = _halved(lengths)
        hidden = F.relu(self.second(_only(hidden, lengths)))
        lengths = _halved(lengths)
        frames = cast(Tensor, self.dropout(hidden.transpose(1, 2)))
        beyond = _beyond(lengths, frames.shape[1])
        turns = _turns(frames.shape[1], self.units_of_a_head, frames)
        for block in self.blocks:
            frames = block(frames, beyond, turns)
        return self.out(frames).log_softmax(-1), lengths


class ConformerBlock(nn.Module):
    """Half a dense part, attention, a convolution, half a dense part; each added to its input."""

    def __init__(self, width: int, heads: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = _Dense(width, dropout), _Dense(width, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.norm3, self.norm4 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gates = nn.Linear(width, 2 * width)
        self.neighbours = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.mix = nn.Linear(width, width)
        self.dropout1, self.dropout2 = dropout_layer(dropout), dropout_layer(dropout)

    def forward(self, frames: Tensor, beyond: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """Apply the block; ``beyond [n, frames]`` is true after an utterance's end."""
        frames = frames + 0.5 * self.before(frames)
        frames = frames + cast(Tensor, self.dropout1(self._attended(frames, beyond, turns)))
        frames = frames + cast(Tensor, self.dropout2(self._convolved(frames, beyond)))
        return cast(Tensor, self.norm4(frames + 0.5 * self.after(frames)))

    def _attended(self, frames: Tensor, beyond: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        cut = self.attention(self.norm1(frames)).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = cut.permute(2, 0, 3, 1, 4).unbind(0)
        seen = attend(_turned(queries, turns), _turned(keys, turns), values, beyond[:, None, None])
        return cast(Tensor, self.project(seen))

    def _convolved(self, frames: Tensor, beyond: Tensor) -> Tensor:
        gated = F.glu(self.gates(self.norm2(frames)), -1).masked_fill(beyond[..., None], 0.0)
        around = self.neighbours(gated.transpose(1, 2)).transpose(1, 2)
        return cast(Tensor, self.mix(F.silu(self.norm3(around))))


class _Dense(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = dropout_layer(dropout)

    def forward(self, frames: Tensor) -> Tensor:
        return cast(Tensor, self.dropout(self.narrow(F.silu(self.widen(self.norm(frames))))))


def _halved(lengths: Tensor) -> Tensor:
    return (lengths + 1) // 2


def _beyond(lengths: Tensor, frames: int) -> Tensor:
    """Whether each frame is after the end of its utterance, ``[n, frames]``."""
    return torch.arange(frames, device=lengths.device) >= lengths[:, None]


def _only(channels: Tensor, lengths: Tensor) -> Tensor:
    """Set ``[n, channels, frames]`` to 0 after each utterance's end."""
    return channels.masked_fill(_beyond(lengths, channels.shape[-1])[:, None], 0.0)


def _turns(frames: int, units: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines by which frames are turned, so that attention sees distances."""
    units_of_two = torch.arange(0, units, 2, dtype=torch.float64, device=like.device)
    frame = torch.arange(frames, dtype=torch.float64, device=like.device)
    angles = frame[:, None] * 10_000.0 ** (-units_of_two / units)
    return angles.cos().to(like), angles.sin().to(like)


def _turned(heads: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cosines, sines = turns
    first, second = heads.chunk(2, -1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines], -1)
