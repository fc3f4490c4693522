"""What a translator pays for translations, in nats and in bits a token."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.population import Population
from remnant.studies.translation.planted_pairs import PairRows
from remnant.tasks.language_models import finite_losses

_TOGETHER = 64


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return what each label costs, in nats; 0 where there is none. Any axes before them."""
    there = labels >= 0
    costs = -logits.log_softmax(-1).gather(-1, (labels * there)[..., None])[..., 0]
    return costs * there


def sentence_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each example's cost as a share of the longest sentence: every token weighs the same.

    Args:
        logits: ``(batch, time, vocabulary)``.
        labels: ``(batch, time)``, -1 beyond a sentence's end.
    """
    return token_losses(logits, labels).sum(-1) / labels.shape[-1]


def validation_bits(population: Population, rows: PairRows) -> NDArray[np.float64]:
    """Return each member's mean cost of a target's token given its source, in bits.

    Raises:
        InvalidInput: One of them is not finite.
    """
    total = torch.zeros(len(population), dtype=torch.float64)
    inputs, labels = torch.from_numpy(rows.inputs), torch.from_numpy(rows.labels)
    for some, theirs in zip(inputs.split(_TOGETHER), labels.split(_TOGETHER), strict=True):
        logits = population.logits(some).double()
        wanted = theirs.to(logits.device).expand(len(population), -1, -1)
        total += token_losses(logits, wanted).sum((1, 2)).cpu()
    bits = total / (int((labels >= 0).sum()) * math.log(2))
    return finite_losses(bits.numpy())
