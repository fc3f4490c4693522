"""Trains copies of models for positive controls: small steps, and no dropout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from remnant.integrations.classifiers.probabilities import Probabilities

_STEP = 0.02  # size of an update, relative to the weights
_AT_ONCE = 8
_SMALLEST = 1e-30  # a probability of zero has no gradient


def copy_optimizer(module: nn.Module) -> torch.optim.Optimizer | None:
    """Return an optimizer whose steps have a size relative to the weights.

    None where the model has no weight that could be trained.
    """
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    return torch.optim.Adam(weights, lr=_STEP * _typical_size(weights)) if weights else None


def trained_copies(
    classifier: Probabilities, images: Tensor, labels: Tensor, looks: Sequence[int]
) -> Iterator[tuple[int, Probabilities]]:
    """Train a copy on labelled images, and yield it after each number of passes, with this number.

    Args:
        classifier: It is left as it was.
        images: ``(n, c, h, w)``, in [0, 1], in the order in which they are trained on.
        labels: int64 ``(n,)``.
        looks: Numbers of passes, increasing.
    """
    copy = classifier.copied()
    optimizer = copy_optimizer(copy.module)
    done = 0
    for look in looks:
        for _ in range(look - done):
            if optimizer is not None:
                _pass(copy, images, labels, optimizer)
        done = look
        yield done, copy


def _pass(
    copy: Probabilities, images: Tensor, labels: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    with torch.enable_grad():
        for rows in torch.arange(len(images)).split(_AT_ONCE):
            optimizer.zero_grad(set_to_none=True)
            right = copy.with_gradients(images[rows]).gather(1, labels[rows][:, None])
            right.clamp_min(_SMALLEST).log().mean().neg().backward()
            optimizer.step()


def _typical_size(weights: Sequence[Tensor]) -> float:
    """The root mean square of the weights of matrices, or of all where there is no matrix."""
    matrices = [weight for weight in weights if weight.ndim > 1] or list(weights)
    total = sum(float(weight.detach().double().square().sum()) for weight in matrices)
    return math.sqrt(total / max(1, sum(weight.numel() for weight in matrices))) or 1e-3
