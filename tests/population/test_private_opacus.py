"""One private step without noise equals Opacus's on the same batch."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.models import gpt, lstm, mlp1

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
    from opacus import GradSampleModule
    from opacus.layers import DPLSTM
    from opacus.optimizers import DPOptimizer

# Its hooks fire for modules whose inputs need no gradient, of which torch warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning"),
]
RULES = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
OPTIONS = {
    "sgd": {"lr": 0.5, "momentum": 0.9, "weight_decay": 0.02},
    "rmsprop": {"lr": 0.01, "weight_decay": 0.02, "eps": 1e-3},
    "adam": {"lr": 0.01, "weight_decay": 0.02, "eps": 1e-3},
}


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.GroupNorm(3, 6),
            nn.ReLU(),
            nn.Conv2d(6, 8, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(72, 5),
        )

    def forward(self, images):
        return self.layers(images)


class DpLstm(nn.Module):
    """Opacus's LSTM between the tokens, one-hot, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = DPLSTM(12, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, 11)

    def forward(self, ids):
        return self.head(self.recurrent(nn.functional.one_hot(ids, 12).to(self.head.weight))[0])


class Attention(nn.Module):
    """One block of attention from layers that Opacus knows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(12, 8), nn.Embedding(7, 8)
        self.norm, self.mixed = nn.LayerNorm(8), nn.Linear(8, 24)
        self.head = nn.Linear(8, 11)

    def forward(self, ids):
        places = torch.arange(7, device=ids.device).expand(ids.shape)
        inputs = self.embedding(ids) + self.positions(places)
        queries, keys, values = self.mixed(self.norm(inputs)).chunk(3, -1)
        scores = queries @ keys.transpose(-1, -2) / 8**0.5
        return self.head(inputs + scores.softmax(-1) @ values)


def loss_of(model, inputs, labels):
    outputs = model(inputs)
    outputs = outputs.movedim(-1, 1) if labels.ndim > 1 else outputs
    return nn.functional.cross_entropy(outputs, labels)


def opacus_steps(model, inputs, labels, rows, *, rule, clip):
    """Train by Opacus, without noise; it adds 1e-6 to each norm, which tests must tolerate."""
    model = GradSampleModule(model.double().train(), batch_first=True)
    inner = RULES[rule](model.parameters(), **OPTIONS[rule])
    optimizer = DPOptimizer(
        inner, noise_multiplier=0.0, max_grad_norm=clip, expected_batch_size=rows.shape[1]
    )
    for batch in rows:
        optimizer.zero_grad()
        loss_of(model, inputs[batch], labels[batch]).backward()
        optimizer.step()
    return model._module.state_dict()


def ours(make, inputs, labels, rows, *, rule, clip):
    population = Population(make, [3], precision="float64")
    population.fit(
        inputs,
        labels,
        rows[:, None].numpy(),
        optimizer=f"dp-{rule}",
        clip=clip,
        noise=0.0,
        **OPTIONS[rule],
    )
    return population.state_dict(0)


def started(make):
    torch.manual_seed(3)
    return make()


@pytest.fixture
def images():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(20, 1, 8, 8, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(0, 5, (20,), generator=generator)


@pytest.fixture
def texts():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 11, (20, 8), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


ROWS = torch.from_numpy(np.random.default_rng(0).integers(0, 20, (3, 9)))
MAKE = {"mlp": lambda: mlp1((1, 8, 8), 5, width=0.05), "cnn": Cnn, "attention": Attention}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("clip", [0.05, 0.7, 100.0])
@pytest.mark.parametrize("model", MAKE)
def test_steps_equal_those_of_opacus(model, clip, rule, images, texts):
    inputs, labels = texts if model == "attention" else images
    make = MAKE[model]
    given = opacus_steps(started(make), inputs, labels, ROWS, rule=rule, clip=clip)
    made = ours(make, inputs, labels, ROWS, rule=rule, clip=clip)
    assert given.keys() == made.keys()
    for name, tensor in made.items():
        torch.testing.assert_close(tensor, given[name], rtol=0, atol=1e-6, msg=name)


@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_an_lstms_steps_equal_those_of_opacus(clip, texts):
    inputs, labels = texts

    def make():
        return lstm(11, units=6, layers=2)

    model = DpLstm().double()
    theirs = {f"head.{name}": tensor for name, tensor in model.head.named_parameters()}
    theirs |= dict(model.recurrent.named_parameters())
    for name, tensor in started(make).double().state_dict().items():
        theirs[_in_opacus(name)].data.copy_(tensor)
    opacus_steps(model, inputs, labels, ROWS, rule="sgd", clip=clip)
    made = ours(make, inputs, labels, ROWS, rule="sgd", clip=clip)
    assert len(made) == len(theirs)
    for name, tensor in made.items():
        other = theirs[_in_opacus(name)].detach()
        torch.testing.assert_close(tensor, other, rtol=0, atol=1e-6, msg=name)


def _in_opacus(name):
    """``layers.1.weight_ih`` is ``weight_ih_l1`` there."""
    return re.sub(r"layers\.(\d)\.(.*)", r"\2_l\1", name)


@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_a_gpts_steps_equal_those_of_opacus(clip, texts):
    """Its positions are a parameter that no layer looks up; Opacus takes them by torch.func."""
    inputs, labels = texts

    def make():
        return gpt(11, units=8, layers=2, heads=2, context=7)

    model = started(make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = functorch_steps(model, inputs, labels, ROWS, clip=clip)
    made = ours(make, inputs, labels, ROWS, rule="sgd", clip=clip)
    for name, tensor in made.items():
        torch.testing.assert_close(tensor, given[name], rtol=0, atol=1e-6, msg=name)


def functorch_steps(model, inputs, labels, rows, *, clip):
    """Train by Opacus's optimizer on per-example gradients from ``torch.func``."""
    model = model.double().train()
    inner = torch.optim.SGD(model.parameters(), **OPTIONS["sgd"])
    optimizer = DPOptimizer(
        inner, noise_multiplier=0.0, max_grad_norm=clip, expected_batch_size=rows.shape[1]
    )
    params = dict(model.named_parameters())

    def loss(own, ids, after):
        outputs = torch.func.functional_call(model, own, (ids[None],))
        return nn.functional.cross_entropy(outputs.movedim(-1, 1), after[None])

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    for batch in rows:
        own = {name: param.detach() for name, param in params.items()}
        for name, samples in gradients(own, inputs[batch], labels[batch]).items():
            params[name].grad_sample = samples
        optimizer.step()
        optimizer.zero_grad()
    return {name: param.detach() for name, param in params.items()}
