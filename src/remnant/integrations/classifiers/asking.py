"""Evaluates a third-party classifier once on each sample."""

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
    """Run ``one_pass`` on the samples; hidden states are float32 or float64.

    A program that was exported for a fixed batch size gets batches of that size.

    Raises:
        UnsupportedModel, InvalidInput: As ``one_pass``; or hidden states that are NaN or infinite.
    """
    fixed = getattr(model, "fixed_batch", None)
    answers = one_pass(
        model, inputs, labels, layers=layers, batch=batch if fixed is None else int(fixed)
    )
    wide = (torch.float32, torch.float64)
    hidden = tuple(states if states.dtype in wide else states.float() for states in answers.hidden)
    for name, states in zip(answers.layers, hidden, strict=True):
        if not bool(states.isfinite().all()):
            raise InvalidInput(
                f"the hidden states {name} are NaN or infinite.", hint="Name another layer."
            )
    return replace(answers, hidden=hidden)
