import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import mahalanobis


def toy(seed=0, n=40, d=5, classes=2):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    mixing = rng.normal(size=(d, d))
    return rng.normal(size=(n, d)) @ mixing + 3.0 * rng.normal(size=(classes, d))[labels], labels


def reduced(hidden, components):
    return PCA(n_components=components).fit_transform(hidden)


@settings(max_examples=40)
@given(seed=st.integers(0, 9999), components=st.integers(1, 5))
def test_leaving_out_equals_fitting_to_all_others(seed, components):
    hidden, _ = toy(seed)
    found = mahalanobis(hidden=hidden, components=components)
    points = reduced(hidden, components)
    for i in range(0, 40, 7):
        others = np.delete(points, i, axis=0)
        away = points[i] - others.mean(axis=0)
        covariance = np.atleast_2d(np.cov(others.T))
        expected = np.sqrt(away @ np.linalg.solve(covariance, away))
        np.testing.assert_allclose(found.distances[i], expected, rtol=1e-7)
    assert (found.components, found.n_classes, found.left_out) == (components, 1, True)


@settings(max_examples=40)
@given(seed=st.integers(0, 9999), classes=st.integers(2, 4))
def test_with_labels_it_is_the_distance_from_the_own_class(seed, classes):
    hidden, labels = toy(seed, classes=classes)
    found = mahalanobis(hidden=hidden, labels=labels, components=3)
    points = reduced(hidden, 3)
    for i in range(0, 40, 9):
        rest = np.arange(40) != i
        scatter = np.zeros((3, 3))
        for one in range(classes):
            own = points[rest & (labels == one)]
            scatter += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
        away = points[i] - points[rest & (labels == labels[i])].mean(axis=0)
        expected = np.sqrt(away @ np.linalg.solve(scatter / (39 - classes), away))
        np.testing.assert_allclose(found.distances[i], expected, rtol=1e-7)


def test_without_leaving_out_it_is_scikit_learns():
    hidden, _ = toy(1)
    found = mahalanobis(hidden=hidden, components=4, leave_one_out=False)
    points = reduced(hidden, 4)
    theirs = EmpiricalCovariance().fit(points).mahalanobis(points)  # divides by n
    np.testing.assert_allclose(found.distances**2, theirs * 39 / 40, rtol=1e-8)


def test_shift_scale_turn_and_order_change_nothing():
    hidden, labels = toy(2)
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    order = rng.permutation(40)
    for names in (None, labels):
        found = mahalanobis(hidden=hidden, labels=names, components=3).distances
        moved = 1e20 * (hidden @ turn + 4.0)
        np.testing.assert_allclose(
            mahalanobis(hidden=moved, labels=names, components=3).distances, found, rtol=1e-7
        )
        mixed = None if names is None else names[order]
        np.testing.assert_allclose(
            mahalanobis(hidden=hidden[order], labels=mixed, components=3).distances, found[order],
            rtol=1e-7,
        )  # fmt: skip


def test_components_that_do_not_vary_are_not_kept():
    hidden, _ = toy(3)
    padded = np.hstack([hidden, np.full((40, 3), 0.7), hidden[:, :2]])
    found = mahalanobis(hidden=padded)
    assert found.components == 5
    np.testing.assert_allclose(found.distances, mahalanobis(hidden=hidden).distances, rtol=1e-6)
    narrow = mahalanobis(hidden=hidden.astype(np.float32))
    np.testing.assert_allclose(narrow.distances, mahalanobis(hidden=hidden).distances, rtol=1e-4)


def test_the_outlier_is_furthest():
    hidden, labels = toy(4)
    hidden[11] = hidden.mean(axis=0) + 20.0
    for names in (None, labels):
        found = mahalanobis(hidden=hidden, labels=names)
        assert found.risk.argmax() == 11
        assert np.isfinite(found.risk).all()


def test_faults():
    hidden, labels = toy()
    with pytest.raises(InvalidInput, match=r"components=0 .*; hidden holds 1"):
        mahalanobis(hidden=[[np.nan]], components=0)
    with pytest.raises(InvalidInput, match="labels has 3 entries for 40"):
        mahalanobis(hidden=hidden, labels=[0, 1, 0])
    with pytest.raises(InvalidInput, match="nothing varies"):
        mahalanobis(hidden=np.full((10, 3), 0.1))
    with pytest.raises(InvalidInput, match="not an array"):
        mahalanobis(hidden=[[1.0], [1.0, 2.0]])
    with pytest.raises(NotEnoughEvidence, match="at most 3 components"):
        mahalanobis(hidden=hidden[:6])
    labels[0] = 7
    with pytest.raises(NotEnoughEvidence, match=r"7 \(1\)"):
        mahalanobis(hidden=hidden, labels=labels)
    lonely = np.vstack([hidden, hidden.mean(axis=0)])
    lonely = np.hstack([lonely, np.zeros((41, 1))])
    lonely[-1, -1] = 9.0
    with pytest.raises(NotEnoughEvidence, match="without 1 of the samples"):
        mahalanobis(hidden=lonely)
    points = np.repeat([[0.0, 1.0], [3.0, 1.0]], 20, axis=0) + [0.0, 1.0] * hidden[:, :2]
    with pytest.raises(NotEnoughEvidence, match="within classes"):
        mahalanobis(hidden=points, labels=np.repeat([0, 1], 20))
