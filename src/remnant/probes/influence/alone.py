"""Squared gradient norms by their definition: each example alone in its batch.

``by_vmap`` does many at once with ``torch.func``; ``one_by_one`` is the plain loop, which any model
allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from remnant.probes.hidden import Inputs, length_of, part_of
from remnant.probes.influence.closed_forms import Norms, pieces, squares

# Losses of examples, given the examples and their labels; and given all tensors of the model too.
Ask = Callable[[Inputs, Tensor], Tensor]
AskWith = Callable[[Mapping[str, Tensor], Inputs, Tensor], Tensor]
_SLOW = "There is a performance drop because we have not yet implemented the batching rule"


def one_by_one(
    ask: Ask, weights: Mapping[str, Tensor], part: Inputs, labels: Tensor
) -> tuple[Norms, set[str]]:
    """Return the norms of each of the weights, and which of them some loss depends on."""
    rows = range(length_of(part))
    found = {name: torch.zeros(len(rows), dtype=torch.float64) for name in weights}
    used: set[str] = set()
    for row in rows:
        loss = ask(part_of(part, row, row + 1), labels[row : row + 1]).sum()
        if not loss.requires_grad:
            continue
        gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        for name, came in zip(weights, gradients, strict=True):
            if came is not None:
                used.add(name)
                whole = came.coalesce().values() if came.is_sparse else came
                found[name][row] = squares(whole.reshape(1, -1))[0]
    return {name: norms.to(labels.device) for name, norms in found.items()}, used


def by_vmap(
    ask: AskWith, tensors: Mapping[str, Tensor], names: Sequence[str], part: Inputs, labels: Tensor
) -> Norms:
    """Return the norms of each named one of the tensors; raises whatever vmap raises."""
    others = {name: tensor.detach() for name, tensor in tensors.items() if name not in set(names)}
    chosen = {name: tensors[name].detach() for name in names}

    def loss(own: dict[str, Tensor], row: Any, label: Tensor) -> Tensor:
        single = (
            {name: tensor[None] for name, tensor in row.items()}
            if isinstance(row, Mapping)
            else row[None]
        )
        return ask({**others, **own}, single, label[None]).sum()

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    found: dict[str, list[Tensor]] = {name: [] for name in names}
    size = sum(tensor.numel() for tensor in chosen.values())
    like = next(iter(chosen.values())).new_empty(length_of(part), 0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_SLOW)
        for some in pieces(like, size, times=16):
            rows = part_of(part, some.start, some.stop)
            for name, came in gradients(chosen, rows, labels[some]).items():
                found[name].append(squares(came))
    return {name: torch.cat(norms) for name, norms in found.items()}
