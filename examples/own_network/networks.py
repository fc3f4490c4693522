"""Two networks that Remnant does not know: a ResNet with batch normalisation, and a GRU.

A recipe names one of the functions below in ``model.maker``; its ``model.options`` are the keyword
arguments. The function returns an untrained network that gives one logit per class. Draw its
weights from torch's generator: Remnant seeds it for each model that it trains.

    remnant run examples/own_network/resnet.toml --trust examples/own_network/networks.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two normalised convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.inner(images) + self.shortcut(images))


def resnet(width: int = 8, classes: int = 10) -> nn.Module:
    """Return a residual network for grey images, shape (batch, 1, height, width)."""
    return nn.Sequential(
        Block(1, width, stride=1),
        Block(width, 2 * width, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


class RowReader(nn.Module):
    """Reads an image row by row, and decides after the last one."""

    def __init__(self, pixels: int, units: int, classes: int) -> None:
        super().__init__()
        self.reader = nn.GRU(pixels, units, batch_first=True)
        self.head = nn.Linear(units, classes)

    def forward(self, images: Tensor) -> Tensor:
        states, _ = self.reader(images[:, 0])
        return self.head(states[:, -1])


def gru(pixels: int = 8, units: int = 32, classes: int = 10) -> nn.Module:
    """Return a recurrent network for grey images that are ``pixels`` wide."""
    return RowReader(pixels, units, classes)
