import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from remnant.errors import InvalidInput
from remnant.measures import cross_entropy, log_odds, logit_gap


@settings(max_examples=80)
@given(
    seed=st.integers(0, 9999), classes=st.integers(2, 6), lead=st.sampled_from([(), (2,), (3, 2)])
)
def test_signals_agree_with_their_definitions(seed, classes, lead):
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(*lead, 5, classes))
    labels = rng.integers(classes, size=5)
    chosen = np.broadcast_to(labels, (*lead, 5))[..., None]
    p = np.take_along_axis(softmax(logits, axis=-1), chosen, axis=-1)[..., 0]
    np.testing.assert_allclose(log_odds(logits, labels), np.log(p / (1 - p)), rtol=1e-6, atol=1e-9)
    loss = -np.take_along_axis(log_softmax(logits, axis=-1), chosen, axis=-1)[..., 0]
    np.testing.assert_allclose(cross_entropy(logits, labels), loss, rtol=1e-9, atol=1e-12)
    gaps = [
        row[y] - max(np.delete(row, y))
        for row, y in zip(logits.reshape(-1, classes), chosen.ravel(), strict=True)
    ]
    np.testing.assert_allclose(logit_gap(logits, labels).ravel(), gaps)


def test_a_saturated_softmax_stays_finite():
    logits = np.array([[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4]])
    np.testing.assert_allclose(log_odds(logits, [0, 0]), [1e4, -2e4])
    np.testing.assert_allclose(cross_entropy(logits, [0, 0]), [0.0, 2e4])
    assert cross_entropy([[40.0, 0.0]], [0])[0] > 0.0


def test_labels_may_differ_by_trial():
    logits = np.arange(12.0).reshape(2, 2, 3)
    both = log_odds(logits, [[0, 1], [2, 0]])
    np.testing.assert_allclose(both[1], log_odds(logits[1], [2, 0]))


def test_a_shift_of_all_logits_changes_nothing():
    logits = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(log_odds(logits + 50.0, [0] * 4), log_odds(logits, [0] * 4))


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        ([[0.0, np.nan]], [0]),
        ([[0.0, 1.0]], [2]),
        ([[0.0, 1.0]], [-1]),
        ([[0.0, 1.0]], [0.5]),
        ([[0.0]], [0]),
        ([0.0, 1.0], [0]),
        ([[0.0, 1.0]], [0, 1]),
        ([[0.0, 1.0]], [[[0]]]),
        ("logits", [0]),
    ],
)
@pytest.mark.parametrize("signal", [log_odds, cross_entropy, logit_gap])
def test_faulty_input_is_refused(signal, logits, labels):
    with pytest.raises(InvalidInput):
        signal(logits, labels)


def test_labels_beyond_the_logits_say_how_many_columns_there_are():
    with pytest.raises(InvalidInput, match="from 0 to 1: logits have 2 columns"):
        cross_entropy([[0.0, 1.0]], [2])
