"""The rank test over groups: its definition by counting, Mann-Whitney's, and its size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import stratified_rank_test

NUMBERS = st.lists(st.integers(0, 4), min_size=1, max_size=3)
GROUPS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)


def by_counting(groups):
    """The slow definition: all choices of each group's numbers."""
    choices, found = [], 0.0
    for values, others in groups:
        ranks = stats.rankdata([*values, *others])
        choices.append([sum(some) for some in itertools.combinations(ranks, len(values))])
        found += ranks[: len(values)].sum()
    return np.mean([sum(one) >= found - 1e-9 for one in itertools.product(*choices)])


@given(GROUPS)
def test_it_is_the_share_of_all_choices(groups):
    found = stratified_rank_test([v for v, _ in groups], [o for _, o in groups])
    assert found.p_value == pytest.approx(by_counting(groups))
    assert (found.groups, found.n) == (len(groups), sum(len(v) for v, _ in groups))


@pytest.mark.parametrize("shift", [-1.0, 0.0, 2.0])
def test_one_group_is_mann_whitneys(shift):
    rng = np.random.default_rng(0)
    values, others = rng.normal(size=6) + shift, rng.normal(size=9)
    expected = stats.mannwhitneyu(values, others, alternative="greater", method="exact").pvalue
    assert stratified_rank_test([values], [others]).p_value == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(1, 20), (3, 10)])
def test_groups_that_differ_do_not_make_it_reject(sizes):
    """Five models, one of which makes all its secrets likely: canaries are like controls."""
    rng = np.random.default_rng(1)
    levels = np.array([1.0, 1.0, 2.0, 5.0, 15.0])[:, None]
    p_values = [
        stratified_rank_test(*(levels * rng.exponential(size=(5, n)) for n in sizes)).p_value
        for _ in range(1500)
    ]
    for size in (0.01, 0.05, 0.2):
        rejected = int(np.sum(np.array(p_values) <= size))
        assert rejected <= stats.binom.ppf(0.9999, len(p_values), size)
    assert np.mean(np.array(p_values) <= 0.2) > 0.15  # and it is no constant


def test_it_sees_canaries_above_controls():
    rng = np.random.default_rng(2)
    controls = 8.0 * rng.exponential(size=(5, 20))
    assert stratified_rank_test(np.full((5, 1), 20.0), controls).p_value < 0.001


def test_a_group_without_one_of_the_two_says_nothing():
    found = stratified_rank_test([[5.0], [], [9.0]], [[1.0, 2.0], [3.0], []])
    assert (found.groups, found.n, found.n_others) == (1, 1, 2)
    assert found.p_value == pytest.approx(1 / 3)
    with pytest.raises(NotEnoughEvidence, match="nothing to rank"):
        stratified_rank_test([[1.0], []], [[], [2.0]])


@pytest.mark.parametrize(
    ("values", "others", "words"),
    [
        ([[1.0]], [], "values has 1 groups and others 0"),
        ([[float("nan")]], [[1.0]], "values"),
        ([["x"]], [[1.0]], "values"),
        ([[1.0]], [[[1.0]]], "others"),
    ],
)
def test_bad_numbers(values, others, words):
    with pytest.raises(InvalidInput, match=words):
        stratified_rank_test(values, others)
