"""Signals of a label equal their definitions, and stay finite where the softmax saturates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

from remnant import Population
from remnant.errors import InvalidInput
from remnant.probes import MARGINS, SIGNALS, label_signals, margin_signals


class Fixed:
    """Answers with the logits it was given, whatever it is asked."""

    def __init__(self, logits):
        self.answer = logits

    def logits(self, inputs):
        return self.answer


def by_hand(logits, labels):
    """The definitions, by a float64 softmax: log p, log p/(1 - p), is it the highest."""
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(axis=-1, keepdims=True)
    wanted = np.broadcast_to(labels, logits.shape[:2])[..., None]
    own = np.take_along_axis(shares, wanted, axis=-1)[..., 0]
    rest = np.where(np.arange(shares.shape[-1]) == wanted, 0, shares).sum(axis=-1)
    return np.stack([-np.log(own), np.log(own / rest), logits.argmax(-1) == labels], axis=1)


@settings(max_examples=80)
@given(data=st.data())
def test_signals_agree_with_their_definitions(data):
    members, n, classes = (data.draw(st.integers(low, 4)) for low in (1, 1, 2))
    values = hnp.arrays(np.float64, (members, n, classes), elements=st.floats(-8, 8), unique=True)
    logits = data.draw(values)
    labels = data.draw(hnp.arrays(np.int64, (n,), elements=st.integers(0, classes - 1)))
    found = label_signals(Fixed(logits), None, labels)
    assert found.dtype == torch.float64
    assert found.shape == (members, len(SIGNALS), n)
    np.testing.assert_allclose(found, by_hand(logits, labels), rtol=1e-9, atol=1e-9)


@settings(max_examples=40)
@given(data=st.data())
def test_margins_are_loss_odds_and_the_gap_to_the_best_other_logit(data):
    members, n, classes = (data.draw(st.integers(low, 4)) for low in (1, 1, 2))
    logits = data.draw(hnp.arrays(np.float64, (members, n, classes), elements=st.floats(-50, 50)))
    labels = data.draw(hnp.arrays(np.int64, (n,), elements=st.integers(0, classes - 1)))
    found = margin_signals(Fixed(logits), None, labels).numpy()
    assert found.shape == (members, len(MARGINS), n)
    np.testing.assert_array_equal(found[:, :2], label_signals(Fixed(logits), None, labels)[:, :2])
    for m in range(members):
        for i, own in enumerate(labels):
            gap = logits[m, i, own] - max(np.delete(logits[m, i], own))
            assert found[m, 2, i] == pytest.approx(gap)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saturated_logits_stay_finite(dtype):
    logits = torch.tensor([[[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [1e4, -1e4, -1e4]]], dtype=dtype)
    losses, odds, correct = label_signals(Fixed(logits), None, [0, 0, 1])[0]
    assert losses.isfinite().all()
    assert odds.isfinite().all()
    expected = torch.tensor([0.0, 2e4 + np.log(2), 2e4], dtype=torch.float64)
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=0)
    expected = torch.tensor([1e4, -2e4 - np.log(2), -2e4], dtype=torch.float64)
    torch.testing.assert_close(odds, expected, rtol=1e-12, atol=0)
    assert correct.tolist() == [1, 0, 0]


def test_log_odds_still_rank_where_losses_are_all_zero():
    logits = torch.tensor([[[float(top), 0.0, 0.0] for top in range(50, 100, 10)]])
    losses, odds, _ = label_signals(Fixed(logits), None, [0] * 5)[0]
    assert (losses == 0).all()
    assert (odds.diff() == 10).all()


def test_a_better_remembered_label_has_less_loss_and_more_odds():
    logits = torch.zeros(1, 7, 4)
    logits[0, :, 2] = torch.linspace(-3, 3, 7)
    losses, odds, correct = label_signals(Fixed(logits), None, [2] * 7)[0]
    assert (losses.diff() < 0).all()
    assert (odds.diff() > 0).all()
    assert correct.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert SIGNALS == ("loss", "log_odds", "correct")


def test_a_constant_shift_of_the_logits_changes_nothing():
    logits = np.random.default_rng(0).normal(size=(2, 6, 5))
    labels = np.arange(6) % 5
    one, other = (label_signals(Fixed(logits + shift), None, labels) for shift in (0.0, 100.0))
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Dropout(0.5))


def test_a_population_is_read_member_by_member_and_not_changed():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(9, 1, 3, 4, generator=generator)
    labels = torch.arange(9) % 5
    population = Population(make, seeds=[0, 1, 2], precision="float64")
    before = [population.state_dict(m) for m in range(3)]
    found = label_signals(population, images, labels)
    assert found.shape == (3, 3, 9)
    for member in range(3):
        model = make().double().eval()
        model.load_state_dict(before[member])
        outputs = model(images.double())
        losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
        torch.testing.assert_close(found[member, 0], losses.detach())
        assert found[member, 2].tolist() == (outputs.argmax(-1) == labels).tolist()
        after = population.state_dict(member)
        assert all(torch.equal(before[member][name], after[name]) for name in after)
    assert (found[0, 0] != found[1, 0]).any()


def test_any_object_with_logits_will_do_and_is_handed_the_inputs():
    asked = []

    class Recorder:
        def logits(self, inputs):
            asked.append(inputs)
            return [[[0.0, 1.0], [3.0, 1.0]]]

    found = label_signals(Recorder(), "the inputs", (1, 1))
    assert asked == ["the inputs"]
    np.testing.assert_allclose(found[0, 1], [1.0, -2.0])


def test_members_may_be_asked_about_labels_of_their_own():
    logits = np.random.default_rng(0).normal(size=(2, 4, 3))
    labels = np.array([[0, 1, 2, 0], [2, 2, 1, 0]])
    both = label_signals(Fixed(logits), None, labels)
    for member in range(2):
        alone = label_signals(Fixed(logits[[member]]), None, labels[member])
        torch.testing.assert_close(both[[member]], alone)


@pytest.mark.parametrize("labels", [[1], [1, 0], [1, 0, 1, 0], 1, [[1, 0, 1]] * 3])
def test_labels_that_do_not_belong_to_the_inputs_are_refused(labels):
    with pytest.raises(InvalidInput, match=r"labels .* logits of shape \(2, 3, 5\)"):
        label_signals(Fixed(torch.zeros(2, 3, 5)), None, labels)
