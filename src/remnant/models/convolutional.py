"""CNN-1 (32-64-pool-128) and CNN-2 (VGG-like, 32-32-pool-64-64-pool-1024)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

Shape = Sequence[int]


def _convolution(
    inputs: int, outputs: int, *, padding: int, dropout: float, batch_norm: bool
) -> list[nn.Module]:
    layers: list[nn.Module] = [nn.Conv2d(inputs, outputs, 3, padding=padding)]
    if batch_norm:
        layers.append(nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01))
    layers.append(nn.ReLU())
    if dropout:
        layers.append(nn.Dropout(dropout))
    return layers


def _head(inputs: int, hidden: int, classes: int, dropout: float) -> list[nn.Module]:
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU()]
    if dropout:
        layers.append(nn.Dropout(dropout))
    return [*layers, nn.Linear(hidden, classes)]


def cnn1(
    shape: Shape,
    classes: int,
    *,
    dropout: float = 0.0,
    conv_dropout: float = 0.0,
    batch_norm: bool = False,
) -> nn.Module:
    """Return CNN-1: two unpadded convolutions, one pooling, a dense layer of 128."""
    channels, height, width = shape
    layers: list[nn.Module] = []
    for units in (32, 64):
        layers += _convolution(
            channels, units, padding=0, dropout=conv_dropout, batch_norm=batch_norm
        )
        channels = units
    flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)
    return nn.Sequential(*layers, nn.MaxPool2d(2), *_head(flat, 128, classes, dropout))


def cnn2(
    shape: Shape,
    classes: int,
    *,
    dropout: float = 0.0,
    conv_dropout: float = 0.0,
    batch_norm: bool = False,
) -> nn.Module:
    """Return CNN-2: two pairs of padded convolutions, each pooled, a dense layer of 1024."""
    channels, height, width = shape
    layers: list[nn.Module] = []
    for units in (32, 64):
        for _ in range(2):
            layers += _convolution(
                channels, units, padding=1, dropout=conv_dropout, batch_norm=batch_norm
            )
            channels = units
        layers.append(nn.MaxPool2d(2))
    flat = 64 * (height // 4) * (width // 4)
    return nn.Sequential(*layers, *_head(flat, 1024, classes, dropout))
