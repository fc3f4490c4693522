"""Self-influence by its definition: load, ask about one example, go back, square and add."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import contextmanager
from unittest import mock

import numpy as np
import torch
from torch import nn

from remnant.probes.influence import reader


def cross_entropy(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels, reduction="none")


def by_hand(model, inputs, labels, checkpoints, loss=cross_entropy, names=None):
    """Each example alone in its batch, with plain autograd on a copy of the model."""
    twin = copy.deepcopy(model).eval()
    total = np.zeros(len(labels))
    for state, rate in checkpoints:
        twin.load_state_dict(state)
        for row in range(len(labels)):
            twin.zero_grad(set_to_none=True)
            if isinstance(inputs, Mapping):
                outputs = twin(**{name: given[row : row + 1] for name, given in inputs.items()})
            else:
                outputs = twin(inputs[row : row + 1])
            loss(outputs, labels[row : row + 1]).sum().backward()
            total[row] += rate * sum(
                float(one.grad.to_dense().double().square().sum())
                for name, one in twin.named_parameters()
                if one.grad is not None and (names is None or name in names)
            )
    return total


def drifted(model, count=2, rate=0.3):
    """Checkpoints that are not the model's own weights, with learning rates that differ."""
    found = []
    for place in range(count):
        state = {
            name: tensor + 0.1 * torch.randn_like(tensor).abs()
            if tensor.is_floating_point()
            else tensor.clone()
            for name, tensor in model.state_dict().items()
        }
        found.append((state, rate * (place + 1)))
    return found


@contextmanager
def closed_forms_only():
    """Any parameter that is not done in closed form is an error."""
    with mock.patch.object(reader, "by_vmap", side_effect=AssertionError("no closed form")):
        yield
