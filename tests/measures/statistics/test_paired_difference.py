"""Differences of means trial by trial: their definition, and how often they mislead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.statistics.paired_difference import paired_difference
from remnant.measures.statistics.trial_mean import trial_mean

MOST = 20.0


def test_one_trial_has_no_interval():
    gap = paired_difference([3.0], [1.0])
    assert (gap.value, gap.low, gap.high, gap.p_value) == (2.0, None, None, None)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20)), min_size=3, max_size=12))
def test_a_difference_is_the_paired_t_test(pairs):
    one, other = np.array(pairs).T
    found, turned = paired_difference(one, other), paired_difference(other, one)
    assert found.value == pytest.approx(-turned.value)
    assert found.p_value == turned.p_value
    if found.low is not None:
        expected = stats.ttest_rel(one, other)
        low, high = expected.confidence_interval(0.95)
        np.testing.assert_allclose([found.low, found.high], [low, high], atol=1e-6)


def test_differences_that_are_all_the_same_are_told_by_a_sign_test():
    same = paired_difference([5.0] * 6, [5.0] * 6)
    moved = paired_difference([5.0] * 6, [4.0] * 6)
    assert (same.value, same.low, same.p_value) == (0.0, None, 1.0)
    assert (moved.value, moved.low, moved.p_value) == (1.0, None, 2.0**-5)


@given(
    st.lists(st.tuples(*[st.floats(0, 20)] * 4), min_size=3, max_size=8),
    st.sampled_from([None, MOST]),
)
def test_exchanging_the_sides_turns_the_sign(rows, most):
    one, more, other, above = np.array(rows).T
    bounds = {"highest": np.maximum(one, more), "base_highest": np.maximum(other, above)}
    found = paired_difference(one, other, most=most, **bounds)
    turned = paired_difference(
        other, one, most=most, highest=bounds["base_highest"], base_highest=bounds["highest"]
    )
    assert (found.p_value is None) == (len(rows) < 6)
    if found.p_value is not None:
        assert found.p_value == pytest.approx(turned.p_value, abs=1e-6)
    if found.low is not None and turned.high is not None:
        assert found.low == pytest.approx(-turned.high, abs=1e-6)
    if found.low is not None and found.high is not None:
        assert found.low <= found.high


def test_the_interval_at_the_bound_is_newcombes_where_that_is_wider():
    one, other = np.array([20.0, 19.0, 20.0, 18.4, 20.0]), np.array([9.0, 14.0, 11.0, 6.0, 17.0])
    a, b = trial_mean(one, most=MOST), trial_mean(other, most=MOST)
    reach = np.hypot(a.value - a.low, b.high - b.value)
    plain, found = paired_difference(one, other), paired_difference(one, other, most=MOST)
    assert found.low == pytest.approx(min(plain.low, a.value - b.value - reach))


def near(rng, n):
    """First ranks in nine seeds of ten, and little in the tenth."""
    top = MOST - np.log2(rng.integers(1, 4, n))
    return np.where(rng.uniform(size=n) < 0.9, top, rng.uniform(2, 14, n))


LAWS = {
    "normal": lambda rng, size: rng.normal(8.0, 2.0, size),
    "exponential": lambda rng, size: 2.0 + rng.exponential(2.0, size),
    "lognormal": lambda rng, size: rng.lognormal(0.5, 1.0, size),
    "whole numbers": lambda rng, size: rng.poisson(2.0, size).astype(float),
    "one in five": lambda rng, size: np.where(rng.random(size) < 0.2, 14.0, rng.normal(4, 1, size)),
    "one in ten": lambda rng, size: np.where(rng.random(size) < 0.1, 14.0, rng.normal(4, 1, size)),
}


def test_under_six_trials_there_is_no_p_value():
    """Trials at the bound but for a rare one, against a calm side of the same mean."""
    rng, means = np.random.default_rng(0), near(np.random.default_rng(1), 400_000).mean()
    for trials in (3, 5):
        calm = rng.normal(means, 0.7, trials).clip(0, MOST)
        assert paired_difference(near(rng, trials), calm, most=MOST).p_value is None


@pytest.mark.parametrize("trials", [6, 8])
@pytest.mark.parametrize("law", LAWS)
def test_two_sides_of_one_law_seldom_differ_significantly(law, trials):
    rng, runs = np.random.default_rng([trials, len(law)]), 500
    pairs = np.clip(LAWS[law](rng, (runs, 2, trials)), 0.0, MOST)
    wrong = sum(paired_difference(*pair, most=MOST).p_value <= 0.05 for pair in pairs)
    assert stats.binom.sf(wrong - 1, runs, 0.05) > 1e-3, wrong / runs


def test_a_real_difference_is_still_found():
    rng, runs = np.random.default_rng(0), 100
    found = [
        paired_difference(
            rng.normal(20, 2, 6).clip(0, MOST), rng.normal(10, 3, 6).clip(0, MOST), most=MOST
        ).p_value
        for _ in range(runs)
    ]
    assert np.mean(np.array(found) <= 0.05) > 0.9


@pytest.mark.parametrize("trials", [6, 10])
def test_bounds_of_one_law_make_no_difference_and_a_floor_above_does(trials):
    rng, runs, wrong = np.random.default_rng(trials), 150, 0
    for _ in range(runs):
        one, other = (rng.normal(17, 3, trials).clip(0, MOST) for _ in range(2))
        least, most = np.minimum(one, 14.0), np.where(one > 14.0, MOST, one)
        wrong += paired_difference(least, other, most=MOST, highest=most).p_value <= 0.05
    assert wrong / runs < 0.05
    low = rng.normal(4, 1, trials)
    found = paired_difference(np.full(trials, 14.0), low, most=MOST, highest=np.full(trials, MOST))
    assert found.p_value == 2.0 ** (1 - trials)
    assert found.low > 5
    assert found.high > 14.0 - low.mean()


def test_pairs_need_as_many_of_either():
    with pytest.raises(InvalidInput, match="values has 2 trials, and base 3"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="a number for each trial"):
        paired_difference([1.0, 2.0], [1.0, 2.0], highest=[3.0])


def test_a_difference_beyond_doubt_at_the_bound_has_a_small_p_value():
    at_the_bound, far = np.full(40, 16.6), np.random.default_rng(0).normal(1.0, 1e-3, 40)
    at_the_bound[0] -= 1e-6
    gap = paired_difference(at_the_bound, far, most=16.6)
    assert 0.0 < gap.p_value <= 1e-6
