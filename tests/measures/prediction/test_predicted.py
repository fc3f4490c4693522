"""The samples that are predicted to be memorised, and the lists made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import mahalanobis, psmi
from remnant.measures.prediction.predicted import PREDICTORS, predicted_memorisation
from remnant.studies.prediction.recipe import EARLY


def blobs(n=120, wrong=(3, 40, 77), seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    hidden = rng.normal(size=(n, 6)) + 4.0 * np.eye(6)[truth]
    labels = truth.copy()
    labels[list(wrong)] = (labels[list(wrong)] + 1) % 3
    return hidden, labels


def made(**more):
    hidden, labels = blobs()
    rng = np.random.default_rng(1)
    losses = rng.exponential(size=len(labels))
    fields = {"losses": losses, "logit_gaps": -losses, "directions": 200, "rng": rng}
    return predicted_memorisation(**{"hidden": hidden, "labels": labels, **fields, **more})


FOUND = made()


def test_its_numbers_are_those_of_the_measures():
    hidden, labels = blobs()
    found = made(rng=np.random.default_rng(5))
    alone = psmi(hidden=hidden, labels=labels, directions=200, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(found.psmi.values, alone.values)
    np.testing.assert_array_equal(found.risk(), -alone.values)
    np.testing.assert_array_equal(found.risk("mahalanobis"), mahalanobis(hidden=hidden).distances)
    np.testing.assert_array_equal(found.risk("loss"), found.losses)
    np.testing.assert_array_equal(found.risk("logit_gap"), -found.logit_gaps)
    assert set(found.protect(top=3)) == {3, 40, 77}
    assert (found.n, found.no_mahalanobis, found.alone.any()) == (120, "", False)


@pytest.mark.parametrize("by", PREDICTORS)
def test_lists_grow_from_the_riskiest_on(by):
    found = made()
    risk = found.risk(by)
    order = found.order(by)
    assert np.all(np.diff(risk[order]) <= 0)
    for top in (1, 7, 120):
        np.testing.assert_array_equal(found.protect(top=top, by=by), order[:top])
    assert len(found.protect(share=0.25, by=by)) == 30


def test_without_a_size_the_list_is_what_has_no_psmi_above_0():
    found = made()
    assert set(found.protect()) == set(np.flatnonzero(found.psmi.values <= 0))
    assert 3 <= len(found.protect()) < 60


@given(
    risks=st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=120, max_size=120),
    share=st.floats(0.01, 0.99),
)
@settings(max_examples=40)
def test_a_share_is_filled_with_some_of_those_that_tie_at_its_end(risks, share):
    losses = np.array(risks)
    found = replace(FOUND, losses=losses)
    listed = found.protect(share=share, by="loss")
    assert len(set(listed)) == len(listed) == int(share * 120 + 1e-9)
    rest = np.delete(losses, listed)
    assert (np.diff(losses[listed]) <= 0).all()
    if listed.size:
        assert rest.max() <= losses[listed].min()
    more = found.protect(share=min(share + 0.1, 0.995), by="loss")
    np.testing.assert_array_equal(more[: listed.size], listed)


def test_samples_alone_in_their_class_are_refused_or_listed_first():
    hidden, labels = blobs()
    labels[[10, 20]] = [7, 8]
    with pytest.raises(NotEnoughEvidence, match=r"too few: 7 \(1\), 8 \(1\)"):
        made(labels=labels)
    found = made(labels=labels, list_alone=True)
    assert found.protect(top=2).tolist() == [10, 20]
    assert set(found.protect()[:2]) == {10, 20}
    assert {10, 20} <= set(found.protect(share=0.1))
    assert found.psmi.n == 118
    kept = ~np.isin(np.arange(120), [10, 20])
    rest = psmi(
        hidden=hidden[kept], labels=labels[kept], directions=200, rng=np.random.default_rng(3)
    )
    again = made(labels=labels, list_alone=True, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(again.psmi.values, rest.values)
    with pytest.raises(NotEnoughEvidence, match="sample 10 is alone"):
        found.risk()
    assert found.risk("loss").size == 120
    with pytest.raises(NotEnoughEvidence, match="every sample is alone"):
        made(labels=np.arange(120), list_alone=True)


def test_the_distance_takes_fewer_components_where_a_sample_stands_alone_in_one():
    hidden, labels = blobs()
    hidden = np.hstack([hidden, np.zeros((120, 4))])
    hidden[5, 9] = 50.0  # a unit that fires for one sample: without it nothing varies there
    with pytest.raises(NotEnoughEvidence, match="would not vary"):
        mahalanobis(hidden=hidden)
    found = made(hidden=hidden, labels=labels)
    assert found.mahalanobis is None or found.mahalanobis.components < 7
    few = predicted_memorisation(
        hidden=[[0.0], [1.0], [5.0], [5.0]],
        labels=[0, 0, 1, 1],
        directions=5,
        rng=np.random.default_rng(0),
    )
    assert few.mahalanobis is not None
    lonely = made(hidden=hidden[:, 9:] + 0 * hidden[:, :1])
    assert lonely.mahalanobis is None
    with pytest.raises(NotEnoughEvidence, match="was not measured: without 1 of the samples"):
        lonely.risk("mahalanobis")


def test_faults_are_named():
    found = made(losses=None, logit_gaps=None)
    for options, words in (
        ({"by": "loss", "top": 1}, "by='loss' was not measured. Give the model's logits too"),
        ({"by": "luck", "top": 1}, "by='luck' is not one of psmi, loss"),
        ({"by": "loss"}, "no threshold of its own; it takes share or top"),
        ({"share": 0.1, "top": 1}, "both given"),
        ({"share": 1.0}, "share=1.0 is not between"),
        ({"top": 0}, "top=0 is not a whole number from 1 to the 120"),
        ({"top": 121}, "top=121"),
    ):
        with pytest.raises(InvalidInput, match=words):
            found.protect(**options)
    for options, words in (
        ({"losses": [1.0]}, "losses has 1 entries for 120 rows"),
        ({"logit_gaps": np.full(120, np.nan)}, "logit_gaps holds 120 value"),
        ({"labels": np.zeros(120, dtype=int)}, "one class"),
        ({"labels": [0, 1]}, "labels has 2 entries"),
    ):
        with pytest.raises(InvalidInput, match=words):
            made(**options)


def test_recipes_which_load_no_numpy_know_the_same_predictors():
    assert EARLY == PREDICTORS
