"""Where canaries go: every arrangement alike, or exactly where they were sent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries import Template, insert_into_texts, make_canary_set, place_canaries
from remnant.errors import InvalidInput

PINS = Template("my pin is {digits:5}")


def rng(seed=0):
    return np.random.default_rng(seed)


def made(*repeats):
    return make_canary_set(PINS, repeats=repeats, controls=5, seed=0)


def check(texts, canary_set, new, where):
    """What every insertion promises."""
    assert where.shape == (sum(canary_set.repeats), 2)
    assert where.dtype == np.int64
    assert (np.diff(where[:, 0]) > 0).all()
    for position, canary in where:
        assert new[position] == canary_set.canaries[canary].text
    assert Counter(where[:, 1].tolist()) == dict(enumerate(canary_set.repeats))
    planted = set(where[:, 0].tolist())
    assert [text for at, text in enumerate(new) if at not in planted] == texts
    for control in canary_set.controls:
        assert control.text not in new


@given(
    texts=st.lists(st.text(max_size=3), max_size=20),
    repeats=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_random_places_keep_what_is_promised(texts, repeats, seed):
    canary_set = made(*repeats)
    before = list(texts)
    new, where = insert_into_texts(texts, canary_set, rng=rng(seed))
    check(texts, canary_set, new, where)
    assert texts == before
    again, there = insert_into_texts(texts, canary_set, rng=rng(seed))
    assert again == new
    np.testing.assert_array_equal(there, where)


@given(
    data=st.data(),
    texts=st.lists(st.text(max_size=3), max_size=8),
    repeats=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_given_places_agree_with_inserting_by_hand(data, texts, repeats):
    canary_set = made(*repeats)
    copies = canary_set.copies.tolist()
    positions = data.draw(
        st.lists(st.integers(0, len(texts)), min_size=len(copies), max_size=len(copies))
    )
    by_hand = []
    for at in range(len(texts) + 1):
        by_hand += [
            canary_set.canaries[canary].text
            for canary, position in zip(copies, positions, strict=True)
            if position == at
        ]
        by_hand += texts[at : at + 1]
    new, where = insert_into_texts(texts, canary_set, positions=positions)
    check(texts, canary_set, new, where)
    assert new == by_hand


def test_every_arrangement_is_equally_likely():
    source = rng(1)
    canary_set = made(2, 1)
    found = Counter(
        tuple(map(tuple, place_canaries(canary_set, among=2, rng=source).tolist()))
        for _ in range(6000)
    )
    # Five places for the canary planted once, six pairs of the other four for the other.
    assert len(found) == 30
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give exactly one of rng and positions"),
        ({"rng": rng(), "positions": [0, 0, 0]}, "Give exactly one of rng and positions"),
        ({"rng": 0}, r"rng=0 is not a numpy\.random\.Generator"),
        ({"positions": [0, 1]}, r"positions has 2 entries for 3 copies .* one for each copy"),
        ({"positions": [0, 1, 4]}, "positions holds 4, outside 0 to 3"),
        ({"positions": [-1, 1, 2]}, "positions holds -1, outside 0 to 3"),
        ({"positions": [-1, 1]}, "2 entries for 3 copies.*; positions holds -1"),
        ({"positions": [0.0, 1.0, 2.0]}, "positions is not a flat list of whole numbers"),
        ({"positions": [True, False, True]}, "positions is not a flat list"),
        ({"positions": [[0, 1, 2]]}, "positions is not a flat list"),
        ({"positions": [[0], [1, 2]]}, "positions is not a flat list"),
        ({"positions": ["0", "1", "2"]}, "positions is not a flat list"),
        ({"positions": []}, "positions has 0 entries for 3 copies"),
        ({"positions": np.array([0, 1, 2**64 - 1], np.uint64)}, "outside 0 to 3"),
    ],
)
def test_places_that_cannot_be_are_explained(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        insert_into_texts(["a", "b", "c"], made(2, 1), **arguments)


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(InvalidInput, match="texts is one string, not a list"):
        insert_into_texts("abc", made(1), rng=rng())
    with pytest.raises(InvalidInput, match=r"texts\[1\] is of type int"):
        insert_into_texts(["a", 5], made(1), rng=rng())


def test_texts_that_hold_a_canary_or_a_control_already_are_refused():
    canary_set = made(1, 2)
    standing = [f"so {canary_set.canaries[0].text}!", canary_set.controls[2].text, "nothing"]
    for texts, many in ((standing, 2), (standing[1:], 1), (standing[:1] * 3, 1)):
        with pytest.raises(InvalidInput) as fault:
            insert_into_texts(texts, canary_set, rng=rng())
        assert str(fault.value) == (
            f"texts holds {many} of the canaries and controls before any is planted. "
            "Draw others with another seed=."
        )
    others = make_canary_set(PINS, repeats=[1, 2], controls=5, seed=1)
    assert len(insert_into_texts(standing, others, rng=rng())[0]) == 6
