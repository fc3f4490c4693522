"""Scores that are all alike: how far they are, what a gate says of them, and how often it errs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant import audit_scores
from remnant.measures import forgetting_curve
from remnant.measures.statistics.evidence_faults import alike_fault, tied_pairs

SCORES = st.lists(st.integers(-2, 2).map(float), min_size=1, max_size=20)


@given(seen=SCORES, unseen=SCORES)
def test_tied_pairs_agree_with_their_definition(seen, unseen):
    pairs = [(a, b) for a in seen for b in unseen]
    tied, at_an_end, one_side = tied_pairs(np.array(seen), np.array(unseen)).tolist()
    assert tied == pytest.approx(np.mean([a == b for a, b in pairs]))
    ends = [[a == b == end for a, b in pairs] for end in (min(seen + unseen), max(seen + unseen))]
    assert at_an_end == pytest.approx(max(np.mean(end) for end in ends))
    alone = (len(seen) > 1 and len(set(seen)) == 1) or (len(unseen) > 1 and len(set(unseen)) == 1)
    assert one_side == (alone or tied == 1.0)


def test_each_lag_and_trial_has_its_own_shares():
    rng = np.random.default_rng(0)
    seen, unseen = rng.normal(size=(2, 3, 10)), rng.normal(size=(2, 3, 7))
    seen[1, 2], unseen[1, 2] = 4.0, 4.0
    seen[0, 1, :5], unseen[0, 1] = 0.0, 0.0
    seen[0, 2, :5], unseen[0, 2, 1:] = 9.0, 9.0
    found = tied_pairs(seen, unseen)
    assert found[..., 0] == pytest.approx(np.array([[0.0, 0.5, 3 / 7], [0.0, 0.0, 1.0]]))
    assert found[..., 1] == pytest.approx(np.array([[0.0, 0.0, 3 / 7], [0.0, 0.0, 1.0]]))
    assert found[..., 2].tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_scores_that_differ_by_rounding_are_one_number():
    rng = np.random.default_rng(0)
    scores = 0.3 + 1e-15 * rng.normal(size=(2, 50))
    assert tied_pairs(*scores).tolist() == [1.0, 1.0, 1.0]
    assert tied_pairs(*(1e-9 * rng.normal(size=(2, 50)))).tolist() == [0.0, 0.0, 0.0]


def test_what_is_a_fault():
    assert alike_fault([0.5, 0.1, 0.0]) == ""
    assert alike_fault([0.51, 0.0, 0.0], " at the end").startswith(
        "51% of the pairs of a seen and an unseen score at the end tie: an attack that is saturated"
    )
    assert alike_fault([1.0, 1.0, 1.0]).startswith("all scores are one number, seen and unseen")
    assert alike_fault([0.0, 0.0, 1.0], " at the end").startswith(
        "all scores of one side at the end are one number: an attack"
    )
    assert alike_fault([0.2, 0.12, 0.0]).startswith(
        "12% of the pairs of a seen and an unseen score tie at the lowest or highest score: an att"
    )


@pytest.mark.parametrize("constant", [0, 1])
def test_a_side_that_is_one_number_passes_no_gate(constant):
    """As where the scores of one file were not computed and became 0."""
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 3, 8, 60))
    sides[0, 0] += 4.0
    scores = {"lags": [10, 100, 1000], "success": "auc", "rng": rng}
    computed = forgetting_curve(seen_scores=sides[0], unseen_scores=sides[1], **scores)
    assert computed.verdict(0.75).outcome == "PASS"
    assert computed.safe_after(0.75).lag == 100
    sides[constant, 2] = 0.0
    curve = forgetting_curve(seen_scores=sides[0], unseen_scores=sides[1], **scores)
    assert "all scores of one side at the end are one number" in curve.verdict(0.75).sentence
    assert (curve.verdict(0.75).outcome, curve.safe_after(0.75).lag) == ("INCONCLUSIVE", None)


@pytest.mark.parametrize(("cut", "above"), [(0.4, True), (0.4, False), (0.6, True)])
def test_scores_that_are_cut_at_an_end_seldom_pass(cut, above):
    """Without the rule, cuts at 0.4 passed in half of the audits; the AUC is above the limit."""
    rng, passed = np.random.default_rng(0), 0
    shift = np.sqrt(2.0) * stats.norm.ppf(0.602)
    for _ in range(25):
        seen, unseen = rng.normal(size=400) + shift, rng.normal(size=400)
        if above:
            scores = [np.minimum(side, np.quantile(unseen, cut)) for side in (seen, unseen)]
        else:
            scores = [np.maximum(side, np.quantile(seen, 1 - cut)) for side in (seen, unseen)]
        found = audit_scores(
            seen=scores[0], unseen=scores[1], control=9 + rng.normal(size=50), limit=0.6, rng=rng
        )
        passed += found.outcome == "PASS"
    assert passed <= 4  # more are improbable (1 %) at 5 %
