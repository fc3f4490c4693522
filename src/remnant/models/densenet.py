"""DenseNet-BC: every layer reads the outputs of all previous layers of its block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

Shape = Sequence[int]


def _activated_convolution(inputs: int, outputs: int, size: int, dropout: float) -> list[nn.Module]:
    layers: list[nn.Module] = [
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False),
    ]
    return [*layers, nn.Dropout(dropout)] if dropout else layers


class Bottleneck(nn.Module):
    """A 1 x 1 and a 3 x 3 convolution; appends ``growth`` channels to its inputs."""

    def __init__(self, inputs: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *_activated_convolution(inputs, 4 * growth, 1, dropout),
            *_activated_convolution(4 * growth, growth, 3, dropout),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs' channels, then the new ones."""
        return torch.cat([inputs, self.inner(inputs)], dim=1)


class DenseNet(nn.Module):
    """Three dense blocks; a transition between two of them halves channels and sides."""

    def __init__(
        self, channels: int, classes: int, *, growth: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        width = 2 * growth
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        parts: list[nn.Module] = []
        for block in range(3):
            if block:
                parts += _activated_convolution(width, width // 2, 1, dropout)
                parts.append(nn.AvgPool2d(2))
                width //= 2
            for _ in range(layers):
                parts.append(Bottleneck(width, growth, dropout))
                width += growth
        self.blocks = nn.Sequential(*parts)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits."""
        features = torch.relu(self.norm(self.blocks(self.stem(inputs))))
        return cast(Tensor, self.head(features.mean(dim=(2, 3))))


def densenet100(shape: Shape, classes: int, *, dropout: float = 0.0) -> nn.Module:
    """Return DenseNet-BC of 100 layers and growth 12: 0.77 million parameters on colour images.

    Sixteen bottlenecks a block; transitions keep half of the channels.

    Args:
        shape: Shape of one input, such as ``(3, 32, 32)``.
        classes: Number of outputs.
        dropout: Rate after every convolution but the first.
    """
    return DenseNet(shape[0], classes, growth=12, layers=16, dropout=dropout)
