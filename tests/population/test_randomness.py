from __future__ import annotations

import numpy as np
import torch
from scipy import stats
from torch import nn

from remnant.population.randomness import CounterDropout, install_counters, keep_scale, keys


def uniform_share(seed, counter, layer, rate, size=20_000):
    key = keys(torch.tensor([seed]), torch.tensor([counter]), layer)[0]
    return keep_scale(
        key, torch.tensor(rate, dtype=torch.float64), torch.Size([size]), torch.float64
    )


def test_the_share_dropped_is_the_rate_and_the_mean_is_kept():
    for rate in (0.0, 0.1, 0.5, 0.9, 1.0):
        factors = uniform_share(3, 4, 0, rate)
        dropped = (factors == 0).double().mean().item()
        assert abs(dropped - rate) <= 5 * np.sqrt(rate * (1 - rate) / 20_000)
        if rate < 1:
            assert set(factors.unique().tolist()) <= {0.0, 1 / (1 - rate)}


def test_masks_of_other_seeds_counts_and_layers_are_unrelated():
    masks = torch.stack(
        [
            (uniform_share(seed, count, layer, 0.5) > 0).double()
            for seed in (0, 1, 2**31 - 1)
            for count in (0, 1, 1000)
            for layer in (0, 1)
        ]
    )
    correlation = torch.corrcoef(masks) - torch.eye(len(masks))
    assert correlation.abs().max() < 5 / np.sqrt(20_000)


def test_the_places_of_one_mask_are_unrelated():
    mask = (uniform_share(1, 1, 1, 0.5, size=65_536) > 0).double().reshape(256, 256)
    counts = torch.bincount((mask.reshape(-1, 8) @ (2.0 ** torch.arange(8)).double()).long())
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4
    neighbours = torch.corrcoef(torch.stack([mask[:, :-1].flatten(), mask[:, 1:].flatten()]))
    assert abs(neighbours[0, 1]) < 5 / 256


def test_dropout_layers_are_replaced_wherever_they_stand():
    shared = nn.Dropout(0.3)
    model = nn.Sequential(nn.Sequential(shared, nn.Linear(2, 2)), shared, nn.Dropout2d(0.1))
    layers = install_counters(model)
    assert list(layers) == ["0.0", "2"]
    assert model[0][0] is model[1]
    assert isinstance(model[2], CounterDropout)
    assert model[2].whole_channels
    assert not [key for key in model.state_dict() if "key" in key or "rate" in key]


def test_whole_channels_go_together():
    layer = CounterDropout(0.5, whole_channels=True).train()
    made = layer(torch.ones(16, 32, 4, 4))
    assert ((made == made[:, :, :1, :1]).all()).item()
    assert 0.3 < (made == 0).double().mean() < 0.7
    assert torch.equal(layer.eval()(torch.ones(2, 2)), torch.ones(2, 2))


def test_a_layer_that_is_used_often_has_a_mask_for_each_use():
    layer = CounterDropout(0.5, whole_channels=False)
    layer.key.fill_(2**62 + 1)
    uses = [layer(torch.ones(64)) for _ in range(9)]
    assert len({tuple(one.tolist()) for one in uses}) == 9
