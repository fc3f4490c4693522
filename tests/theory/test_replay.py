"""Replay: the order's knower never forgets, the other does; steps equal a plain torch loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from remnant.errors import InvalidInput
from remnant.theory import deterministic_replay
from remnant.theory.replay import _over_examples, _Race


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    return {"inputs": images[:600] / 16, "labels": labels[:600]}


@pytest.mark.parametrize("hidden", [(), (16,)], ids=["logistic", "network"])
def test_who_knows_the_order_never_forgets(digits, hidden):
    found = deterministic_replay(
        **digits,
        rng=np.random.default_rng(0),
        trials=24,
        lags=(0, 1, 12),
        hidden=hidden,
        replays=4,
        clean_steps=10,
    )
    assert found.known_order.tolist() == [1.0] * 3
    assert found.unknown_order[0] == 1.0
    assert found.unknown_order[-1] < 0.7
    assert np.all(found.unknown_low <= found.unknown_order)
    assert np.all(found.unknown_order <= found.unknown_high)


def test_twins_that_saw_the_same_cannot_be_told_apart(digits):
    """The stand-in is the example itself: the weights say nothing."""
    inputs, labels = digits["inputs"].copy(), digits["labels"].copy()
    inputs[-5:], labels[-5:] = inputs[-10:-5], labels[-10:-5]
    found = deterministic_replay(
        inputs=inputs, labels=labels, rng=np.random.default_rng(0), trials=5, lags=(0, 3), replays=2
    )
    assert found.known_order.tolist() == [0.5, 0.5]


def test_steps_are_those_of_a_plain_loop(digits):
    rows = torch.as_tensor(digits["inputs"])
    classes = torch.as_tensor(digits["labels"], dtype=torch.int64)
    race = _Race(rows, classes, clean=500, batch=10, rate=0.3)
    layers = race.start([64, 7, 10], np.random.default_rng(0))
    many = [layer.repeat(3, 1, 1) for layer in layers]
    net = torch.nn.Sequential(torch.nn.Linear(64, 7), torch.nn.ReLU(), torch.nn.Linear(7, 10))
    net.double()
    with torch.no_grad():
        for module, layer in zip((net[0], net[2]), layers, strict=True):
            module.weight.copy_(layer[0, :-1].T)
            module.bias.copy_(layer[0, -1])
    order = race.batches(np.random.default_rng(1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for _ in range(20):
        index = next(order)
        many = race.step(many, index)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(rows[index]), classes[index]).backward()
        optimizer.step()
    for module, layer in zip((net[0], net[2]), many, strict=True):
        torch.testing.assert_close(layer[2, :-1].T, module.weight.detach(), rtol=0, atol=1e-12)
        torch.testing.assert_close(layer[0, -1], module.bias.detach(), rtol=0, atol=1e-12)


def test_an_epoch_uses_every_row_once():
    race = _Race(torch.zeros(30, 2), torch.zeros(30), clean=24, batch=8, rate=0.1)
    order = race.batches(np.random.default_rng(0))
    for _ in range(3):
        assert sorted(torch.cat([next(order) for _ in range(3)]).tolist()) == list(range(24))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.98])
def test_the_interval_covers_at_least_at_its_rate(share):
    """Guesses on one example agree more often than chance has it."""
    rng = np.random.default_rng(0)
    both = rng.uniform(size=(2000, 25)) < 0.5
    first = rng.uniform(size=(2000, 25)) < share
    second = np.where(both, first, rng.uniform(size=(2000, 25)) < share)
    _, low, high = _over_examples((first + second.astype(float)) / 2, 0.95)
    assert np.mean((low <= share) & (share <= high)) > 0.94


def test_bad_input_is_named(digits):
    with pytest.raises(
        InvalidInput, match=r"trials=1 is less than 2.*lags=\[2, 1\] are not rising"
    ):
        deterministic_replay(**digits, rng=np.random.default_rng(0), trials=1, lags=(2, 1))
    with pytest.raises(InvalidInput, match="600 rows leave 0 to train on"):
        deterministic_replay(**digits, rng=np.random.default_rng(0), trials=300)
