"""Outputs of all members on the same examples, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remnant.population.backends import Backend
from remnant.population.blueprint import Loss
from remnant.population.state import State
from remnant.population.store import ExampleStore

# Numbers that one pass may hold: all members together, and one member alone; how examples are cut
# must not depend on the neighbours. A GPU is slow at small pieces.
_NUMBERS = {"cpu": 2**27, "cuda": 2**30}
_EXAMPLES = {"cpu": 2**24, "cuda": 2**28}
_GROWTH = 64  # how much larger than an input a model's inner activations are taken to be


def all_outputs(backend: Backend, state: State, inputs: Tensor) -> Tensor:
    """Return every member's evaluation outputs, ``(members, n, ...)``."""
    per_example = _GROWTH * max(1, inputs[:1].numel())
    where = inputs.device.type
    chunk = max(1, _EXAMPLES[where] // per_example)
    group = max(1, _NUMBERS[where] // (per_example * min(chunk, max(1, len(inputs)))))
    made = []
    for first in range(0, len(state), group):
        some = state.view(first, min(first + group, len(state)))
        made.append(torch.cat([backend.outputs(some, part) for part in inputs.split(chunk)], dim=1))
    return torch.cat(made)


def validation_loss(
    backend: Backend, loss: Loss, held_out: ExampleStore
) -> Callable[[State], Tensor]:
    """Return a function from a state to each member's mean loss on held-out examples."""

    def losses(state: State) -> Tensor:
        outputs = all_outputs(backend, state, held_out.inputs)
        return torch.stack([loss(member, held_out.labels).mean() for member in outputs])

    return losses
