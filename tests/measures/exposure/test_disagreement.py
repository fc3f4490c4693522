"""Windows on which two models disagree: by definition, and on a text with a memorised secret."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.measures import disagreeing_windows

COSTS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 2.0, 7.0, math.inf]), st.sampled_from([0.0, 1.0, 7.0])),
    min_size=1,
    max_size=30,
)


def by_hand(a, b, share, width):
    gaps = []
    for start in range(0, len(a), width):
        pairs = list(zip(a[start : start + width], b[start : start + width], strict=True))
        gaps.append(abs(sum(x - y for x, y in pairs if x != y)))
    wanted = math.ceil(share * len(gaps))
    ordered = sorted(range(len(gaps)), key=lambda window: (-gaps[window], window))
    return sorted(window for window in ordered[:wanted] if gaps[window] > 0)


@given(COSTS, st.sampled_from([0.01, 0.2, 0.5, 0.99]), st.integers(1, 7))
def test_it_agrees_with_its_definition_and_with_the_models_swapped(costs, share, width):
    a, b = zip(*costs, strict=True)
    windows = disagreeing_windows(a, b, share=share, width=width)
    assert windows.tolist() == by_hand(a, b, share, width)
    assert disagreeing_windows(b, a, share=share, width=width).tolist() == windows.tolist()


def test_equal_models_give_none_and_both_infinite_is_no_disagreement():
    costs = [1.0, math.inf, 2.0, math.inf]
    assert disagreeing_windows(costs, costs, share=0.9, width=1).size == 0
    assert disagreeing_windows([math.inf, 1.0], [1.0, math.inf], share=0.9, width=2).tolist() == [0]


def test_memorised_secrets_of_either_half_are_found_among_noise():
    rng = np.random.default_rng(0)
    shared = rng.exponential(3.0, size=32 * 1000)
    a, b = (shared + rng.normal(scale=0.5, size=shared.size) for _ in range(2))
    secrets_of_a, secrets_of_b = [17, 400, 981], [3, 512]
    for costs, windows in ((a, secrets_of_a), (b, secrets_of_b)):
        for window in windows:
            costs[window * 32 + 5 : window * 32 + 14] = 0.01  # nine digits, known by heart
    for costs, windows in ((b, secrets_of_a), (a, secrets_of_b)):
        for window in windows:
            costs[window * 32 + 5 : window * 32 + 14] = 3.3
    assert disagreeing_windows(a, b, share=0.005).tolist() == sorted(secrets_of_a + secrets_of_b)
    # A secret that both halves hold is missed.
    b[17 * 32 + 5 : 17 * 32 + 14] = 0.01
    assert 17 not in disagreeing_windows(a, b, share=0.005)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0], [1.0, 2.0]), "costs_a has 1 tokens, and costs_b has 2"),
        (([math.nan], [1.0]), "costs_a holds 1 value"),
        (([], [1.0]), "costs_a is empty"),
    ],
)
def test_faults_of_costs(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        disagreeing_windows(*arguments)


def test_faults_of_settings_are_listed_together():
    with pytest.raises(InvalidInput, match="share=1 is not between 0 and 1; width=0 is not"):
        disagreeing_windows([1.0], [2.0], share=1, width=0)
