"""k-means against its slow definition, and the experiment's own figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.theory import kmeans_outlier
from remnant.theory.kmeans import best_two_centres, lloyd

ROWS = st.lists(st.floats(-5, 5), min_size=2, max_size=12, unique=True)


def squares(points: np.ndarray, *centres: float) -> float:
    return float(np.min([(points - centre) ** 2 for centre in centres], axis=0).sum())


@given(ROWS)
def test_best_centres_are_the_best_of_all_splits(row):
    points = np.array(row)
    left, right = best_two_centres(points[None])
    ranked = np.sort(points)
    splits = [
        squares(points, ranked[:cut].mean(), ranked[cut:].mean()) for cut in range(1, len(row))
    ]
    assert squares(points, left[0], right[0]) == pytest.approx(min(splits), abs=1e-9)


@given(ROWS, st.floats(-5, 0), st.floats(0.1, 5))
def test_lloyd_is_the_plain_loop(row, left, right):
    points = np.array(row)
    found = lloyd(points[None], np.array([left]), np.array([right]))
    for _ in range(200):
        near = points <= (left + right) / 2.0
        left = np.mean(points[near]) if near.any() else left
        right = np.mean(points[~near]) if (~near).any() else right
    assert (found[0][0], found[1][0]) == pytest.approx((left, right), abs=1e-9)


def test_the_outlier_is_not_forgotten():
    found = kmeans_outlier(trials=4000, rng=np.random.default_rng(0))
    assert 0.93 < found.accuracy < 0.97
    assert found.low < found.accuracy < found.high
    assert found.precision > 0.999


def test_more_new_data_do_not_undo_it():
    found = kmeans_outlier(trials=500, rng=np.random.default_rng(1), new_points=2000)
    assert found.accuracy > 0.9


def test_without_an_outlier_there_is_nothing_to_find():
    """An outlier inside an outer cluster leaves the centres where they were."""
    found = kmeans_outlier(trials=500, rng=np.random.default_rng(2), outlier=1.0)
    assert found.accuracy == pytest.approx(0.5, abs=0.02)


def test_bad_input_is_named():
    with pytest.raises(InvalidInput, match=r"trials=0.*sigma=0"):
        kmeans_outlier(trials=0, rng=np.random.default_rng(0), sigma=0.0)
