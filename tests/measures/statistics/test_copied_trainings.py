"""One training is not counted as several, and independent trainings are not taken for copies."""

import numpy as np
import pytest

from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.statistics.design import copied_trainings

LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "lognormal": lambda rng, shape: np.exp(2.0 * rng.normal(size=shape)),
    "integer": lambda rng, shape: np.round(rng.normal(size=shape)),
    "yes or no": lambda rng, shape: (rng.random(shape) < 0.3).astype(float),
    "two levels": lambda rng, shape: rng.choice([-1.5, 1.5], shape) + 0.01 * rng.normal(size=shape),
}


def reordered(rng, scores):
    """Each training's canaries in an order of their own, the same at all lags."""
    orders = [rng.permutation(scores.shape[2]) for _ in range(scores.shape[1])]
    return np.stack([scores[:, at, order] for at, order in enumerate(orders)], axis=1)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("trainings", [2, 8])
def test_near_copies_are_one_training(noise, permuted, trainings):
    rng = np.random.default_rng(4)
    sides = []
    for level in (1.0, 0.0):
        side = np.repeat(level + rng.normal(size=(3, 1, 60)), trainings, axis=1)
        side = reordered(rng, side) if permuted else side
        sides.append(side + noise * rng.normal(size=side.shape))
    assert copied_trainings(*sides)
    made = {"lags": [1, 10, 100], "rng": rng, "draws": 20}
    curve = forgetting_curve(seen_scores=sides[0], unseen_scores=sides[1], success="auc", **made)
    assert "one training" in curve.safe_after(0.9).reason
    assert "one training" in (
        exposure_curve(canary_losses=-sides[0], reference_losses=-sides[1], **made)
        .safe_after(4.0)
        .reason
    )


def test_two_copies_among_others_rescaled_and_noisy():
    rng = np.random.default_rng(5)
    seen, unseen = 1.0 + rng.normal(size=(3, 6, 60)), rng.normal(size=(3, 6, 60))
    assert not copied_trainings(seen, unseen)
    for side in (seen, unseen):
        side[:, 5] = 2.0 * (side[:, 0] + 0.03 * rng.normal(size=(3, 60))) + 7.0
    assert copied_trainings(seen, unseen)


@pytest.mark.parametrize("law", LAWS)
def test_independent_trainings_are_no_copies(law):
    """Own canaries; canaries that persist over lags; and canaries that all trainings share."""
    rng = np.random.default_rng(6)
    wrong = 0
    for lags, trials, n in [(1, 2, 20), (2, 8, 20), (6, 3, 40)] * 15:
        own = [LAWS[law](rng, (lags, trials, n)) for _ in range(2)]
        kept = [LAWS[law](rng, (1, trials, n)) + 0.1 * side for side in own]
        shared = [100.0 * LAWS[law](rng, (1, 1, n)) + side for side in own]
        for seen, unseen in (own, kept, shared):
            wrong += copied_trainings(seen + np.linspace(3, 0, lags)[:, None, None], unseen)
    assert wrong == 0


def test_trainings_without_any_spread_do_not_count():
    assert not copied_trainings(np.zeros((2, 4, 20)), np.zeros((2, 4, 30)))
