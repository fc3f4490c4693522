"""The blind baseline of images, other arrays and labels: seldom void by chance, void by a shift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from remnant.errors import NotEnoughEvidence
from remnant.measures.membership.blind import (
    GRID,
    array_features,
    blind_classifier,
    text_features,
    with_labels,
)


def images(count: int, rng: np.random.Generator) -> np.ndarray:
    """Smooth noise of three channels whose brightness varies."""
    coarse = rng.uniform(size=(count, 3, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)
    noise = rng.normal(0.0, 0.1, size=coarse.shape)
    return np.clip(coarse * rng.uniform(0.5, 1.0, (count, 1, 1, 1)) + noise, 0, 1).astype(
        np.float32
    )


def test_sets_from_one_source_are_seldom_void():
    rng = np.random.default_rng(0)
    times, void = 40, 0
    for _ in range(times):
        features = with_labels(array_features(images(120, rng)), rng.integers(0, 3, 120))
        void += blind_classifier(features, 60, rng=rng).void
    # At a rate of 2 %, so many or more would be seen in one of 1 000 tests.
    assert void < stats.binom.isf(1e-3, times, 0.02) + 1


@pytest.mark.parametrize(
    "shifted",
    [
        lambda given: given * 0.8,
        lambda given: np.concatenate([given[:, :, :, :2] * 0.0, given[:, :, :, 2:]], axis=3),
        lambda given: (given + np.roll(given, 1, axis=3)) / 2,
        lambda given: given[:, ::-1] * np.array([1.0, 1.0, 0.8])[:, None, None],
    ],
    ids=["darker", "a black edge", "blurred", "colours"],
)
def test_sets_that_differ_are_void(shifted):
    rng = np.random.default_rng(1)
    seen, unseen = images(150, rng), shifted(images(150, rng)).astype(np.float32)
    found = blind_classifier(array_features(np.concatenate([seen, unseen])), 150, rng=rng)
    assert found.void
    assert found.value > 0.7


def test_other_shares_of_classes_are_void():
    rng = np.random.default_rng(2)
    labels = np.concatenate([rng.random(150) < 0.3, rng.random(150) < 0.7]).astype(np.int64)
    features = array_features(images(300, rng))
    assert blind_classifier(with_labels(features, labels), 150, rng=rng).void
    texts = [f"a text of number {number}" for number in rng.integers(0, 10**6, 300)]
    assert blind_classifier(with_labels(text_features(texts), labels), 150, rng=rng).void


def test_arrays_of_any_shape_and_constants_have_features():
    rng = np.random.default_rng(3)
    for shape in ((7,), (5, 1000), (4, 3, 2, 2, 2), (1,)):
        made = array_features(rng.normal(size=(30, *shape)).astype(np.float32))
        assert made.shape[0] == 30
        assert np.isfinite(made.toarray()).all()
    assert array_features(np.ones((30, 1, 8, 8), np.float32)).shape[0] == 30


def test_the_grid_holds_means_of_neighbours():
    rng = np.random.default_rng(4)
    given = images(40, rng)
    means = given.reshape(40, 3, GRID, 2, GRID, 2).mean(axis=(3, 5)).reshape(40, -1)
    standard = (means - means.mean(0)) / means.std(0)
    made = array_features(given).toarray()[:, : means.shape[1]]
    scale = made.std(0).mean()
    np.testing.assert_allclose(made / scale, np.clip(standard, -5, 5), atol=2e-3)


def test_too_few_records_are_refused():
    with pytest.raises(NotEnoughEvidence, match="9 seen and 30 unseen records are too few"):
        blind_classifier(sparse.csr_matrix(np.ones((39, 2))), 9, rng=np.random.default_rng(0))
