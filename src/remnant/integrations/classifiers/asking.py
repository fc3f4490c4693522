"""Asks a classifier from the outside about samples, once about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput
from remnant.probes.one_pass import OnePass, one_pass


def ask(
    model: nn.Module,
    inputs: Tensor | Mapping[str, Tensor],
    labels: Tensor,
    *,
    layers: Sequence[str] = ("last",),
    batch: int = 256,
) -> OnePass:
    """Ask once about each sample, see ``one_pass``; hidden states are float32 or float64.

    A program that was exported for batches of one size is asked in such batches.

    Raises:
        UnsupportedModel, InvalidInput: As ``one_pass``; or hidden states that are NaN or infinite.
    """
    fixed = getattr(model, "fixed_batch", None)
    found = one_pass(
        model, inputs, labels, layers=layers, batch=batch if fixed is None else int(fixed)
    )
    wide = (torch.float32, torch.float64)
    hidden = tuple(one if one.dtype in wide else one.float() for one in found.hidden)
    for name, states in zip(found.layers, hidden, strict=True):
        if not bool(states.isfinite().all()):
            raise InvalidInput(
                f"the hidden states {name} are NaN or infinite.", hint="Name another layer."
            )
    return replace(found, hidden=hidden)
