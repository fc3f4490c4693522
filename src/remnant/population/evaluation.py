"""Outputs of all members on the same examples, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remnant.population.backends import Backend
from remnant.population.blueprint import Loss
from remnant.population.state import State
from remnant.population.store import ExampleStore

_NUMBERS = 2**27  # that one pass may hold, all members together
_EXAMPLES = 2**24  # likewise, one member: how examples are cut must not depend on the neighbours
_GROWTH = 64  # how much larger than an input a model's inner activations are taken to be


def all_outputs(backend: Backend, state: State, inputs: Tensor) -> Tensor:
    """Return every member's evaluation outputs, ``(members, n, ...)``."""
    per_example = _GROWTH * max(1, inputs[:1].numel())
    chunk = max(1, _EXAMPLES // per_example)
    group = max(1, _NUMBERS // (per_example * min(chunk, max(1, len(inputs)))))
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
