"""Random-token sequences: uniform, distinct, and refused where there are too few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant.canaries import commonest_tokens, random_token_sequences
from remnant.errors import InvalidInput


def drawn(seed=0, **changes):
    asked = {"count": 50, "tokens": 6, "choices": np.arange(3, 13)} | changes
    return random_token_sequences(**asked, rng=np.random.default_rng(seed))


def test_no_two_are_alike_and_all_are_made_of_the_choices():
    found = drawn(count=64, tokens=3, choices=[5, 6, 8, 9])
    assert found.shape == (64, 3)
    assert len({tuple(row) for row in found.tolist()}) == 64, "the whole space"
    assert set(found.ravel().tolist()) == {5, 6, 8, 9}


def test_every_token_is_equally_likely_at_every_place():
    found = drawn(count=4000, tokens=4)
    for place in range(4):
        counts = np.bincount(found[:, place] - 3, minlength=10)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_a_longer_draw_begins_with_the_shorter():
    np.testing.assert_array_equal(drawn(count=10), drawn(count=50)[:10])
    np.testing.assert_array_equal(drawn(tokens=40), drawn(tokens=40))
    assert not np.array_equal(drawn(seed=1), drawn())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"count": 5, "tokens": 2, "choices": [0, 1]}, "and there are 4"),
        ({"choices": [3]}, "1 different tokens of 1"),
        ({"choices": [3, 3]}, "1 different tokens of 2"),
        ({"choices": [0.5, 1.5]}, "not a list of tokens"),
        ({"count": 0, "tokens": True}, r"count=0 .* tokens=True"),
    ],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(InvalidInput, match=words):
        drawn(**changes)


def test_the_commonest_come_first():
    ids = [4, 4, 1, 1, 1, 0]
    assert commonest_tokens(ids, vocabulary_size=5).tolist() == [1, 4, 0, 2, 3]
    assert commonest_tokens(ids, vocabulary_size=5, at_most=2).tolist() == [1, 4]
