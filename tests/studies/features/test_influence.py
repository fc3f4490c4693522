"""Self-influence is read at many moments, and summed over those that prove to be the right ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from remnant import Population, self_influence
from remnant.data import Images
from remnant.errors import NotEnoughEvidence
from remnant.studies.features import influence as module
from remnant.studies.features.influence import (
    InfluenceProbe,
    chosen_moments,
    influence_steps,
    summed,
)


@given(last=st.integers(1, 10**6))
def test_moments_thin_out_and_reach_both_ends(last):
    steps = influence_steps(last=last)
    assert (steps[0], steps[-1]) == (0, last)
    gaps = np.diff(steps)
    assert (gaps >= 1).all()
    assert all(gap <= max(2, 0.3 * step) for gap, step in zip(gaps[1:], steps[1:-1], strict=True))
    assert len(steps) < 70


def by_hand(losses, count, drop):
    """Moments at new lows; for each level the nearest one, the first of equals."""
    lows, least = [], losses[0]
    for place, loss in enumerate(losses):
        if place and loss < least - 1e-12:
            lows.append(place)
            least = loss
    found = []
    for j in range(1, count + 1):
        level = losses[0] - drop * j / count * (losses[0] - least)
        apart = [abs(losses[place] - level) for place in lows]
        place = lows[apart.index(min(apart))]
        if place not in found:
            found.append(place)
    return found


@settings(max_examples=80)
@given(
    losses=st.lists(st.integers(0, 50), min_size=3, max_size=30),
    count=st.integers(1, 12),
    drop=st.sampled_from([0.5, 0.95, 1.0]),
)
def test_checkpoints_are_even_down_the_loss(losses, count, drop):
    given_losses = np.array(losses, dtype=np.float64)
    if given_losses[1:].min() >= given_losses[0]:
        with pytest.raises(NotEnoughEvidence, match="has not fallen"):
            chosen_moments(given_losses, count=count, drop=drop)
        return
    found = chosen_moments(given_losses, count=count, drop=drop)
    assert found == sorted(by_hand(losses, count, drop))
    assert (np.diff(given_losses[[0, *found]]) < 0).all()


def test_influence_is_summed_over_the_checkpoints_with_their_rates():
    losses = np.array([4.0, 3.0, 3.5, 2.0, 1.0, 0.0])
    norms = np.arange(12.0).reshape(6, 2)
    rates = np.array([9.0, 1.0, 9.0, 0.5, 0.25, 9.0])
    found = summed(losses, norms, rates, count=3, drop=0.75)
    np.testing.assert_allclose(found, norms[1] + 0.5 * norms[3] + 0.25 * norms[4])


def data(n, rng):
    return Images(rng.normal(size=(n, 1, 2, 2)).astype(np.float32), rng.integers(0, 3, n))


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))


def test_the_probe_reads_what_self_influence_and_the_loss_are(monkeypatch):
    rng = np.random.default_rng(0)
    sample, one, other = data(20, rng), data(1, rng), data(4, rng)
    probe = InfluenceProbe(make, sample=sample, examples=[one, other])
    models = Population(make, seeds=[1, 2, 3])
    read = [probe(models)]
    rows = rng.integers(0, 20, (6, 3, 8))
    for step in range(2):
        models.fit(sample.images, sample.labels, rows[3 * step : 3 * step + 3], lr=0.5)
        read.append(probe(models))
    losses, norms = read[-1][:2], (read[-1][2:3], read[-1][3:])
    for member, examples in enumerate((one, other)):
        module_of = make()
        module_of.load_state_dict(models.state_dict(member))
        loss = nn.functional.cross_entropy(
            module_of(torch.from_numpy(sample.images)), torch.from_numpy(sample.labels)
        )
        assert losses[member] == pytest.approx(loss.item(), rel=1e-5)
        expected = self_influence(
            module_of,
            torch.from_numpy(examples.images),
            examples.labels,
            checkpoints=[(module_of.state_dict(), 1.0)],
        )
        np.testing.assert_allclose(norms[member], expected, rtol=1e-5)
    rates = np.array([1.0, 0.5, 0.25])
    table = np.stack(read)
    found = probe.influence(table, rates, count=2, drop=0.95)
    for member, columns in enumerate((slice(2, 3), slice(3, 7))):
        expected = summed(table[:, member], table[:, columns], rates, count=2, drop=0.95)
        np.testing.assert_array_equal(found[member], expected)

    def never(*_, **__):
        raise AssertionError("read again")

    monkeypatch.setattr(module, "self_influence", never)
    np.testing.assert_array_equal(probe(models), read[-1])  # nothing has changed
