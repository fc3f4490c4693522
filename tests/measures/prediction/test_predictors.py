"""What every measure that ranks samples must do, checked on each in the same way."""

import dataclasses

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import (
    counterfactual_memorization,
    lira,
    lira_leave_one_out,
    loss_trace_iqr,
    mahalanobis,
    psmi,
    rmia,
)

N, MODELS, PLANTED = 300, 12, 30


def planted_toy():
    """The first samples are odd: mislabelled, far out, and remembered by whoever saw them."""
    rng = np.random.default_rng(0)
    odd = np.arange(N) < PLANTED
    labels = rng.integers(3, size=N)
    hidden = rng.normal(size=(N, 6)) + 3.0 * np.eye(3, 6)[labels]
    hidden[odd, 4] += 6.0
    labels[odd] = (labels[odd] + 1) % 3
    seen = rng.random((MODELS, N)).argsort(axis=0) < MODELS // 2
    scores = rng.normal(size=(MODELS, N)) + 4.0 * seen * odd
    probability = 1.0 / (1.0 + np.exp(-scores))
    epochs = np.exp(-np.arange(8.0)[:, None] * np.where(odd, 0.2, 3.0)) + 0.01 * rng.random((8, N))
    return {
        "hidden": hidden,
        "labels": labels,
        "scores": scores,
        "seen": seen,
        "probability": probability,
        "epochs": epochs,
        "target": scores[0] + 4.0 * odd * ~seen[0],  # a model that saw all
    }


MEASURES = {
    "psmi": lambda t: (
        psmi(
            hidden=t["hidden"], labels=t["labels"], directions=200, rng=np.random.default_rng(1)
        ).risk
    ),
    "mahalanobis": lambda t: mahalanobis(hidden=t["hidden"]).risk,
    "mahalanobis by class": lambda t: mahalanobis(hidden=t["hidden"], labels=t["labels"]).risk,
    "lira": lambda t: (
        lira(
            target=t["target"], shadow=t["scores"][1:], seen=t["seen"][1:], variance="per_example"
        ).scores
    ),
    "lira offline": lambda t: (
        lira(
            target=t["target"],
            shadow=t["scores"],
            seen=t["seen"],
            mode="offline_one_sided",
            variance="per_example",
        ).scores
    ),
    "leave one out": lambda t: (
        lira_leave_one_out(scores=t["scores"], seen=t["seen"], variance="per_example").success_rate
    ),
    "rmia": lambda t: (
        rmia(
            target=1.0 / (1.0 + np.exp(-t["target"])),
            reference=t["probability"],
            seen=t["seen"],
            other_target=np.linspace(0.1, 0.9, 50),
            other_reference=np.full((MODELS, 50), 0.5),
        ).scores
    ),
    "counterfactual": lambda t: (
        counterfactual_memorization(scores=t["scores"], seen=t["seen"]).values
    ),
    "loss trace": lambda t: loss_trace_iqr(t["epochs"]),
}


@pytest.mark.parametrize("name", MEASURES)
def test_planted_samples_come_first(name):
    risk = MEASURES[name](planted_toy())
    odd = np.arange(N) < PLANTED
    assert risk.shape == (N,)
    assert np.isfinite(risk).all()
    gaps = risk[odd][:, None] - risk[~odd]
    assert np.mean(gaps > 0) + np.mean(gaps == 0) / 2 > 0.8


@pytest.mark.parametrize("name", MEASURES)
def test_the_order_of_samples_is_kept_and_of_no_account(name):
    toy = planted_toy()
    order = np.random.default_rng(2).permutation(N)
    mixed = {key: one[order] if len(one) == N else one[:, order] for key, one in toy.items()}
    np.testing.assert_allclose(
        MEASURES[name](mixed), MEASURES[name](toy)[order], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", MEASURES)
def test_the_same_twice_and_nothing_is_changed(name):
    toy = planted_toy()
    kept = {key: array.copy() for key, array in toy.items()}
    first = MEASURES[name](toy)
    np.testing.assert_array_equal(first, MEASURES[name](toy))
    for key, array in toy.items():
        np.testing.assert_array_equal(array, kept[key])


@pytest.mark.parametrize("name", MEASURES)
def test_nan_is_refused(name):
    toy = planted_toy()
    for array in toy.values():
        if array.dtype == np.float64:
            array[..., 3] = np.nan
    with pytest.raises(InvalidInput, match="NaN"):
        MEASURES[name](toy)


def test_results_are_frozen():
    found = mahalanobis(hidden=planted_toy()["hidden"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.n = 3
