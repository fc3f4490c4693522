"""The hook in a plain torch loop on real digits with wrong labels."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from remnant.errors import InvalidInput
from remnant.integrations import EarlyPrediction
from remnant.measures import cross_entropy, logit_gap, psmi, stopping_point
from remnant.probes import hidden_states

WRONG = np.arange(0, 600, 15)
EVERY = 7


def digits():
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images[:600] / 16, dtype=torch.float32)
    labels = torch.tensor(labels[:600])
    labels[WRONG] = (labels[WRONG] + 1 + torch.tensor(WRONG) % 9) % 10
    return images, labels


def train(hook, images, labels, steps=150):
    """An ordinary loop; returns the model, the losses of every step and what the hook answered."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    rng = np.random.default_rng(0)
    kept, answers = [], []
    for step in range(steps):
        rows = torch.from_numpy(rng.integers(len(images), size=40))
        losses = nn.functional.cross_entropy(model(images[rows]), labels[rows], reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        kept.append(losses.detach().numpy().astype(np.float64))
        answers.append(hook.after(step, losses))
        if answers[-1]:
            break
    return model, kept, answers


@pytest.fixture(scope="module")
def stopped():
    images, labels = digits()
    hook = EarlyPrediction(labels, images, drop=0.9, every=EVERY)
    return hook, images, labels, *train(hook, images, labels)


def test_it_stops_where_the_rule_on_the_same_medians_does(stopped):
    hook, _, _, _, kept, answers = stopped
    medians = [np.median(kept[0])]  # 40 examples are more than the 32 of the start
    for first in range(1, len(kept), EVERY):
        medians.append(np.median(np.concatenate(kept[first : first + EVERY])))
    np.testing.assert_allclose(hook.medians, medians, rtol=1e-6)
    assert hook.steps == tuple(range(0, len(kept), EVERY))
    found = stopping_point(losses=medians, drop=0.9)
    assert found.index == len(medians) - 1
    assert hook.steps[found.index] == hook.stopped == len(answers) - 1
    assert answers == [False] * (len(answers) - 1) + [True]
    assert hook.dropped == pytest.approx(found.dropped[-1])


def test_one_pass_says_who_is_at_risk_and_leaves_the_model_alone(stopped):
    hook, images, labels, model, _, _ = stopped
    model.train()
    model[3].eval()
    before, asked = copy.deepcopy(model.state_dict()), []
    watch = model.register_forward_pre_hook(lambda _, given: asked.append(len(given[0])))
    random = torch.random.get_rng_state()
    passes = hook.forward_passes
    found = hook.predict(model, rng=np.random.default_rng(0))
    watch.remove()
    assert sum(asked) == 600
    assert hook.forward_passes - passes == 1.0
    assert [module.training for module in model] == [True, True, True, False, True]
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert torch.equal(torch.random.get_rng_state(), random)

    logits = copy.deepcopy(model).eval()(images).detach().numpy()
    np.testing.assert_allclose(found.losses, cross_entropy(logits, labels), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.logit_gaps, logit_gap(logits, labels), atol=1e-4)
    hidden = hidden_states(model, images).numpy()
    alone = psmi(hidden=hidden, labels=labels.numpy(), rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.psmi.values, alone.values, atol=1e-4)
    caught = np.isin(WRONG, found.protect(share=0.15)).mean()
    assert caught > 0.85, caught


def test_a_callable_that_reads_the_model_gives_the_same(stopped):
    hook, images, labels, model, _, _ = stopped

    def read(asked):
        logits = copy.deepcopy(asked).eval()(images)
        return hidden_states(asked, images), logits

    other = EarlyPrediction(labels.numpy(), read=read)
    one = hook.predict(model, rng=np.random.default_rng(0))
    two = other.predict(model, rng=np.random.default_rng(0))
    np.testing.assert_allclose(one.psmi.values, two.psmi.values, atol=1e-4)
    np.testing.assert_allclose(one.losses, two.losses, rtol=1e-4, atol=1e-6)
    assert other.forward_passes == 1.0


def test_one_lucky_batch_does_not_stop_it():
    hook = EarlyPrediction([0, 1], torch.zeros(2, 1), every=3, first=8)
    for step in range(31):
        lucky = step % 3 == 1  # one in every window
        assert hook.after(step, np.full(8, 1e-6 if lucky else 1.0)) is False
    assert hook.dropped == 0.0
    for step in range(31, 40):
        assert hook.after(step, np.full(8, 0.05)) is (step == 33)
    assert hook.stopped == 33


def test_the_first_examples_make_the_start_unless_it_is_given():
    hook = EarlyPrediction([0, 1], torch.zeros(2, 1), every=2, first=10)
    for step, level in enumerate([4.0, 3.0, 2.0, 1.0, 0.1]):
        hook.after(step, np.full(4, level))
    assert hook.medians == (3.0, 0.55)
    assert hook.steps == (2, 4)
    given = EarlyPrediction([0, 1], torch.zeros(2, 1), every=2, start=[1.0, 2.0, 9.0])
    assert given.after(0, torch.full((4,), 0.2)) is False
    assert given.after(1, torch.full((4,), 0.1)) is False
    assert (given.medians[0], given.steps, given.dropped) == (2.0, (-1, 1), pytest.approx(0.925))
    assert EarlyPrediction([0], torch.zeros(1, 1)).dropped == 0.0


def test_a_step_may_hand_over_several_batches():
    hook = EarlyPrediction([0, 1], torch.zeros(2, 1), every=1, first=2)
    parts = [(0, 1.0), (0, 1.0), (1, 0.01), (1, 0.01), (2, 0.01)]
    fired = [hook.after(step, np.full(2, level)) for step, level in parts]
    assert fired == [False, False, False, False, True]
    assert hook.medians == pytest.approx((1.0, 0.505, 0.01))


def test_faults_are_named():
    images = torch.zeros(2, 1)
    for options, words in (
        ({}, "it takes inputs or read"),
        ({"inputs": images, "read": lambda model: None}, "and not both"),
        ({"inputs": images, "drop": 1.0}, "drop=1.0 is not between"),
        ({"inputs": images, "every": 0}, "every=0"),
        ({"inputs": images, "first": True}, "first=True"),
        ({"inputs": images, "start": 0.0}, "cannot drop"),
        ({"inputs": images, "start": [np.nan, 1.0]}, "start hold 1 of 2 values that are NaN"),
    ):
        with pytest.raises(InvalidInput, match=words):
            EarlyPrediction([0, 1], **options)
    for labels in (["a", "b"], [0.0, 0.5], [[0, 1]]):
        with pytest.raises(InvalidInput, match=r"labels of shape .* are not one whole number a s"):
            EarlyPrediction(labels, images)
    hook = EarlyPrediction([0, 1], images, every=1, first=2)
    with pytest.raises(InvalidInput, match=r'shape \(\); it takes one an example. .*"none"'):
        hook.after(0, torch.tensor(1.0))
    hook.after(5, [1.0, 1.0])
    with pytest.raises(InvalidInput, match="step 4 comes after step 5"):
        hook.after(4, [1.0])
    with pytest.raises(InvalidInput, match="up to step 6 hold 1 of 2 values that are NaN"):
        hook.after(6, [1.0, np.nan])
    with pytest.raises(InvalidInput, match="rng=0 is not"):
        hook.predict(nn.Linear(1, 2), rng=0)


def test_arrays_give_what_tensors_give():
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(60, 4)), np.arange(60) % 3
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    risks = [
        EarlyPrediction(labels, given).predict(model, rng=np.random.default_rng(1))
        for given in (torch.tensor(images, dtype=torch.float32), images, images.tolist())
    ]
    for other in risks[1:]:
        np.testing.assert_array_equal(other.protect(top=9), risks[0].protect(top=9))


