"""Draws are uniform, distinct and in random order, from small ranges and from huge ones."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries.sampling import below, draw_distinct


def rng(seed=0):
    return np.random.default_rng(seed)


def uniform(counts):
    return stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("bound", [1, 2, 7, 8, 9, 129, 256, 257])
def test_a_small_draw_is_uniform(bound):
    source = rng(bound)
    counts = np.bincount([below(bound, rng=source) for _ in range(40 * bound)], minlength=bound)
    assert len(counts) == bound
    assert bound == 1 or uniform(counts)


@pytest.mark.parametrize("bound", [2**64 + 1, 3 * 2**70, 10**40, 7**50])
def test_a_huge_draw_is_uniform_and_reaches_every_bit(bound):
    source = rng(1)
    drawn = [below(bound, rng=source) for _ in range(4000)]
    assert all(0 <= number < bound for number in drawn)
    assert uniform(np.bincount([20 * number // bound for number in drawn], minlength=20))
    assert uniform(np.bincount([number % 16 for number in drawn], minlength=16))


def test_there_is_no_modulo_bias():
    # Of 8 bits, a remainder by 192 would draw numbers under 64 twice as often.
    source = rng()
    low = sum(below(192, rng=source) < 64 for _ in range(6000))
    assert stats.binomtest(low, 6000, 1 / 3).pvalue > 1e-4


@pytest.mark.parametrize("barred", [(), (1,), (0, 4)])
def test_every_ordered_choice_is_equally_likely(barred):
    source = rng(3)
    left = [number for number in range(5) if number not in barred]
    found = Counter(
        tuple(draw_distinct(3, space=5, rng=source, exclude=barred)) for _ in range(6000)
    )
    every = list(permutations(left, 3))
    assert set(found) == set(every)
    assert uniform([found[one] for one in every])


@given(
    space=st.one_of(st.integers(1, 40), st.integers(10**20, 10**60)),
    share=st.floats(0, 1),
    barred=st.sets(st.integers(0, 39), max_size=20),
    seed=st.integers(0, 99),
)
def test_draws_are_distinct_allowed_repeatable_and_begin_alike(space, share, barred, seed):
    barred = {number for number in barred if number < space}
    n = int(share * min(space - len(barred), 60))
    drawn = draw_distinct(n, space=space, rng=rng(seed), exclude=barred)
    assert len(drawn) == len(set(drawn)) == n
    assert all(0 <= number < space and number not in barred for number in drawn)
    assert draw_distinct(n, space=space, rng=rng(seed), exclude=barred) == drawn
    assert draw_distinct(n // 2, space=space, rng=rng(seed), exclude=barred) == drawn[: n // 2]


def one_by_one(n, *, space, rng, barred=()):
    """The shuffle of all numbers that are left, the first n of it."""
    left = [number for number in range(space) if number not in barred]
    for first in range(n):
        chosen = first + below(len(left) - first, rng=rng)
        left[first], left[chosen] = left[chosen], left[first]
    return left[:n]


@given(
    space=st.one_of(st.integers(1, 40), st.integers(250, 300), st.integers(65_500, 65_600)),
    barred=st.sets(st.integers(0, 39), max_size=20),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_draws_are_those_made_one_by_one_and_leave_the_generator_there(space, barred, share, seed):
    barred = {number for number in barred if number < space}
    n = int(share * min(space - len(barred), 300))
    source, slow = rng(seed), rng(seed)
    drawn = draw_distinct(n, space=space, rng=source, exclude=barred)
    assert drawn == one_by_one(n, space=space, rng=slow, barred=barred)
    assert source.bit_generator.state == slow.bit_generator.state


@pytest.mark.parametrize("space", [2**24 + 3, 2**32, 2**33 + 5, 10**9, 2**64 + 7, 10**40])
def test_draws_from_large_ranges_are_those_made_one_by_one(space):
    source, slow = rng(4), rng(4)
    drawn = draw_distinct(50, space=space, rng=source)
    # So few of so many: none was moved before it is drawn, and the k-th stands k places on.
    assert drawn == [k + below(space - k, rng=slow) for k in range(50)]
    assert source.bit_generator.state == slow.bit_generator.state


def test_all_of_a_range_can_be_drawn_less_what_is_barred():
    drawn = draw_distinct(90, space=100, rng=rng(), exclude=range(10))
    assert sorted(drawn) == list(range(10, 100))
    assert drawn != sorted(drawn)


def test_a_dense_draw_does_not_favour_small_numbers():
    # A draw that sorts what it found and keeps the first n has its largest number near the middle.
    drawn = np.array(draw_distinct(10_000, space=10**6, rng=rng()))
    assert uniform(np.histogram(drawn, bins=20, range=(0, 10**6))[0])
    assert drawn.max() > 990_000
    half = np.array(draw_distinct(5_000, space=10**4, rng=rng()))
    inside = np.histogram(half, bins=10, range=(0, 10**4))[0]
    assert (np.abs(inside - 500) < 100).all()
    thirds = [np.mean(part) for part in np.array_split(half, 3)]
    np.testing.assert_allclose(thirds, 5_000, atol=300)
