"""Pre-activation residual networks: a small one, and WRN16-4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

Shape = Sequence[int]


class PreActivationBlock(nn.Module):
    """Normalise, activate, convolve, twice, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = (
            nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            if stride != 1 or inputs != outputs
            else None
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the shortcut plus the block's own part."""
        active = torch.relu(self.norm1(inputs))
        passed = inputs if self.shortcut is None else self.shortcut(active)
        inner = self.dropout(torch.relu(self.norm2(self.conv1(active))))
        return passed + cast(Tensor, self.conv2(inner))


class ResidualNet(nn.Module):
    """Three stages of pre-activation blocks, then the mean over the image and a dense layer."""

    def __init__(
        self, channels: int, classes: int, *, widths: Sequence[int], blocks: int, dropout: float
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        layers: list[nn.Module] = []
        width = 16
        for stage, units in enumerate(widths):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(PreActivationBlock(width, units, stride, dropout))
                width = units
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits."""
        features = torch.relu(self.norm(self.blocks(self.stem(inputs))))
        logits: Tensor = self.head(features.mean(dim=(2, 3)))
        return logits


def small_resnet(
    shape: Shape, classes: int, *, width: int = 1, blocks: int = 1, dropout: float = 0.0
) -> nn.Module:
    """Return a pre-activation ResNet of 10 layers, 16-32-64 channels wide.

    Args:
        shape: Shape of one input, such as ``(3, 32, 32)``.
        classes: Number of outputs.
        width: Factor on the width of every stage.
        blocks: Blocks per stage: 1, 2 and 3 make 10, 16 and 22 layers.
        dropout: Rate inside each block.
    """
    widths = tuple(width * units for units in (16, 32, 64))
    return ResidualNet(shape[0], classes, widths=widths, blocks=blocks, dropout=dropout)


def wrn16_4(shape: Shape, classes: int, *, dropout: float = 0.0) -> nn.Module:
    """Return WRN16-4: 16 layers, 64-128-256 channels wide, 2.7 million parameters."""
    return ResidualNet(shape[0], classes, widths=(64, 128, 256), blocks=2, dropout=dropout)
