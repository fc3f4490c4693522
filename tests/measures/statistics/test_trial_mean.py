"""Means over trials: their definition, their ends, and how often their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.statistics.trial_mean import trial_mean, unseen_share

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
    found = trial_mean([3.0], most=20.0)
    assert (found.value, found.low, found.high) == (3.0, None, None)
    assert "one trial" in found.method


def other_kind(share, usual, other, spread=1.0):
    """Trials near ``usual``, of which a share is near ``other``."""
    return lambda rng, n: (
        np.where(rng.uniform(size=n) < share, other, usual) + spread * rng.normal(size=n)
    )


LAWS = {
    "exponential": lambda rng, n: 2.0 + rng.exponential(2.0, n),
    "lognormal": lambda rng, n: rng.lognormal(0.5, 1.0, n),
    "whole numbers": lambda rng, n: rng.poisson(2.0, n).astype(float),
    "one in five remembers": other_kind(0.2, 4.0, 14.0),
    "one in five remembers all": other_kind(0.2, 2.0, 20.0, 0.3),
    "one in five forgets": other_kind(0.2, 14.0, 4.0),
    "one in ten remembers": other_kind(0.1, 4.0, 14.0),
    "one in ten forgets": other_kind(0.1, 14.0, 1.0),
    "in the middle": lambda rng, n: rng.normal(8, 2, n),
    "chance": lambda rng, n: -np.log2(rng.uniform(size=n)),
    "near the bound": lambda rng, n: rng.normal(19, 2, n),
    "mostly at the bound": lambda rng, n: rng.normal(22, 3, n),
    "all or little": lambda rng, n: np.where(rng.uniform(size=n) < 0.8, 20.0, 8.0),
    "first ranks, and one in ten that forgot": lambda rng, n: np.where(
        rng.uniform(size=n) < 0.9, 20.0 - np.log2(rng.integers(1, 4, n)), rng.uniform(2, 14, n)
    ),
}


@pytest.mark.parametrize("trials", [3, 5, 8])
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_holds(law, trials):
    rng = np.random.default_rng(trials)
    truth = np.clip(LAWS[law](rng, 400_000), 0, 20).mean()
    runs = 400
    found = [trial_mean(np.clip(LAWS[law](rng, trials), 0, 20), most=20.0) for _ in range(runs)]
    held = np.sum([one.low <= truth <= one.high for one in found])
    assert stats.binom.cdf(held, runs, 0.95) > 1e-3, held / runs


@pytest.mark.parametrize(("trials", "unseen"), [(3, "63%"), (8, "31%")])
@pytest.mark.parametrize("most", [None, 20.0])
def test_the_method_says_what_few_trials_do_not_exclude(trials, unseen, most):
    found = trial_mean(np.linspace(4.0, 5.0, trials), most=most)
    assert f"do not exclude that up to {unseen} of trials behave otherwise" in found.method
    assert ("room for 20%" in found.method) == (most is not None)
    assert 1 - unseen_share(trials) == pytest.approx(0.05 ** (1 / trials))


def test_many_trials_leave_less_room():
    few, many = (trial_mean(np.linspace(4.0, 5.0, n), most=20.0) for n in (8, 100))
    assert few.high > 7.0
    assert many.high < 5.4
    assert few.low < 4.0 < many.low


@pytest.mark.parametrize("trials", [4, 5, 10])
def test_the_interval_holds_where_some_are_known_as_at_least_only(trials):
    rng, runs = np.random.default_rng(trials), 400
    drawn = [np.clip(rng.normal(13, 4, trials), 0, 20) for _ in range(runs)]
    truth = np.clip(rng.normal(13, 4, 400_000), 0, 20).mean()
    cut = [(np.minimum(row, 12.0), np.where(row > 12.0, 20.0, row)) for row in drawn]
    found = [trial_mean(low, most=20.0, highest=high) for low, high in cut]
    held = np.mean([one.low <= truth <= one.high for one in found])
    taken_for_values = np.mean(
        [(one := trial_mean(low, most=20.0)).low <= truth <= one.high for low, _ in cut]
    )
    assert held > 0.95
    assert taken_for_values < held


def test_bounds_that_are_none():
    for highest in ([2.0], [0.5, 2.0]):
        with pytest.raises(InvalidInput, match="highest must have a number"):
            trial_mean([1.0, 2.0], highest=highest)


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
