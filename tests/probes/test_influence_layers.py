"""Closed forms of every known layer, against plain autograd on each example alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from remnant import self_influence
from remnant.gradients import convolution
from remnant.gradients.layers import FORMS

from .influence_by_hand import by_hand, closed_forms_only, drifted

FEW = settings(max_examples=40)


class Headed(nn.Module):
    """A layer between some others, and the mean over whatever comes out."""

    def __init__(self, layer, width, *, before=None, channels_first=False):
        super().__init__()
        self.before = before if before is not None else nn.Identity()
        self.layer = layer
        self.act = nn.Sequential(nn.Tanh(), nn.Dropout(0.5))
        self.head = nn.Linear(width, 3)
        self.channels_first = channels_first

    def forward(self, x):
        made = self.act(self.layer(self.before(x)))
        if self.channels_first:
            made = made.flatten(2).mean(2) if made.ndim > 2 else made
        elif made.ndim > 2:
            weights = torch.linspace(1.0, 2.0, made[0, ..., 0].numel(), dtype=made.dtype)
            made = (made.flatten(1, -2) * weights[:, None]).sum(1)
        return self.head(made)


def check(model, inputs, *, batch=100, train=True):
    labels = torch.arange(len(inputs)) % 3
    model = model.double().train(train)
    states = drifted(model)
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states, batch=batch)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-10)


@FEW
@given(
    n=st.integers(1, 6),
    shape=st.lists(st.integers(1, 5), max_size=2),
    entering=st.integers(1, 7),
    leaving=st.integers(1, 7),
    bias=st.booleans(),
    batch=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_dense_layers_over_any_number_of_tokens(n, shape, entering, leaving, bias, batch, seed):
    torch.manual_seed(seed)
    model = Headed(nn.Linear(entering, leaving, bias=bias), leaving)
    check(model, torch.randn(n, *shape, entering).double(), batch=batch)


@st.composite
def convolutions(draw):
    axes = draw(st.sampled_from([1, 2]))
    each = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(axes))  # noqa: E731
    groups = draw(st.integers(1, 3))
    entering, leaving = groups * draw(st.integers(1, 4)), groups * draw(st.integers(1, 4))
    kernel, stride, dilation, size = each(1, 3), each(1, 3), each(1, 2), each(1, 7)
    padding = draw(st.sampled_from(["valid", "same", "numbers"]))
    around = each(0, 2)
    if padding == "same":
        stride = (1,) * axes
        around = tuple(d * (k - 1) for d, k in zip(dilation, kernel, strict=True))
    elif padding == "valid":
        around = (0,) * axes
    for k, d, s, p in zip(kernel, dilation, size, around, strict=True):
        laid = p if padding == "same" else 2 * p
        assume(s + laid > d * (k - 1) and p < s)
    layer = (nn.Conv1d if axes == 1 else nn.Conv2d)(
        entering,
        leaving,
        kernel,
        stride=stride,
        dilation=dilation,
        groups=groups,
        padding=around if padding == "numbers" else padding,
        padding_mode=draw(st.sampled_from(["zeros", "reflect", "replicate", "circular"])),
        bias=draw(st.booleans()),
    )
    return layer, (draw(st.integers(1, 4)), entering, *size)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning")
@pytest.mark.parametrize(
    ("cost", "grouped"),
    [(-(10**9), False), (10**9, False), (10**9, True), (convolution._SHIFT, False)],
)
@FEW
@given(drawn=convolutions(), seed=st.integers(0, 99))
def test_convolutions_of_any_kind_by_every_way(cost, grouped, drawn, seed):
    layer, shape = drawn
    torch.manual_seed(seed)
    model = Headed(layer, layer.out_channels, channels_first=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_SHIFT", cost)  # all pairs, by hand, whichever is cheaper
        patch.setattr(convolution, "_blocked", lambda *_: grouped)
        check(model, torch.randn(shape).double())


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("entering", "leaving", "groups", "kernel"),
    [(8, 16, 1, 3), (16, 8, 1, (3, 2)), (16, 32, 2, 3), (8, 8, 1, 1), (8, 12, 1, 3)],
)
def test_wide_convolutions_are_the_same_in_both_precisions(entering, leaving, groups, kernel, kind):
    """In single precision those with channels by the eight go by torch's own gradient."""
    torch.manual_seed(0)
    layer = nn.Conv2d(entering, leaving, kernel, padding=1, groups=groups)
    model = Headed(layer, leaving, channels_first=True).to(kind)
    inputs, labels = torch.randn(9, entering, 12, 12, dtype=kind), torch.arange(9) % 3
    states = drifted(model)
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states)
    double = [({k: t.double() for k, t in state.items()}, rate) for state, rate in states]
    expected = by_hand(model.double(), inputs.double(), labels, double)
    np.testing.assert_allclose(found, expected, rtol=1e-10 if kind == torch.float64 else 1e-4)


