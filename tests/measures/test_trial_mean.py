"""Means over trials: their definition, their ends, and how often their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.trial_mean import paired_difference, trial_mean

ROWS = st.lists(st.floats(0, 20), min_size=2, max_size=12)


@given(ROWS)
def test_without_a_bound_it_is_students(row):
    found = trial_mean(row)
    error = np.std(row, ddof=1) / np.sqrt(len(row))
    low, high = np.mean(row) + np.array([-1, 1]) * stats.t.ppf(0.975, len(row) - 1) * error
    np.testing.assert_allclose([found.value, found.low, found.high], [np.mean(row), low, high])


@given(ROWS, st.floats(20, 40))
def test_with_a_bound_the_interval_keeps_within_it(row, most):
    found = trial_mean(row, most=most)
    assert 0 <= found.low <= found.value <= found.high <= most
    assert found.value == pytest.approx(np.mean(row))


def test_trials_that_all_reach_the_bound_claim_no_certainty():
    found = trial_mean([20.0] * 5, most=20.0)
    assert found.low < 15
    assert found.high == 20.0
    assert trial_mean([20.0] * 50, most=20.0).low > 18


def test_one_trial_has_no_interval():
    found, gap = trial_mean([3.0], most=20.0), paired_difference([3.0], [1.0])
    assert (found.value, found.low, found.high) == (3.0, None, None)
    assert (gap.value, gap.low, gap.high, gap.p_value) == (2.0, None, None, None)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20)), min_size=3, max_size=12))
def test_a_difference_is_the_paired_t_test(pairs):
    one, other = np.array(pairs).T
    found, turned = paired_difference(one, other), paired_difference(other, one)
    assert found.value == pytest.approx(-turned.value)
    assert found.p_value == pytest.approx(turned.p_value)
    if found.low is not None:
        expected = stats.ttest_rel(one, other)
        assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)
        low, high = expected.confidence_interval(0.95)
        np.testing.assert_allclose([found.low, found.high], [low, high], atol=1e-6)


def test_differences_that_are_all_the_same_are_told_by_a_sign_test():
    same = paired_difference([5.0] * 6, [5.0] * 6)
    moved = paired_difference([5.0] * 6, [4.0] * 6)
    assert (same.value, same.low, same.p_value) == (0.0, None, 1.0)
    assert (moved.value, moved.low, moved.p_value) == (1.0, None, 2.0**-5)


LAWS = {
    "in the middle": lambda rng, n: rng.normal(8, 2, n),
    "chance": lambda rng, n: -np.log2(rng.uniform(size=n)),
    "near the bound": lambda rng, n: rng.normal(19, 2, n),
    "mostly at the bound": lambda rng, n: rng.normal(22, 3, n),
    "all or little": lambda rng, n: np.where(rng.uniform(size=n) < 0.8, 20.0, 8.0),
}


@pytest.mark.parametrize("trials", [3, 10])
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_holds(law, trials):
    rng = np.random.default_rng(trials)
    truth = np.clip(LAWS[law](rng, 400_000), 0, 20).mean()
    runs = 600
    found = [trial_mean(np.clip(LAWS[law](rng, trials), 0, 20), most=20.0) for _ in range(runs)]
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert held > 0.90


def test_students_interval_does_not_hold_at_the_bound():
    rng = np.random.default_rng(0)
    law = LAWS["mostly at the bound"]
    truth = np.clip(law(rng, 400_000), 0, 20).mean()
    found = [trial_mean(np.clip(law(rng, 3), 0, 20)) for _ in range(600)]
    assert np.mean([one.low <= truth <= one.high for one in found]) < 0.7


@pytest.mark.parametrize(
    ("values", "most", "message"),
    [
        ([], None, "values"),
        ([1.0, np.nan], None, "NaN"),
        ([[1.0]], None, "1 dimension"),
        ([1.0, 21.0], 20.0, "between 0 and most"),
        ([-1.0, 2.0], 20.0, "between 0 and most"),
    ],
)
def test_what_is_no_row_of_numbers(values, most, message):
    with pytest.raises(InvalidInput, match=message):
        trial_mean(values, most=most)


def test_pairs_need_as_many_of_either():
    with pytest.raises(InvalidInput, match="values has 2 trials, and base 3"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