def test_named_arrays_are_converted():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 3)

        def forward(self, first, second):
            return self.head(first + second)

    rng = np.random.default_rng(0)
    parts = {name: rng.normal(size=(60, 4)) for name in ("first", "second")}
    hook = EarlyPrediction(np.arange(60) % 3, parts)
    assert len(hook.predict(Sum(), rng=rng).protect(top=5)) == 5


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        ([0, 1], {"inputs": np.zeros((3, 4))}, r"inputs has the shape \(3, 4\) for 2 labels"),
        ([0, 1], {"inputs": np.array(["a", "b"])}, "inputs is a ndarray, not a tensor or an array"),
        ([0, 1], {"inputs": [[1.0], [1.0, 2.0]]}, "inputs is a list, not a tensor or an array"),
        ([0, 1], {"inputs": {"ids": np.zeros((3, 4))}}, r"inputs\['ids'\] has the shape \(3, 4\)"),
        ([0, 1], {"inputs": {}}, "inputs hold no tensor"),
        ([0, -1], {"inputs": np.zeros((2, 4))}, "labels hold -1, which is below 0"),
        ([0, 1], {"read": 5}, "read is a int, which cannot be called"),
        ([0, 1], {"inputs": np.zeros((2, 4)), "layer": 3}, "layer=3 is not the name of a layer"),
    ],
)
def test_faults_of_inputs_are_found_before_the_training(labels, given, message):
    with pytest.raises(InvalidInput, match=message):
        EarlyPrediction(labels, **given)