@FEW
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    vocabulary=st.integers(2, 5),
    padding=st.booleans(),
    sparse=st.booleans(),
    seed=st.integers(0, 99),
)
def test_equal_tokens_of_an_embedding_add_up(shape, vocabulary, padding, sparse, seed):
    torch.manual_seed(seed)
    layer = nn.Embedding(vocabulary, 4, padding_idx=1 if padding else None, sparse=sparse)
    check(Headed(layer, 4), torch.randint(vocabulary, shape))


NORMS = {
    "batch 1d": (lambda: nn.BatchNorm1d(4), (5, 4)),
    "batch 1d, sequences": (lambda: nn.BatchNorm1d(4, momentum=None), (5, 4, 6)),
    "batch 2d": (lambda: nn.BatchNorm2d(4, eps=0.1), (5, 4, 3, 2)),
    "batch 3d": (lambda: nn.BatchNorm3d(4), (5, 4, 3, 2, 2)),
    "instance 1d": (lambda: nn.InstanceNorm1d(4, affine=True), (5, 4, 6)),
    "instance 2d, running": (
        lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        (5, 4, 3, 2),
    ),
    "instance 3d": (lambda: nn.InstanceNorm3d(4, affine=True), (5, 4, 3, 2, 2)),
    "group": (lambda: nn.GroupNorm(2, 4, eps=0.1), (5, 4, 3, 2)),
    "group, no places": (lambda: nn.GroupNorm(2, 4), (5, 4)),
    "layer": (lambda: nn.LayerNorm(4, eps=0.1), (5, 4)),
    "layer, tokens": (lambda: nn.LayerNorm(4), (5, 3, 4)),
    "layer, two axes": (lambda: nn.LayerNorm((3, 4)), (5, 2, 3, 4)),
    "layer, no shift": (lambda: nn.LayerNorm(4, bias=False), (5, 3, 4)),
    "rms": (lambda: nn.RMSNorm(4), (5, 3, 4)),
}


def test_every_layer_with_a_closed_form_is_tested_here():
    elsewhere = {nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding}
    assert elsewhere | {type(make()) for make, _ in NORMS.values()} == set(FORMS)


@pytest.mark.parametrize("frozen", [None, "weight", "bias"])
@pytest.mark.parametrize("kind", NORMS)
def test_normalisation_layers(kind, frozen):
    torch.manual_seed(0)
    make, shape = NORMS[kind]
    layer = make()
    if frozen is not None and getattr(layer, frozen, None) is not None:
        getattr(layer, frozen).requires_grad_(False)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    first = not isinstance(layer, nn.LayerNorm | nn.RMSNorm)
    inputs = torch.randn(shape).double() + 1.0
    check(Headed(layer, 4, channels_first=first, before=nn.Tanh()), inputs)


@pytest.mark.parametrize("cost", [-(10**9), 10**9])
def test_small_gradients_do_not_vanish_when_squared(cost, monkeypatch):
    # Gradients near 1e-25 have squares below the smallest float32.
    monkeypatch.setattr(convolution, "_SHIFT", cost)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))
    with torch.no_grad():
        model[3].bias.copy_(torch.tensor([58.0, 0.0]))
    inputs, labels = torch.randn(4, 2, 5), torch.zeros(4, dtype=torch.long)
    states = [(model.state_dict(), 1.0)]
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states)
    assert (found > 0).all()
    assert found.max() < 1e-45
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_models_in_few_digits(kind):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)
    ).to(kind)
    inputs, labels = torch.randn(9, 2, 6, 6), torch.arange(9) % 3
    states = [(model.state_dict(), 0.5)]
    found = self_influence(model, inputs, labels, checkpoints=states, batch=4)
    expected = by_hand(model, inputs.to(kind), labels, states)
    np.testing.assert_allclose(found, expected, rtol=1e-4 if kind == torch.float32 else 0.05)
