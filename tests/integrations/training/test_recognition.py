"""Canaries are found in tokens, wherever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.integrations.training.recognition import TokenMatcher, common_ending


def naive(cores, rows):
    return [
        (r, s, s + len(core), c)
        for r, row in enumerate(rows)
        for s in range(len(row))
        for c, core in enumerate(cores)
        if tuple(row[s : s + len(core)]) == core
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=5), min_size=1, max_size=6),
    st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=5),
)
def test_find_is_the_plain_search(texts, rows):
    if len({tuple(text) for text in texts}) < len(texts):
        with pytest.raises(InvalidInput, match="same tokens"):
            TokenMatcher(texts)
        return
    try:
        matcher = TokenMatcher(texts)
    except InvalidInput:
        return
    found = [(s.row, s.start, s.end, s.canary) for s in matcher.find(rows)]
    assert sorted(found) == sorted(naive(matcher.cores, rows))


def test_the_first_token_may_differ():
    matcher = TokenMatcher([[1, 5, 6], [1, 5, 7]])
    assert matcher.skipped == 1
    (seen,) = matcher.find([[9, 99, 5, 7, 0]])
    assert (seen.start, seen.end, seen.canary) == (2, 4, 1)


def test_texts_that_differ_in_the_first_token_are_searched_whole():
    matcher = TokenMatcher([[1, 5], [2, 5]])
    assert matcher.skipped == 0
    assert [s.canary for s in matcher.find([[2, 5, 1, 5]])] == [1, 0]


def test_nothing_is_found_across_two_rows():
    assert TokenMatcher([[1, 2, 3, 4]]).find([[1, 2, 3], [4]]) == []


def test_rows_that_end_within_a_text_are_cut_off():
    matcher = TokenMatcher([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 6]])
    assert matcher.cut_off([[7, 1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4], [3, 4]]) == 2


def test_batches_may_be_arrays():
    rows = np.array([[3, 1, 5, 6], [0, 0, 0, 0]])
    assert len(TokenMatcher([[1, 5, 6]]).find(list(rows))) == 1


def test_common_ending():
    assert common_ending([]) == ()
    assert common_ending([(1, 2), (3,)]) == ()
    assert common_ending([(4, 1, 2), (1, 2)]) == (1, 2)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=7), min_size=1, max_size=5),
    st.lists(st.integers(0, 2), max_size=12),
    st.booleans(),
)
def test_cut_off_is_its_definition(texts, row, one_template):
    try:
        matcher = TokenMatcher(texts, one_template=one_template)
    except InvalidInput:
        return
    halves = {
        core[:length]
        for core in matcher.cores
        for length in range(max(2, len(core) // 2), len(core))
    }
    naive_answer = any(tuple(row[-len(part) :]) == part for part in halves)
    assert matcher.cut_off([row]) == naive_answer


def test_the_first_token_of_texts_of_ones_own_is_left_out():
    matcher = TokenMatcher([[1, 5, 6], [2, 5, 7]], one_template=False)
    assert matcher.skipped == 1
    (seen,) = matcher.find([[9, 99, 5, 7, 0]])
    assert seen.canary == 1
    # Without the first token they would be the same.
    assert TokenMatcher([[1, 5, 6], [2, 5, 6]], one_template=False).skipped == 0
