"""The sign-flip test: its definition by counting, the sign test, and its size over groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import sign_flip_test
from remnant.measures.statistics.sign_flips import no_difference_p_value

PAIRS = st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 9)), min_size=1, max_size=30)


def by_counting(signs, groups):
    """The slow definition: all ways to exchange groups."""
    sums = [sum(s for s, g in zip(signs, groups, strict=True) if g == one) for one in set(groups)]
    flipped = itertools.product(*((d, -d) for d in sums))
    return np.mean([sum(one) >= sum(sums) for one in flipped])


@given(pairs=PAIRS)
def test_it_agrees_with_its_definition(pairs):
    signs, groups = zip(*pairs, strict=True)
    try:
        found = sign_flip_test(signs=signs, groups=groups)
    except NotEnoughEvidence:
        sums = np.bincount(groups, weights=signs)
        assert np.count_nonzero(sums) < 5
        return
    assert found.p_value == pytest.approx(by_counting(signs, groups), abs=1e-12)
    assert (found.higher, found.lower, found.level) == tuple(map(signs.count, (1, -1, 0)))


@given(higher=st.integers(0, 400), lower=st.integers(0, 400), level=st.integers(0, 9))
def test_with_every_pair_on_its_own_it_is_the_sign_test(higher, lower, level):
    signs = [1] * higher + [-1] * lower + [0] * level
    if higher + lower < 5:
        return
    found = sign_flip_test(signs=signs, groups=np.arange(len(signs)))
    known = stats.binomtest(higher, higher + lower, alternative="greater").pvalue
    assert found.p_value == pytest.approx(known, rel=1e-9)
    assert found.groups == higher + lower


@given(pairs=PAIRS, order=st.randoms())
def test_neither_order_nor_the_names_of_groups_matter(pairs, order):
    if len({g for _, g in pairs}) < 5:
        return
    mixed = [(s, 7 - 3 * g) for s, g in pairs]
    order.shuffle(mixed)
    try:
        one, other = (
            sign_flip_test(signs=[s for s, _ in some], groups=[g for _, g in some])
            for some in (pairs, mixed)
        )
    except NotEnoughEvidence:
        return
    assert one == other


def test_its_size_holds_where_pairs_of_a_group_go_together_and_the_sign_tests_does_not():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 8)
    found, plain = [], []
    for _ in range(2000):
        luck = rng.normal(size=12)[groups] * 3
        signs = np.where(luck + rng.normal(size=96) > 0, 1, -1)
        found.append(sign_flip_test(signs=signs, groups=groups).p_value)
        plain.append(sign_flip_test(signs=signs, groups=np.arange(96)).p_value)
    # One in ten thousand such simulations of a test that holds has more.
    assert np.mean(np.array(found) <= 0.05) <= stats.binom.isf(1e-4, 2000, 0.05) / 2000
    assert np.mean(np.array(plain) <= 0.05) > 0.2
    assert np.mean(np.array(found) <= 0.05) > 0.03


@pytest.mark.parametrize(
    ("signs", "groups", "words"),
    [
        ([1, 2], [0, 1], "signs holds others than 1, 0 and -1"),
        ([1, 0.5], [0, 1], "signs holds others"),
        ([1, 1], [0], "signs has 2 entries and groups 1"),
        ([], [], "signs is empty"),
        ([1, np.nan], [0, 1], "NaN"),
        ("x", [0], "signs is not an array of numbers"),
    ],
)
def test_what_is_no_sign_is_refused(signs, groups, words):
    with pytest.raises(InvalidInput, match=words):
        sign_flip_test(signs=signs, groups=groups)


def test_four_groups_are_too_few():
    with pytest.raises(NotEnoughEvidence, match="higher or lower: 4, too few"):
        sign_flip_test(signs=[1] * 8, groups=[0, 1, 2, 3] * 2)
    with pytest.raises(NotEnoughEvidence, match="lower: 0"):
        sign_flip_test(signs=[1, -1, 0], groups=[0, 0, 1])


@pytest.mark.parametrize("n", [6, 7, 10])
@pytest.mark.parametrize("whole", [False, True])
def test_the_p_value_of_differences_is_the_share_of_all_exchanges(n, whole):
    rng = np.random.default_rng(n)
    for _ in range(5):
        gaps = rng.exponential(size=n) - 0.5
        gaps = np.round(gaps) if whole else gaps
        sums = [abs(np.dot(signs, gaps)) for signs in itertools.product([1, -1], repeat=n)]
        expected = np.mean(np.array(sums) >= abs(gaps.sum()) - 1e-9)
        assert no_difference_p_value(gaps) == pytest.approx(expected)


def test_many_differences_have_nearly_the_same_p_value():
    gaps = np.random.default_rng(1).normal(0.3, 1.0, 60)
    normal = 2.0 * stats.norm.sf(abs(gaps.sum()) / np.sqrt((gaps**2).sum()))
    assert no_difference_p_value(gaps) == pytest.approx(normal, rel=0.1)
    assert no_difference_p_value(np.zeros(60)) == 1.0


def test_five_differences_have_no_p_value():
    assert no_difference_p_value(np.arange(1.0, 6.0)) is None
    assert no_difference_p_value(np.arange(1.0, 7.0)) == 2.0**-5
