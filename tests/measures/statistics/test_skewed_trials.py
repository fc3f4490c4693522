"""The quantile that takes Student's place where trials differ in a skewed way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant.measures.statistics.skewed_trials import unseen_trainings, upper_quantile

LAWS = {
    "moderate": lambda rng, size: rng.exponential(size=size) - 1.0,
    "heavy": lambda rng, size: np.exp(rng.normal(size=size)) - np.exp(0.5),
}


@pytest.mark.parametrize("skew", LAWS)
@pytest.mark.parametrize("trials", [3, 7, 8, 20])
@pytest.mark.parametrize("tail", [0.05, 0.025, 0.01])
def test_the_bound_is_wrong_as_often_as_it_says(skew, trials, tail):
    means = 100_000
    drawn = LAWS[skew](np.random.default_rng(trials), (means, trials))
    reach = upper_quantile(trials, tail, skew) * drawn.std(axis=1, ddof=1) / np.sqrt(trials)
    wrong = np.mean(drawn.mean(axis=1) + reach < 0.0)
    assert abs(wrong - tail) < 0.06 * tail + 4 * np.sqrt(tail / means)


def test_it_is_never_under_students_and_shrinks_towards_it():
    for skew in LAWS:
        ratios = [
            upper_quantile(n, 0.05, skew) / stats.t.isf(0.05, n - 1)
            for n in (2, 3, 8, 64, 256, 10_000, 10**7)
        ]
        assert ratios[0] == 1.0
        assert ratios[1:] == sorted(ratios[1:], reverse=True)
        assert 1.0 <= ratios[-1] < 1.01


def test_what_no_training_showed_may_still_be():
    for trials in (1, 3, 8):
        share = unseen_trainings(trials)
        assert (1.0 - share) ** trials == pytest.approx(0.05)
