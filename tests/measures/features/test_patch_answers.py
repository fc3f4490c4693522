"""A classifier that is asked: how often, about how much, and what answers are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from remnant import Patch, m_score, probability_gain, white_box_m_score
from remnant.errors import InvalidInput, NotEnoughEvidence

PATCH = Patch.letter("A", row=0, column=0)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


WEIGHTS = np.random.default_rng(0).normal(size=(49, 3))


def linear(images):
    return softmax(np.asarray(images).reshape(len(images), -1) @ WEIGHTS)


def images(n=30, seed=1):
    return np.random.default_rng(seed).random((n, 1, 7, 7))


def ask(predict, given=None, **more):
    settings = {"rng": np.random.default_rng(2), "nulls": 19, "draws": 20}
    return m_score(predict, images() if given is None else given, PATCH, **{**settings, **more})


@pytest.mark.parametrize("batch", [1, 7, 30, 64, 10_000])
def test_batches_are_full_and_bounded_and_change_nothing(batch):
    sizes = []

    def predict(given):
        sizes.append(len(given))
        return linear(given)

    found, whole = ask(predict, batch=batch), ask(linear)
    assert max(sizes) <= batch
    pieces = math.ceil(30 / min(batch, 30))
    nulls = sum(math.ceil(19 * min(batch, 30 - first) / batch) for first in range(0, 30, batch))
    assert len(sizes) == 3 * pieces + 1 + nulls  # clean, patch, random; once more; the nulls
    np.testing.assert_allclose(found.per_image, whole.per_image, atol=1e-12)
    np.testing.assert_allclose(found.null_values, whole.null_values, atol=1e-12)
    assert found.p_value == whole.p_value


def test_tensors_are_asked_about_as_tensors():
    seen = []

    def predict(given):
        seen.append((type(given), given.dtype))
        return torch.from_numpy(linear(given.numpy())).requires_grad_()

    given = torch.from_numpy(images())
    found = ask(predict, given)
    assert set(seen) == {(torch.Tensor, torch.float64)}
    assert found.value == pytest.approx(ask(linear).value, rel=1e-12)
    half = ask(lambda x: torch.from_numpy(linear(x)).to(torch.bfloat16))
    assert half.value == pytest.approx(ask(linear).value, abs=0.05)


@pytest.mark.parametrize(
    ("predict", "said"),
    [
        (lambda x: np.log(linear(x)), "log-probabilities: return their exp"),
        (lambda x: x.reshape(len(x), -1) @ WEIGHTS, "If these are logits, return their softmax"),
        (lambda x: linear(x) * 0.9, r"rows that sum to 0\.9 to 0\.9, not probabilities"),
        (lambda x: linear(x) - [[0.9, -0.9, 0.0]], "not probabilities"),
        (lambda x: linear(x)[:, :1], r"returned shape \(30, 1\) for 30 images"),
        (lambda x: linear(x)[1:], r"returned shape \(29, 3\) for 30 images"),
        (lambda x: linear(x).ravel(), r"returned shape \(90,\)"),
        (lambda x: np.full((len(x), 3), np.nan), "90 value.* NaN or infinite"),
        (lambda x: "cat", "did not return an array of numbers"),
        (
            lambda x: np.eye(2 + len(x) % 2)[np.zeros(len(x), dtype=int)],
            r"returned shape \(15, 3\) for 15 images, not \(15, 2\)",
        ),
    ],
)
def test_answers_that_are_no_probabilities_are_refused(predict, said):
    with pytest.raises(InvalidInput, match=said):
        ask(predict)


def test_dropout_and_batch_norm_left_on_are_refused():
    torch.manual_seed(0)
    hidden = torch.nn.Linear(49, 32)
    for layer in (torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(32)):
        model = torch.nn.Sequential(
            torch.nn.Flatten(), hidden, layer, torch.nn.Linear(32, 3), torch.nn.Softmax(dim=1)
        )
        with pytest.raises(InvalidInput, match=r"changed its answer .* \(model.eval\(\)\)"):
            ask(model, torch.rand(30, 1, 7, 7))
        model.eval()
        assert ask(model, torch.rand(30, 1, 7, 7)).n_images == 30


def test_faults_are_listed_at_once():
    with pytest.raises(InvalidInput, match=r"predict=3 .*; rng=0 .*; nulls=0 .*; batch=1.5 .*; im"):
        m_score(3, [[1.0]], PATCH, rng=0, nulls=0, batch=1.5)
    with pytest.raises(InvalidInput, match=r"control='grey' .*; floor=0 is not above 0"):
        ask(linear, control="grey", floor=0)
    with pytest.raises(InvalidInput, match="outside"):
        ask(linear, images() + 0.5)
    with pytest.raises(InvalidInput, match="reaches outside images of 4x4"):
        ask(linear, np.zeros((30, 1, 4, 4)))
    for label in (3, -1):
        for score in (white_box_m_score, probability_gain):
            with pytest.raises(InvalidInput, match=f"label={label} is none of the 3 classes"):
                score(linear, images(), PATCH, label=label, rng=np.random.default_rng())
    with pytest.raises(InvalidInput, match=r"label=1.0 is not a whole number"):
        white_box_m_score(linear, images(), PATCH, label=1.0, rng=np.random.default_rng())


def test_too_little_is_said():
    with pytest.raises(NotEnoughEvidence, match=r"images=19 are too few .*at least 20"):
        ask(linear, images(19))
    with pytest.raises(NotEnoughEvidence, match=r"nulls=18 cannot show .*at least 19"):
        ask(linear, nulls=18)
    few = PATCH.shuffles(np.random.default_rng(0), 18)
    with pytest.raises(NotEnoughEvidence, match="nulls=18"):
        ask(linear, null_patches=few)
    square = Patch.array(np.ones((3, 3)))
    with pytest.raises(NotEnoughEvidence, match=r"1 different order\(s\), too few for 19"):
        m_score(linear, images(), square, rng=np.random.default_rng(0), nulls=19)


@pytest.mark.cuda
def test_tensors_on_a_gpu_stay_there_and_score_alike():
    weights = torch.from_numpy(WEIGHTS).cuda()

    def predict(given):
        assert given.is_cuda
        return (given.flatten(1) @ weights).softmax(dim=1)

    stamped = PATCH.stamp(torch.from_numpy(images()).cuda())
    assert stamped.is_cuda
    np.testing.assert_array_equal(stamped.cpu().numpy(), PATCH.stamp(images()))
    found, here = ask(predict, torch.from_numpy(images()).cuda()), ask(linear)
    np.testing.assert_allclose(found.per_image, here.per_image, atol=1e-9)
    assert found.p_value == here.p_value
