"""Sums of per-example gradients, each with a weight, from a layer's input and output gradients.

A layer's gradient is linear in the gradient g of its output. So the sum of per-example gradients
with weights f is the ordinary gradient for f * g, and no second backward pass is needed. All
tensors have an axis of members first: x is ``(members, examples, ...)``, and g has weights in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import grad

from remnant.gradients.closed_forms import Seen, normalised
from remnant.gradients.convolution import padded

Sums = dict[str, Tensor]
# From x and g with members first, and what is asked for, to sums ``(members, ...)``.
Summed = Callable[[Seen], Sums]


def dense_sums(seen: Seen) -> Sums:
    """Sums of a dense layer: x is ``(members, n, ..., in)``, g is ``(members, n, ..., out)``."""
    x, g = seen.x.flatten(1, -2), seen.g.flatten(1, -2)
    return seen.norms(
        weight=lambda: torch.bmm(g.transpose(1, 2), x.to(g.dtype)), bias=lambda: g.sum(1)
    )


def embedding_sums(seen: Seen) -> Sums:
    """Sums of an embedding: x is ``(members, n, ...)``, g is ``(members, n, ..., width)``."""
    return {
        "weight": rows_by_token(
            seen.x, seen.g, seen.module.num_embeddings, padding=seen.module.padding_idx
        )
    }


def rows_by_token(
    tokens: Tensor, g: Tensor, vocabulary: int, *, padding: int | None = None
) -> Tensor:
    """Add up the rows of ``g`` that belong to each token, ``(members, vocabulary, width)``."""
    members, width = len(tokens), g.shape[-1]
    first = torch.arange(members, device=g.device).view(-1, *(1 for _ in tokens.shape[1:]))
    places = (tokens.long() + vocabulary * first).flatten()
    rows = g.reshape(-1, width)
    if padding is not None:
        rows = rows * (tokens.flatten() != padding)[:, None]
    sums = rows.new_zeros(members * vocabulary, width).index_add_(0, places, rows)
    return sums.view(members, vocabulary, width)


def channel_sums(seen: Seen) -> Sums:
    """Sums of instance and group norms: one scale and one shift a channel."""
    g = seen.g

    def summed(t: Tensor) -> Tensor:
        return (t.flatten(3).sum(3) if t.ndim > 3 else t).sum(1)

    return seen.norms(weight=lambda: summed(g * _normalised(seen)), bias=lambda: summed(g))


def feature_sums(seen: Seen) -> Sums:
    """Sums of layer and RMS norms: a scale and a shift for each place of the normalised shape."""
    g, shape = seen.g, tuple(seen.module.normalized_shape)

    def summed(t: Tensor) -> Tensor:
        return t.reshape(len(t), -1, math.prod(shape)).sum(1).view(len(t), *shape)

    return seen.norms(weight=lambda: summed(g * _normalised(seen)), bias=lambda: summed(g))


def _normalised(seen: Seen) -> Tensor:
    """The normalised input; members and examples are one axis while it is computed."""
    flat = Seen(seen.module, seen.x.flatten(0, 1), seen.g, seen.wanted, seen.statistics)
    return normalised(flat).view(seen.x.shape)


def convolution_sums(seen: Seen) -> Sums:
    """Sums of a convolution in one or two dimensions."""
    module, g = seen.module, seen.g
    by_torch: Any = grad.conv1d_weight if g.ndim == 4 else grad.conv2d_weight

    def weight() -> Tensor:
        made = [
            by_torch(
                padded(module, x),
                list(module.weight.shape),
                own,
                stride=module.stride,
                dilation=module.dilation,
                groups=module.groups,
            )
            for x, own in zip(seen.x, g, strict=True)
        ]
        return torch.stack(made)

    return seen.norms(weight=weight, bias=lambda: g.flatten(3).sum((1, 3)))
