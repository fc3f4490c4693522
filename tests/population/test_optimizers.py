from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.errors import InvalidInput
from remnant.population import LearningRate
from remnant.population.optimizers import make_optimizer

CASES = [
    ("sgd", torch.optim.SGD, {"lr": 0.1}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("sgd", torch.optim.SGD, {"lr": 0.1, "dampening": 0.3, "maximize": True}),
    ("adam", torch.optim.Adam, {}),
    ("adam", torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-5, "amsgrad": True}),
    ("adam", torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    ("adam", torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("adamw", torch.optim.AdamW, {"lr": 0.01}),
    ("adamw", torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
    ("rmsprop", torch.optim.RMSprop, {}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 0.001, "alpha": 0.9, "momentum": 0.5}),
    (
        "rmsprop",
        torch.optim.RMSprop,
        {"lr": 0.001, "centered": True, "weight_decay": 0.1, "momentum": 0.5},
    ),
    ("adagrad", torch.optim.Adagrad, {}),
    (
        "adagrad",
        torch.optim.Adagrad,
        {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.3, "weight_decay": 0.01},
    ),
    ("adadelta", torch.optim.Adadelta, {}),
    ("adadelta", torch.optim.Adadelta, {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}),
]


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 5))


def plain(seed, inputs, labels, rows, rule, scheduler=None, clip=None):
    torch.manual_seed(seed)
    model = make().double()
    optimizer = rule(model.parameters())
    rate = scheduler(optimizer) if scheduler else None
    for step in torch.from_numpy(rows):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[step].double()), labels[step]).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if rate is not None:
            rate.step()
    return model.state_dict()


def check(population, seeds, expected):
    for member, _ in enumerate(seeds):
        found = population.state_dict(member)
        for name, tensor in expected[member].items():
            torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "twin", "options"), CASES)
def test_equals_its_namesake(name, twin, options, toy):
    indices = np.random.default_rng(1).integers(0, 60, (50, 2, 8))
    population = Population(make, seeds=[0, 1], precision="float64")
    population.fit(*toy, indices, optimizer=name, **options)
    expected = [
        plain(m, *toy, indices[:, m], lambda params: twin(params, **options)) for m in (0, 1)
    ]
    check(population, [0, 1], expected)


def test_members_have_settings_of_their_own(toy):
    indices = np.random.default_rng(1).integers(0, 60, (30, 3, 8))
    rates, momenta, decays = [0.1, 0.01, 0.3], [0.9, 0.0, 0.5], [0.0, 0.1, 0.01]
    population = Population(make, seeds=[0, 0, 0], precision="float64")
    population.fit(*toy, indices, lr=rates, momentum=momenta, weight_decay=decays, clip=[9, 0.1, 1])
    expected = [
        plain(
            0,
            *toy,
            indices[:, m],
            lambda params, m=m: torch.optim.SGD(
                params, lr=rates[m], momentum=momenta[m], weight_decay=decays[m]
            ),
            clip=[9, 0.1, 1][m],
        )
        for m in range(3)
    ]
    check(population, [0, 0, 0], expected)


@pytest.mark.parametrize(
    ("schedule", "twin"),
    [
        (
            LearningRate(kind="step", milestones=(5, 12), gamma=0.3),
            lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [5, 12], gamma=0.3),
        ),
        (
            LearningRate(kind="cosine", total=20),
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=20),
        ),
        (
            LearningRate(warmup=4),
            lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: min(1, (k + 1) / 4)),
        ),
    ],
)
def test_learning_rates_equal_torchs(schedule, twin, toy):
    indices = np.random.default_rng(1).integers(0, 60, (20, 1, 8))
    population = Population(make, seeds=[0], precision="float64")
    population.fit(*toy, indices, lr=0.1, momentum=0.9, learning_rate=schedule)
    expected = plain(
        0, *toy, indices[:, 0], lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), scheduler=twin
    )
    check(population, [0], [expected])


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("lion", {}, "'lion' is not one of sgd, adam, adamw, rmsprop, adagrad, adadelta"),
        ("sgd", {"lr": 0.1, "beta": 1, "gamma": 2}, "no option 'beta'; sgd has no option 'gamma'"),
        ("sgd", {"lr": [0.1, 0.2, 0.3]}, r"lr has shape \(3,\), not one value per member \(2\)"),
        ("sgd", {"lr": -1.0}, "lr=-1.0 is not finite and at least 0"),
        ("sgd", {"lr": float("nan")}, "is not finite"),
        ("sgd", {"nesterov": True}, "nesterov needs a momentum"),
        ("adam", {"betas": (0.9, 1.0)}, "beta2=1.0 is not finite and at least 0 and below 1"),
        ("adam", {"lr": "fast"}, "lr='fast' is not a number"),
    ],
)
def test_bad_options_are_named(name, options, words):
    with pytest.raises(InvalidInput, match=words):
        make_optimizer(name, members=2, options=options)
