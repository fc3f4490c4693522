"""Weighted sums and norms of per-example gradients equal those of autograd, example by example."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from remnant.gradients.closed_forms import Seen
from remnant.gradients.layers import FORMS
from remnant.gradients.recurrent import Recurrence, recurrent_norms, recurrent_sums
from remnant.models.recurrent import RecurrentLayer

MEMBERS, EXAMPLES = 3, 4


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(MEMBERS, EXAMPLES, *shape, generator=generator, dtype=torch.float64)


LAYERS = {
    "dense": (lambda: nn.Linear(5, 3), drawn(5)),
    "dense over time": (lambda: nn.Linear(5, 3), drawn(7, 5)),
    "dense over two axes": (lambda: nn.Linear(5, 3, bias=False), drawn(2, 3, 5)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=2, groups=2), drawn(4, 9)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), drawn(3, 7, 7)),
    "conv2d circular": (
        lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular", bias=False),
        drawn(3, 6, 6),
    ),
    "conv2d dilated": (lambda: nn.Conv2d(3, 4, 2, dilation=2, padding="same"), drawn(3, 6, 6)),
    "group norm": (lambda: nn.GroupNorm(2, 4), drawn(4, 3, 3)),
    "group norm of vectors": (lambda: nn.GroupNorm(2, 4), drawn(4)),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), drawn(4, 3, 3)),
    "layer norm": (lambda: nn.LayerNorm(6), drawn(5, 6)),
    "layer norm of two axes": (lambda: nn.LayerNorm((3, 6)), drawn(3, 6)),
    "rms norm": (lambda: nn.RMSNorm(6), drawn(5, 6)),
}
TOKENS = torch.randint(0, 5, (MEMBERS, EXAMPLES, 6), generator=torch.Generator().manual_seed(1))
LAYERS["embedding"] = (lambda: nn.Embedding(5, 3), TOKENS)
LAYERS["embedding with padding"] = (lambda: nn.Embedding(5, 3, padding_idx=2), TOKENS)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_sums_and_norms_are_those_of_autograd(name):
    make, x = LAYERS[name]
    layer = make().double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(3))
    shape = layer(x.flatten(0, 1)).shape
    generator = torch.Generator().manual_seed(2)
    g = torch.randn(shape, generator=generator, dtype=torch.float64)
    g = g.view(MEMBERS, EXAMPLES, *shape[1:])
    weights = torch.rand(MEMBERS, EXAMPLES, generator=generator, dtype=torch.float64)
    params = {own: p.detach() for own, p in layer.named_parameters()}
    each = one_by_one(layer, params, x, g)

    form = FORMS[type(layer)]
    weighted = g * weights.view(MEMBERS, EXAMPLES, *(1 for _ in shape[1:]))
    sums = form.sums(Seen(layer, x, weighted, params.keys()))
    norms = form.norms(Seen(layer, x.flatten(0, 1), g.flatten(0, 1), params.keys()))
    assert sums.keys() == norms.keys() == params.keys()
    for own, grads in each.items():
        expected = torch.einsum("mb,mb...->m...", weights, grads)
        torch.testing.assert_close(sums[own], expected, rtol=0, atol=1e-10)
        squared = grads.flatten(2).square().sum(2)
        torch.testing.assert_close(norms[own].view(squared.shape), squared, rtol=1e-9, atol=1e-12)


def one_by_one(layer, params, x, g):
    """The gradient of each parameter for each member and example."""
    made = {own: [] for own in params}
    for inputs, outer in zip(x.flatten(0, 1), g.flatten(0, 1), strict=True):
        own = {name: p.clone().requires_grad_() for name, p in params.items()}
        output = functional_call(layer, own, (inputs[None],))
        grads = torch.autograd.grad((output[0] * outer).sum(), list(own.values()))
        for name, came in zip(own, grads, strict=True):
            made[name].append(came)
    return {n: torch.stack(rows).unflatten(0, (MEMBERS, EXAMPLES)) for n, rows in made.items()}


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("tokens", [True, False])
def test_a_recurrent_layers_sums_and_norms_are_those_of_autograd(kind, tokens):
    times, units, width = 6, 4, 5
    gates = 4 if kind == "lstm" else 3
    torch.manual_seed(0)
    layer = RecurrentLayer(width, units, gates=gates).double()
    stacked = {
        own: torch.randn(MEMBERS, *p.shape, dtype=torch.float64)
        for own, p in layer.named_parameters()
    }
    given = TOKENS if tokens else drawn(times, width)
    outer = drawn(times, units, seed=5)

    def inputs_of(own, read):
        x = torch.eye(width, dtype=torch.float64)[read] if tokens else read
        bias = own["bias_ih"] + (own["bias_hh"] if kind == "lstm" else 0)
        return (x @ own["weight_ih"].t() + bias)[:, None]

    def loss(own, read, wanted):
        hidden = functional_call(layer, own, (inputs_of(own, read), read[:, None]))
        return (hidden[:, 0] * wanted).sum()

    each = vmap(vmap(grad(loss), in_dims=(None, 0, 0)))(stacked, given, outer)
    rows, hidden, deltas = [], [], []
    for member in range(MEMBERS):
        own = {name: p[member] for name, p in stacked.items()}
        inputs = torch.cat([inputs_of(own, read) for read in given[member]], dim=1)
        inputs.requires_grad_()
        made = functional_call(layer, own, (inputs, given[member].transpose(0, 1)))
        total = (made.transpose(0, 1) * outer[member]).sum()
        deltas.append(torch.autograd.grad(total, inputs)[0].transpose(0, 1))
        rows.append(inputs.detach().transpose(0, 1))
        hidden.append(made.detach().transpose(0, 1))
    seen = Recurrence(
        kind=kind,
        given=given,
        gates=torch.stack(rows),
        hidden=torch.stack(hidden),
        g=torch.stack(deltas),
        weight=stacked["weight_hh"],
        bias=stacked["bias_hh"],
        vocabulary=width,
        wanted=stacked.keys(),
    )
    weights = torch.rand(MEMBERS, EXAMPLES, dtype=torch.float64)
    sums, norms = recurrent_sums(seen, weights), recurrent_norms(seen)
    assert sums.keys() == norms.keys() == stacked.keys()
    for own, grads in each.items():
        expected = torch.einsum("mb,mb...->m...", weights, grads)
        torch.testing.assert_close(sums[own], expected, rtol=0, atol=1e-10)
        squared = grads.flatten(2).square().sum(2)
        torch.testing.assert_close(norms[own].view(squared.shape), squared, rtol=1e-9, atol=1e-12)
