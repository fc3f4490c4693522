"""Logistic regression and MLP-1 (512-256-128), on flattened images."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

Shape = Sequence[int]


def logistic(shape: Shape, classes: int) -> nn.Module:
    """Return multinomial logistic regression."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))


def mlp1(
    shape: Shape,
    classes: int,
    *,
    width: float = 1.0,
    dropout: float = 0.0,
    batch_norm: bool = False,
) -> nn.Module:
    """Return MLP-1: three hidden layers of 512, 256 and 128 units.

    Args:
        shape: Shape of one input, such as ``(1, 28, 28)``.
        classes: Number of outputs.
        width: Factor on the width of every hidden layer.
        dropout: Rate after each hidden layer.
        batch_norm: Whether each hidden layer is normalised before its ReLU.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    inputs = math.prod(shape)
    for units in (round(width * full) for full in (512, 256, 128)):
        layers.append(nn.Linear(inputs, units))
        if batch_norm:
            layers.append(nn.BatchNorm1d(units, eps=1e-3, momentum=0.01))
        layers.append(nn.ReLU())
        if dropout:
            layers.append(nn.Dropout(dropout))
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, classes))
