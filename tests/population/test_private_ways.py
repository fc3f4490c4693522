"""Which way computes per-example norms: closed forms where they are right, others elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.gradients import layers
from remnant.models import gpt, gru, lstm, mlp1
from remnant.population import population as engine
from remnant.population.private import choice, per_example
from remnant.population.private.choice import private_gradients

from .private_by_hand import train_privately

SEEDS = [3, 4]
OPTIONS = {"optimizer": "dp-sgd", "lr": 0.4, "clip": 0.4}


@pytest.fixture
def made(monkeypatch):
    """The private gradients of every fit."""
    kept = []

    def note(*arguments, **options):
        kept.append(private_gradients(*arguments, **options))
        return kept[-1]

    monkeypatch.setattr(engine, "private_gradients", note)
    return kept


@pytest.fixture
def texts():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 11, (30, 8), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def rows(steps=3, members=2, batch=6):
    drawn = np.random.default_rng(0).integers(0, 30, (steps, members, batch))
    drawn[0, 0, 2] = drawn[1, 1, 5] = -1
    return drawn


def assert_slow_definition(population, make, inputs, labels):
    for member, seed in enumerate(SEEDS):
        expected = train_privately(
            make, seed, inputs, labels, rows()[:, member], noise=0.5, **OPTIONS
        )
        for name, tensor in population.state_dict(member).items():
            torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-9, msg=name)


class Odd(nn.Module):
    """A dense layer, and parameters that no layer knows of."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(64, 9), nn.Linear(9, 5)
        self.scale = nn.Parameter(torch.randn(9))

    def forward(self, images):
        return self.head(torch.tanh(self.first(images.flatten(1)) * self.scale))


class UsedTwice(nn.Module):
    """A layer that runs twice, a weight that is also used past its layer, and one not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle = nn.Linear(64, 9), nn.Linear(9, 9)
        self.head, self.unused = nn.Linear(9, 5), nn.Linear(2, 2)

    def forward(self, images):
        hidden = self.middle(torch.tanh(self.middle(torch.tanh(self.first(images.flatten(1))))))
        return self.head(hidden) + 0.1 * hidden[:, :5] * self.head.weight.sum()


class NoVmap(nn.Module):
    """Asks a tensor for its value, which vmap cannot do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.scale = nn.Linear(64, 5), nn.Parameter(torch.ones(5))

    def forward(self, images):
        hidden = self.first(images.flatten(1)) * self.scale
        return hidden * 2 if float(self.scale.detach().sum()) > 0 else hidden


@pytest.mark.parametrize("backend", [None, "serial"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: mlp1((1, 8, 8), 5, width=0.05, dropout=0.2),
        lambda: lstm(11, units=6, dropout=0.2),
        lambda: lstm(11, units=6, embedding=4),
        lambda: gru(11, units=6),
        lambda: gru(11, units=6, embedding=4),
        lambda: gpt(11, units=8, layers=2, heads=2, context=12, dropout=0.2),
    ],
    ids=["mlp1", "lstm", "lstm with an embedding", "gru", "gru with an embedding", "gpt"],
)
def test_our_models_need_no_per_example_gradient(make, backend, made, toy, texts, monkeypatch):
    inputs, labels = texts if hasattr(make(), "vocabulary_size") else toy
    population = Population(make, SEEDS)
    real = per_example.PerExample.pieces
    monkeypatch.setattr(per_example.PerExample, "pieces", None)
    population.fit(inputs, labels, rows(), noise=0.5, backend=backend, **OPTIONS)
    assert made[0].uncovered == []
    monkeypatch.setattr(per_example.PerExample, "pieces", real)


@pytest.mark.parametrize("backend", [None, "serial"])
@pytest.mark.parametrize(
    ("make", "uncovered"),
    [
        (Odd, ["scale"]),
        (UsedTwice, ["middle.weight", "middle.bias", "head.weight", "head.bias"]),
        (NoVmap, ["scale"]),
    ],
)
def test_other_parameters_take_the_general_way(make, uncovered, backend, made, toy):
    inputs, labels = toy
    population = Population(make, SEEDS, precision="float64")
    population.fit(inputs, labels, rows(), noise=0.5, backend=backend, **OPTIONS)
    assert [n for n in made[0].uncovered if not n.startswith("unused")] == uncovered
    assert_slow_definition(population, make, inputs, labels)


