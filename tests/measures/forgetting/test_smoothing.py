"""A moving average that stays centred, never leaves its entries and keeps the planting sharp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.measures import forgetting_curve
from remnant.measures.forgetting.between_lags import moving_average

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=30).map(np.array)


def by_hand(values, points):
    made = []
    for at in range(len(values)):
        wide = points // 2
        while at - wide < 0 or at + wide >= len(values):
            wide -= 1
        made.append(sum(values[at - wide : at + wide + 1]) / (2 * wide + 1))
    return made


@given(values=VALUES, half=st.integers(0, 6))
def test_it_is_what_its_definition_says_and_stays_inside(values, half):
    found = moving_average(np.arange(len(values), dtype=float), values, 2 * half + 1)
    np.testing.assert_allclose(found, by_hand(values, 2 * half + 1), atol=1e-9)
    assert found.min() >= values.min() - 1e-9
    assert found.max() <= values.max() + 1e-9
    assert found[[0, -1]].tolist() == values[[0, -1]].tolist()


@given(values=VALUES)
def test_one_point_changes_nothing(values):
    lags = np.arange(len(values), dtype=float)
    assert moving_average(lags, values, 1).tolist() == values.tolist()


@given(gaps=st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_a_line_stays_a_line_however_the_lags_are_spaced(gaps):
    lags = np.cumsum(gaps)
    line = 0.9 - 0.002 * lags
    np.testing.assert_allclose(moving_average(lags, line, 5), line, atol=1e-9)


@pytest.mark.parametrize("points", [0, 2, -1, 2.0, True, "5"])
def test_a_window_that_is_not_odd_is_refused(points):
    with pytest.raises(InvalidInput, match="not an odd whole number"):
        moving_average(np.arange(3.0), np.ones(3), points)


def test_the_jump_at_planting_is_not_smoothed_and_the_raw_curve_stays():
    rng = np.random.default_rng(0)
    shift = np.array([0, 0, 0, 4, 4, 4.0])[:, None, None]
    curve = forgetting_curve(
        seen_scores=shift + rng.normal(size=(6, 2, 50)),
        unseen_scores=rng.normal(size=(6, 2, 50)),
        lags=[-30, -20, -10, 0, 10, 20],
        success="auc",
        rng=rng,
    )
    raw = curve.value.copy()
    found = curve.smoothed()
    assert found[:3].max() < 0.65
    assert found[3:].min() > 0.95
    assert curve.value.tolist() == raw.tolist()
    assert found[1] == pytest.approx(raw[:3].mean())
