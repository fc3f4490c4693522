"""Squared norms of per-example gradients, from a layer's input and the gradient of its output.

Dense: with inputs x and gradients g of one example over its tokens, the weight's gradient is
Σ_t g_t x_tᵀ; for one token its squared norm is ‖x‖²‖g‖², for several it is Σ_ts (x_t·x_s)(g_t·g_s).
Norms are taken in float64 whatever the model computes in, since squares of small gradients
underflow in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Working memory of one piece: what a CPU's caches hold, and what a GPU has to spare.
_CPU_BYTES = 1 << 22
_GPU_BYTES = 1 << 28

Norms = dict[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One call of a layer.

    Attributes:
        module: The layer.
        x: Its input, examples first.
        g: The gradient of the summed loss with respect to its output, examples first.
        wanted: Which of ``weight`` and ``bias`` are asked for.
        statistics: Running mean and variance that it used, if it did.
    """

    module: Any
    x: Tensor
    g: Tensor
    wanted: Set[str]
    statistics: tuple[Tensor, Tensor] | None = None

    def norms(self, **forms: Callable[[], Tensor]) -> Norms:
        """Compute the norms that are asked for."""
        return {name: form() for name, form in forms.items() if name in self.wanted}


Form = Callable[[Seen], Norms]


def squares(rows: Tensor) -> Tensor:
    """Return the squared norm of each row, whatever its shape, in float64."""
    norms: Tensor = torch.linalg.vector_norm(rows.flatten(1), dim=1, dtype=torch.float64)
    return norms.square()


def pieces(like: Tensor, numbers: int, times: int = 1) -> Iterator[slice]:
    """Yield slices of examples, so many that their working memory fits.

    Args:
        like: A tensor of the examples; its first axis, type and device count.
        numbers: That the work on one example holds at once.
        times: By how much more memory it may be.
    """
    allowed = times * (_CPU_BYTES if like.device.type == "cpu" else _GPU_BYTES)
    step = max(1, allowed // max(1, numbers * like.element_size()))
    for first in range(0, len(like), step):
        yield slice(first, first + step)


def dense(seen: Seen) -> Norms:
    """Norms of a dense layer: x is ``(n, ..., in)``, g is ``(n, ..., out)``."""
    x, g = seen.x, seen.g
    if x.ndim == 2:
        return seen.norms(weight=lambda: squares(x) * squares(g), bias=lambda: squares(g))
    x, g = x.flatten(1, -2), g.flatten(1, -2)
    return seen.norms(weight=lambda: _dense_weight(x, g), bias=lambda: squares(g.sum(1)))


def _dense_weight(x: Tensor, g: Tensor) -> Tensor:
    tokens, entering, leaving = x.shape[1], x.shape[2], g.shape[2]
    by_hand = entering * leaving <= tokens * (entering + leaving)

    def norms(x: Tensor, g: Tensor) -> Tensor:
        if by_hand:
            return squares(torch.bmm(x.transpose(1, 2), g))
        return paired(torch.bmm(x, x.transpose(1, 2)), g)

    holds = entering * leaving if by_hand else 2 * tokens * tokens
    return torch.cat([norms(x[some], g[some]) for some in pieces(x, holds)])


def paired(products: Tensor, g: Tensor) -> Tensor:
    """Return Σ_ts products_ts (g_t·g_s) of each example; ``g`` is ``(n, tokens, out)``.

    Gradients are divided by their largest entry first, so that their squares do not underflow.
    """
    largest = g.abs().amax((1, 2), keepdim=True)
    scaled = g / torch.where(largest > 0, largest, torch.ones_like(largest))
    after = torch.bmm(scaled, scaled.transpose(1, 2))
    both: Tensor = torch.linalg.vecdot(products.flatten(1).double(), after.flatten(1).double())
    return both.clamp(min=0.0) * largest.flatten().double().square()


def embedding(seen: Seen) -> Norms:
    """Norms of an embedding: gradients of equal tokens of an example add up before the square."""
    vocabulary, padding = seen.module.num_embeddings, seen.module.padding_idx
    tokens, rows = seen.x.reshape(len(seen.x), -1).long(), seen.g.reshape(-1, seen.g.shape[-1])
    example = torch.arange(len(tokens), device=tokens.device)[:, None]
    keys = (example * vocabulary + tokens).flatten()
    if padding is not None:
        trained = tokens.flatten() != padding
        keys, rows = keys[trained], rows[trained]
    distinct, place = keys.unique(return_inverse=True)
    sums = rows.new_zeros(len(distinct), rows.shape[1]).index_add_(0, place, rows)
    norms = torch.zeros(len(tokens), dtype=torch.float64, device=rows.device)
    return {"weight": norms.index_add_(0, distinct // vocabulary, squares(sums))}


def per_channel(seen: Seen) -> Norms:
    """Norms of batch, instance and group norms: one scale and one shift a channel."""
    return _affine(seen, lambda t: t.flatten(2).sum(2) if t.ndim > 2 else t)


def per_feature(seen: Seen) -> Norms:
    """Norms of layer and RMS norms: a scale and a shift for each place of the normalised shape."""
    width = math.prod(seen.module.normalized_shape)
    return _affine(seen, lambda t: t.reshape(len(t), -1, width).sum(1))


def _affine(seen: Seen, summed: Callable[[Tensor], Tensor]) -> Norms:
    return seen.norms(
        weight=lambda: squares(summed(seen.g * normalised(seen))),
        bias=lambda: squares(summed(seen.g)),
    )


def normalised(seen: Seen) -> Tensor:
    """The input as the layer normalises it, before its own scale and shift."""
    module, x = seen.module, seen.x
    if seen.statistics is not None:
        mean, variance = (given.to(x.dtype) for given in seen.statistics)
        return functional.batch_norm(x, mean, variance, eps=module.eps)
    if isinstance(module, nn.GroupNorm):
        return functional.group_norm(x, module.num_groups, eps=module.eps)
    if isinstance(module, nn.LayerNorm):
        return functional.layer_norm(x, list(module.normalized_shape), eps=module.eps)
    if isinstance(module, nn.RMSNorm):
        return functional.rms_norm(x, list(module.normalized_shape), eps=module.eps)
    return functional.instance_norm(x, eps=module.eps)
