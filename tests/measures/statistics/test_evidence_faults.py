"""Scores that are all alike: the share of tied pairs, and what a gate says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.measures.statistics.evidence_faults import alike_fault, tied_pairs

SCORES = st.lists(st.integers(-2, 2).map(float), min_size=1, max_size=20)


@given(seen=SCORES, unseen=SCORES)
def test_tied_pairs_agree_with_their_definition(seen, unseen):
    by_hand = np.mean([a == b for a in seen for b in unseen])
    assert tied_pairs(np.array(seen), np.array(unseen)) == pytest.approx(by_hand)


def test_each_lag_and_trial_has_its_own_share():
    rng = np.random.default_rng(0)
    seen, unseen = rng.normal(size=(2, 3, 10)), rng.normal(size=(2, 3, 7))
    seen[1, 2], unseen[1, 2] = 4.0, 4.0
    seen[0, 1, :5], unseen[0, 1] = 1.0, 1.0
    assert tied_pairs(seen, unseen).tolist() == [[0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]


def test_scores_that_differ_by_rounding_are_one_number():
    rng = np.random.default_rng(0)
    scores = 0.3 + 1e-15 * rng.normal(size=(2, 50))
    assert tied_pairs(*scores) == 1.0
    assert tied_pairs(*(1e-9 * rng.normal(size=(2, 50)))) == 0.0


def test_a_majority_of_ties_is_a_fault():
    assert alike_fault(0.5) == ""
    assert alike_fault(0.51, " at the end").startswith(
        "51% of the pairs of a seen and an unseen score at the end tie: an attack that is saturated"
    )
    assert alike_fault(1.0).startswith("all scores are one number, seen and unseen")