@pytest.mark.parametrize("bytes_at_once", [1, 20_000, 2**28])
@pytest.mark.parametrize("backend", [None, "serial"])
def test_the_general_way_alone_is_the_slow_definition(
    backend, bytes_at_once, made, toy, monkeypatch
):
    def make():
        return mlp1((1, 8, 8), 5, width=0.05)

    inputs, labels = toy
    monkeypatch.setattr(choice, "_covered", lambda *_, **__: set())
    monkeypatch.setitem(per_example._BYTES, "cpu", bytes_at_once)
    population = Population(make, SEEDS, precision="float64")
    population.fit(inputs, labels, rows(), noise=0.5, backend=backend, **OPTIONS)
    assert len(made[0].uncovered) == 8
    assert_slow_definition(population, make, inputs, labels)


@pytest.mark.parametrize("backend", [None, "serial"])
def test_a_wrong_form_is_not_kept(backend, made, toy, monkeypatch):
    """A form that is off by a percent for some examples costs time and nothing else."""
    form = layers.FORMS[nn.Linear]

    def off(seen):
        return {
            own: norm * (1 + 0.01 * (norm > norm.median()))
            for own, norm in form.norms(seen).items()
        }

    monkeypatch.setitem(layers.FORMS, nn.Linear, form._replace(norms=off))

    def make():
        return mlp1((1, 8, 8), 5, width=0.05)

    inputs, labels = toy
    population = Population(make, SEEDS, precision="float64")
    population.fit(inputs, labels, rows(), noise=0.5, backend=backend, **OPTIONS)
    assert len(made[0].uncovered) == 8
    assert_slow_definition(population, make, inputs, labels)


def test_layers_that_start_at_zero_are_tried_with_weights_that_are_not(made, toy, monkeypatch):
    """With zeros behind it a layer has no gradient, and a wrong form would look right."""

    class ZeroHead(Odd):
        def __init__(self) -> None:
            super().__init__()
            nn.init.zeros_(self.head.weight)

    inputs, labels = toy
    form = layers.FORMS[nn.Linear]
    wrong = form._replace(norms=lambda seen: {n: 2 * v for n, v in form.norms(seen).items()})
    monkeypatch.setitem(layers.FORMS, nn.Linear, wrong)
    population = Population(ZeroHead, SEEDS, precision="float64")
    population.fit(inputs, labels, rows(), noise=0.5, **OPTIONS)
    assert len(made[0].uncovered) == 5


def test_a_loss_of_several_values_an_example_is_their_mean(toy):
    inputs, labels = toy

    def make():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 5))

    def both(outputs, targets):
        losses = nn.functional.cross_entropy(outputs, targets, reduction="none")
        return torch.stack([losses, 3 * losses], dim=1)

    def twice(outputs, targets):
        return 2 * nn.functional.cross_entropy(outputs, targets, reduction="none")

    dicts = []
    for loss in (both, twice):
        population = Population(make, SEEDS, precision="float64")
        population.fit(inputs, labels, rows(), noise=0.5, loss=loss, **OPTIONS)
        dicts.append(population.state_dict(1))
    torch.testing.assert_close(dicts[0]["1.weight"], dicts[1]["1.weight"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_lower_precision_is_close_to_the_slow_definition(precision, made, toy):
    inputs, labels = toy

    def make():
        return mlp1((1, 8, 8), 5, width=0.05)

    population = Population(make, SEEDS, precision=precision)
    population.fit(inputs, labels, rows(), noise=0.5, **OPTIONS)
    assert made[0].uncovered == []
    exact = train_privately(make, 3, inputs, labels, rows()[:, 0], noise=0.5, **OPTIONS)
    for name, tensor in population.state_dict(0).items():
        close = 1e-5 if precision == "float32" else 5e-3
        torch.testing.assert_close(tensor.double(), exact[name], rtol=0, atol=close, msg=name)


def test_memory_for_per_example_gradients_is_counted(toy):
    inputs, labels = toy
    fits = {}
    for name, make in (
        ("closed", lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 5))),
        ("odd", Odd),
    ):
        for optimizer in ("sgd", "dp-sgd"):
            population = Population(make, SEEDS)
            extra = {"clip": 1.0, "noise": 0.0} if optimizer == "dp-sgd" else {}
            fit = population.fit(
                inputs, labels, np.zeros((1, 2, 16), int), optimizer=optimizer, **extra
            )
            fits[name, optimizer] = fit.memory
    assert fits["closed", "sgd"] < fits["closed", "dp-sgd"] < 3 * fits["closed", "sgd"]
    assert fits["odd", "dp-sgd"] > fits["odd", "sgd"]
