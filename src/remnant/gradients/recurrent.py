"""Per-example gradients of LSTM and GRU layers, from gradients of their gates before activation.

At time t the gates are a_t = W_ih x_t + W_hh h_(t-1) + biases. With the gradient d_t of a_t, the
gradient of W_ih is Σ_t d_t x_tᵀ, that of W_hh is Σ_t d_t h_(t-1)ᵀ, that of each bias is Σ_t d_t:
the forms of dense layers. Where tokens are read one-hot, W_ih has the form of an embedding. In a
GRU the recurrent part of the third gate is multiplied by the reset gate, and so is its gradient.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remnant.gradients.closed_forms import Norms, Seen, dense, embedding, squares
from remnant.gradients.weighted_sums import Sums, dense_sums, rows_by_token

OWNS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
KINDS = ("lstm", "gru")


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """One pass of a layer over all times, for all members; ``(members, examples, time, ...)``.

    Attributes:
        kind: ``lstm`` or ``gru``.
        given: Vectors that the layer read, or tokens, which it reads one-hot.
        gates: The inputs' part of the gates before activation (a GRU's alone is used).
        hidden: Hidden states after each time.
        g: Gradient of the summed loss with respect to ``gates``.
        weight, bias: The recurrent ones of each member (a GRU's alone are used).
        vocabulary: Columns of ``weight_ih``.
        wanted: Which of ``OWNS`` are asked for.
    """

    kind: str
    given: Tensor
    gates: Tensor
    hidden: Tensor
    g: Tensor
    weight: Tensor
    bias: Tensor
    vocabulary: int
    wanted: Set[str]

    def before(self) -> Tensor:
        """Return the hidden states before each time."""
        return torch.cat([torch.zeros_like(self.hidden[:, :, :1]), self.hidden[:, :, :-1]], dim=2)

    def recurrent(self) -> Tensor:
        """Return the gradients of the recurrent part of the gates."""
        if self.kind == "lstm":
            return self.g
        units = self.hidden.shape[-1]
        before = self.before().flatten(1, 2)
        part = torch.baddbmm(
            self.bias[:, None, :units], before, self.weight[:, :units].transpose(1, 2)
        )
        reset = (self.gates[..., :units] + part.view(self.hidden.shape)).sigmoid()
        return torch.cat([self.g[..., : 2 * units], self.g[..., 2 * units :] * reset], dim=-1)


def recurrent_norms(layer: Recurrence) -> Norms:
    """Return squared norms of the per-example gradients, ``(members * examples,)`` each."""
    g, into = layer.g.flatten(0, 1), layer.recurrent().flatten(0, 1)
    given = layer.given.flatten(0, 1)
    norms: Norms = {}
    if "weight_ih" in layer.wanted:
        if given.is_floating_point():
            norms["weight_ih"] = dense(_seen(given, g))["weight"]
        else:
            norms["weight_ih"] = embedding(_seen(given, g, _OneHot(layer.vocabulary)))["weight"]
    if "weight_hh" in layer.wanted:
        norms["weight_hh"] = dense(_seen(layer.before().flatten(0, 1), into))["weight"]
    if "bias_ih" in layer.wanted:
        norms["bias_ih"] = squares(g.sum(1))
    if "bias_hh" in layer.wanted:
        norms["bias_hh"] = squares(into.sum(1))
    return norms


def recurrent_sums(layer: Recurrence, weights: Tensor) -> Sums:
    """Return sums of the per-example gradients with weights ``(members, examples)``."""
    g = layer.g * weights[..., None, None]
    into = g if layer.kind == "lstm" else layer.recurrent() * weights[..., None, None]
    sums: Sums = {}
    if "weight_ih" in layer.wanted:
        if layer.given.is_floating_point():
            sums["weight_ih"] = dense_sums(_seen(layer.given, g))["weight"]
        else:
            rows = rows_by_token(layer.given, g, layer.vocabulary)
            sums["weight_ih"] = rows.transpose(1, 2)
    if "weight_hh" in layer.wanted:
        sums["weight_hh"] = dense_sums(_seen(layer.before(), into))["weight"]
    if "bias_ih" in layer.wanted:
        sums["bias_ih"] = g.sum((1, 2))
    if "bias_hh" in layer.wanted:
        sums["bias_hh"] = into.sum((1, 2))
    return sums


@dataclass(frozen=True, slots=True)
class _OneHot:
    num_embeddings: int
    padding_idx: int | None = None


def _seen(x: Tensor, g: Tensor, module: Any = None) -> Seen:
    return Seen(module, x if not x.is_floating_point() else x.to(g.dtype), g, {"weight"})
