"""The noise has the right law, tensor by tensor, and belongs to one member, update and entry."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from remnant import Population
from remnant.population.private.noise import add_noise, normal
from remnant.population.randomness import keep_scale, keys, words

SEEDS = torch.arange(40)


def draws(size=5001, *, seeds=SEEDS, taken=0, dtype=torch.float64):
    return normal(seeds, torch.full_like(seeds, taken), size, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_standard_normal(dtype):
    z = draws(50_001, dtype=dtype).double().numpy().ravel()
    n = z.size
    assert abs(z.mean()) < 4 / np.sqrt(n)
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((z**3).mean()) < 4 * np.sqrt(15 / n)
    assert abs((z**4).mean() - 3) < 4 * np.sqrt(96 / n)
    assert stats.kstest(z, "norm").pvalue > 1e-3
    for beyond in (2.0, 3.0, 4.0):
        share = 2 * stats.norm.sf(beyond)
        assert abs((np.abs(z) > beyond).mean() - share) < 4.5 * np.sqrt(share / n)
    assert np.abs(z).max() > 4.5


def test_rows_updates_and_places_are_independent():
    now, next_update = draws().numpy(), draws(taken=1).numpy()
    spread = 4.5 / np.sqrt(now.size)
    assert abs((now * next_update).mean()) < spread
    assert abs((now[1:] * now[:-1]).mean()) < spread
    for apart in (1, 2, 2500, 2501):  # a pair's two numbers are half a row apart
        assert abs((now[:, apart:] * now[:, :-apart]).mean()) < 1.5 * spread
        squares = now**2 - 1
        assert abs((squares[:, apart:] * squares[:, :-apart]).mean()) < 1.5 * 2 * spread
    assert abs(((now**2 - 1) * (next_update**2 - 1)).mean()) < 2 * spread
    correlation = np.corrcoef(now)[~np.eye(len(now), dtype=bool)]
    assert np.abs(correlation).max() < 5.5 / np.sqrt(now.shape[1])


def test_a_row_depends_on_its_seed_and_count_alone():
    everyone = draws(2**17 + 3, seeds=torch.arange(3))
    for seed in range(3):
        alone = draws(2**17 + 3, seeds=torch.tensor([seed]))
        torch.testing.assert_close(everyone[seed], alone[0], rtol=0, atol=0)
    counts = normal(torch.tensor([5, 5]), torch.tensor([7, 8]), 100, dtype=torch.float64)
    torch.testing.assert_close(
        counts[0], draws(100, seeds=torch.tensor([5]), taken=7)[0], rtol=0, atol=0
    )
    assert not torch.equal(counts[0], counts[1])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_short_rows(size):
    z = draws(size, seeds=torch.arange(20_000)).numpy()
    assert z.shape == (20_000, size)
    np.testing.assert_allclose(np.cov(z.T).reshape(size, size), np.eye(size), atol=0.05)


def test_the_definition_by_words():
    """Box and Muller's transform of the words that ``randomness`` gives."""
    seeds, taken, half = torch.tensor([11, 12]), torch.tensor([3, 4]), 50
    place = torch.arange(half, dtype=torch.int32)
    radius, angle = (
        words(keys(seeds, taken, layer)[:, None], place).double().numpy() for layer in (-3, -4)
    )
    radius = np.sqrt(-2 * np.log((radius + 0.5) / 2**32 + 0.5))
    expected = np.concatenate(
        [radius * np.cos(2 * np.pi * angle / 2**32), radius * np.sin(2 * np.pi * angle / 2**32)], 1
    )
    made = normal(seeds, taken, 2 * half, dtype=torch.float64).numpy()
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-12)
    single = normal(seeds, taken, 2 * half, dtype=torch.float32).numpy()
    np.testing.assert_allclose(single, expected, rtol=0, atol=5e-6)


def test_noise_is_not_made_of_the_words_of_dropout():
    key = keys(torch.tensor([3]), torch.tensor([0]), 0)[0]
    mask = keep_scale(key, torch.tensor(0.5), torch.Size([10_000]), torch.float64)
    z = draws(10_000, seeds=torch.tensor([3]))[0]
    assert abs(float(((mask - 1) * z).mean())) < 0.05
    assert abs(float(((mask - 1) * (z**2 - 1)).mean())) < 0.08


def test_every_tensor_of_every_member_gets_its_own_deviation():
    shapes = {"weight": (60, 70), "bias": (60,), "scalar": ()}
    sums = {name: torch.zeros(30, *shape, dtype=torch.float64) for name, shape in shapes.items()}
    deviation = torch.linspace(0, 3, 30, dtype=torch.float64)
    count = torch.zeros(30, dtype=torch.int64)
    add_noise(sums, seeds=torch.arange(30), taken=count, deviation=deviation)
    assert not sums["weight"][0].any()
    for name in ("weight", "bias"):
        scaled = (sums[name][1:].flatten(1) / deviation[1:, None]).numpy()
        assert abs(scaled.var() - 1) < 4.5 * np.sqrt(2 / scaled.size)
        assert abs(scaled.mean()) < 4.5 / np.sqrt(scaled.size)
        assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-3
    assert len({round(float(v), 12) for v in sums["scalar"]}) == 30


def test_a_trained_models_noise_has_the_variance_that_was_asked_for():
    """Empty batches: all that moves a parameter is noise * clip * N(0, 1) / batch."""
    members, steps, noise, clip = 50, 20, 0.7, 3.0
    rows = np.full((steps, members, 4), -1)
    inputs, labels = torch.randn(5, 6), torch.zeros(5, dtype=torch.int64)

    def make():
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    population = Population(make, list(range(members)), precision="float64")
    start = [population.state_dict(member) for member in range(members)]
    population.fit(inputs, labels, rows, optimizer="dp-sgd", lr=1.0, clip=clip, noise=noise)
    for name in start[0]:
        moved = np.stack(
            [
                (population.state_dict(member)[name] - start[member][name]).numpy()
                for member in range(members)
            ]
        )
        scaled = moved / (noise * clip / 4 * np.sqrt(steps))
        assert abs(scaled.var() - 1) < 4.5 * np.sqrt(2 / scaled.size), name
        assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-3, name
