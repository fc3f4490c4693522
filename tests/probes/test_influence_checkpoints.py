"""Checkpoints for self-influence: evenly down the loss, few at a time, and copies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InfluenceCheckpoints, self_influence
from remnant.errors import InvalidInput, NotEnoughEvidence

STEPS = np.arange(1000)
CURVES = {
    "exponential": 2.3 * np.exp(-STEPS / 80),
    "slow at first": 2.3 / (1 + np.exp((STEPS - 600) / 40)),
    "straight": 2.0 - STEPS / 1000,
    "noisy": 0.1 + 2.0 * np.exp(-STEPS / 200) * np.random.default_rng(0).uniform(0.7, 1.3, 1000),
    "up again": 1.5 + np.cos(STEPS / 150),
}


def averaged(losses, smooth):
    """Losses weighted by how long ago they were, written out."""
    shares = (1 - 1 / smooth) ** np.arange(len(losses))
    return np.array(
        [
            (losses[: t + 1][::-1] * shares[: t + 1]).sum() / shares[: t + 1].sum()
            for t in range(len(losses))
        ]
    )


class Counting(nn.Module):
    """One weight that is the number of the step."""

    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.zeros(()))


def walk(hook, losses, rate=0.1):
    model = Counting()
    most = 0
    for step, loss in enumerate(losses):
        with torch.no_grad():
            model.at.fill_(step)
        hook.after(step, loss, model, rate / (1 + step))
        most = max(most, len(hook._kept))
    return most


@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("curve", CURVES)
def test_they_are_spread_evenly_over_the_drop(curve, count):
    losses = CURVES[curve]
    hook = InfluenceCheckpoints(count)
    assert walk(hook, losses) <= 3 * count
    smoothed = averaged(losses, 10)
    drop = smoothed[0] - smoothed.min()
    wanted = smoothed[0] - 0.95 * drop * np.arange(1, count + 1) / count
    assert len(hook.checkpoints) == count
    np.testing.assert_allclose(hook.losses, wanted, atol=2 * drop / (3 * count))
    np.testing.assert_allclose(hook.losses, smoothed[list(hook.steps)])
    assert list(hook.steps) == sorted(set(hook.steps))
    if count == 10:
        gaps = -np.diff([smoothed[0], *hook.losses]) / drop
        assert gaps.max() < 3 * gaps.min(), "no part of the drop is left out"


def test_they_are_the_weights_of_their_steps_with_the_learning_rates_then():
    hook = InfluenceCheckpoints(4, smooth=1)
    walk(hook, CURVES["exponential"])
    for step, (state, rate) in zip(hook.steps, hook.checkpoints, strict=True):
        assert float(state["at"]) == step
        assert rate == pytest.approx(0.1 / (1 + step))
        assert not state["at"].requires_grad


def test_a_loss_that_falls_at_once_gives_fewer():
    hook = InfluenceCheckpoints(10, smooth=1)
    walk(hook, [2.0, 0.1, 0.1, 0.1])
    assert hook.steps == (1,)


def test_they_go_into_self_influence():
    torch.manual_seed(0)
    inputs, labels = torch.randn(40, 4), torch.arange(40) % 2
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    hook = InfluenceCheckpoints(count=3)
    for step in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        hook.after(step, loss, model, lr=0.5)
    found = self_influence(model, inputs, labels, checkpoints=hook.checkpoints)
    assert found.shape == (40,)
    assert (found > 0).all()
    assert len(hook.checkpoints) == 3


def test_what_cannot_be_is_refused():
    model = Counting()
    hook = InfluenceCheckpoints(2)
    with pytest.raises(NotEnoughEvidence, match="not fallen"):
        hook.checkpoints  # noqa: B018
    hook.after(3, torch.tensor(1.0), model, 0.1)
    for step, loss, rate, said in (
        (3, 1.0, 0.1, "step 3 comes after step 3"),
        (4, float("nan"), 0.1, "loss of step 4 is NaN or infinite"),
        (4, torch.ones(2), 0.1, "loss of step 4 is not one number"),
        (4, 1.0, -0.1, "learning rate -0.1 of step 4 is negative"),
        (4, 1.0, float("inf"), "learning rate of step 4 is NaN or infinite"),
    ):
        with pytest.raises(InvalidInput, match=said):
            hook.after(step, loss, model, rate)
    with pytest.raises(InvalidInput, match="step='4' is not a whole number"):
        hook.after("4", 1.0, model, 0.1)
    with pytest.raises(InvalidInput, match="model is a dict, not a torch module"):
        hook.after(4, 1.0, dict(model.state_dict()), 0.1)
    for changes in ({"count": 0}, {"smooth": 0}, {"drop": 0.0}, {"drop": 1.1}, {"keep": 9}):
        with pytest.raises(InvalidInput, match=next(iter(changes))):
            InfluenceCheckpoints(**changes)
