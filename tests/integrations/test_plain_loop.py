"""The hook in a plain torch loop on real digits: live, and from saved checkpoints."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.integrations import OneRunHook
from remnant.plans import StaggeredPlan

PLAN = StaggeredPlan(
    canaries=90,
    never=40,
    starts=[30, 70],
    window=20,
    repeats=[10],
    per_batch=13,
    steps=120,
    batch=32,
)


@pytest.fixture(scope="module")
def loop():
    """An ordinary loop; returns the hook, and the model's states at the steps that were due."""
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16, dtype=torch.float32)
    labels = torch.tensor(labels)
    canaries, wrong = images[:90], (labels[:90] + 1 + torch.arange(90) % 9) % 10
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    def score():
        with torch.no_grad():
            log_probs = model(canaries).log_softmax(1)
        own = log_probs.gather(1, wrong[:, None])[:, 0]
        return own - torch.log1p(-own.exp().clamp(max=1 - 1e-6))

    hook, states = OneRunHook(PLAN, score=score, checkpoints=8), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    rng = np.random.default_rng(0)
    for step in range(PLAN.total_steps):
        rows = torch.from_numpy(rng.integers(200, len(images), size=32))
        inputs, targets = images[rows].clone(), labels[rows].clone()
        planted = torch.from_numpy(hook.planted(step))
        inputs[: len(planted)], targets[: len(planted)] = canaries[planted], wrong[planted]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if hook.after(step):
            states[step] = copy.deepcopy(model.state_dict())
    return hook, states, model, score


def test_planted_canaries_are_found_and_the_never_planted_are_their_controls(loop):
    hook = loop[0]
    found = hook.curve(rng=np.random.default_rng(0), success="auc")
    fresh = [int(np.flatnonzero(found.cohort == number)[0]) for number in (0, 1)]
    assert np.all(found.success[fresh] > 0.65)
    assert np.all(found.effect_low[fresh] > 0)
    assert found.n_unseen == 40
    assert hook.due[0] == 29
    assert sorted(hook.scores) == hook.due


def test_saved_checkpoints_give_the_same_curve(loop):
    hook, states, model, score = loop
    later = OneRunHook(PLAN, checkpoints=8)
    for step, state in states.items():
        model.load_state_dict(state)
        later.record(step, score())
    one = hook.curve(rng=np.random.default_rng(0))
    other = later.curve(rng=np.random.default_rng(0))
    np.testing.assert_allclose(one.effect, other.effect)
    np.testing.assert_array_equal(one.success, other.success)


def test_a_live_run_leaves_windows_out_that_are_not_over(loop):
    hook = loop[0]
    live = OneRunHook(PLAN, checkpoints=8)
    with pytest.raises(NotEnoughEvidence, match="after step 49 or later"):
        live.curve(rng=np.random.default_rng(0))
    for step in hook.due:
        if step < 75:
            live.record(step, hook.scores[step])
    assert set(live.curve(rng=np.random.default_rng(0)).cohort) == {0}


def test_faults_are_named():
    hook = OneRunHook(PLAN)
    assert hook.after(0) is False
    with pytest.raises(InvalidInput, match="nobody to ask"):
        hook.after(29)
    with pytest.raises(InvalidInput, match=r"shape \(3,\); it takes 90 finite numbers"):
        hook.record(29, [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="90 finite numbers"):
        hook.record(29, np.full(90, np.nan))
    with pytest.raises(InvalidInput, match="not numbers"):
        hook.record(29, ["a"] * 90)
