"""Gone or hidden: readings, false claims where models differ, power, the rise's interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import forgetting_curve, hidden_test
from remnant.measures.forgetting.residual_memory import above_chance


def audit(rng, *, trials=8, canaries=32, before=0.0, after=(0.0, 0.0, 0.0), model=0.3):
    """Scores before and after disturbances: canaries and models keep most of what they have."""
    shifts = np.array([before, *after])[:, None, None]
    slots = len(shifts)

    def side():
        own = rng.normal(size=(1, trials, canaries)) + model * rng.normal(size=(1, trials, 1))
        return own + 0.7 * rng.normal(size=(slots, trials, canaries))

    seen, unseen = shifts + side(), side()
    return {
        "seen_before": seen[0],
        "seen_after": seen[1:],
        "unseen_before": unseen[0],
        "unseen_after": unseen[1:],
    }


def judged(rng, *, success="auc", **changes):
    return hidden_test(**audit(rng, **changes), success=success, rng=rng, draws=40)


@pytest.mark.parametrize(
    ("before", "after", "reading"),
    [
        (0.0, 3.0, "comes back"),
        (2.0, 2.0, "still found"),
        (0.0, 0.0, "not found"),
        (2.0, -1.0, "not found"),
        (1.0, 4.0, "comes back"),
    ],
)
def test_readings(before, after, reading):
    found = judged(np.random.default_rng(0), before=before, after=(after,), model=0.0)
    assert found.readings == (reading,)


def test_hidden_is_above_chance_now_and_was_not_before_without_a_rise():
    """Before, models differ so much that nothing is shown; after, a little is shown by all."""
    rng = np.random.default_rng(0)
    made = audit(rng, model=0.0, before=0.35, after=(0.45,), trials=8, canaries=60)
    made["seen_before"] = made["seen_before"] + np.array([-1.5, 1.5] * 4)[:, None]
    found = hidden_test(**made, success="auc", rng=rng)
    assert found.pvalue_before > 0.05
    assert found.pvalues_after[0] <= 0.05
    assert found.pvalues_rise[0] > 0.05
    assert found.readings == ("hidden",)


@pytest.mark.parametrize("success", ["precision", "auc"])
def test_false_claims_are_rare_where_there_is_nothing(success):
    """Three disturbances, models that differ: any claim counts; 300 audits at a nominal 5 %."""
    rng = np.random.default_rng(1)
    audits = 300
    claims = sum(
        bool({"hidden", "comes back"} & set(judged(rng, success=success).readings))
        for _ in range(audits)
    )
    assert stats.binomtest(claims, audits, 0.05, alternative="greater").pvalue > 0.001


def test_a_memory_that_stays_is_not_said_to_come_back():
    rng = np.random.default_rng(2)
    audits = 200
    rises = sum(
        bool(np.any(judged(rng, before=1.0, after=(1.0, 1.0)).pvalues_rise <= 0.05))
        for _ in range(audits)
    )
    assert stats.binomtest(rises, audits, 0.05, alternative="greater").pvalue > 0.001


def test_what_was_hidden_is_found():
    rng = np.random.default_rng(3)
    found = [judged(rng, after=(0.0, 1.2, 0.0)).readings[1] for _ in range(60)]
    assert np.mean([one == "comes back" for one in found]) > 0.9


@pytest.mark.parametrize("trials", [2, 3, 10])
def test_the_interval_of_the_rise_covers(trials, covers):
    rng = np.random.default_rng(trials)
    truth = float(np.diff(stats.norm.cdf(np.array([0.3, 1.0]) / np.sqrt(2 * 1.49 + 2 * 0.09)))[0])
    found = [judged(rng, trials=trials, before=0.3, after=(1.0,)) for _ in range(300)]
    assert covers([one.rise_low[0] <= truth <= one.rise_high[0] for one in found])


def test_the_pvalue_of_being_above_chance_agrees_with_the_interval():
    rng = np.random.default_rng(0)
    shift = np.array([0.0, 0.2, 0.5, 3.0])[:, None, None]
    curve = forgetting_curve(
        seen_scores=shift + rng.normal(size=(4, 6, 50)),
        unseen_scores=rng.normal(size=(4, 6, 50)),
        lags=range(4),
        success="auc",
        rng=rng,
    )
    found = above_chance(curve)
    for lag, pvalue in enumerate(found):
        for tail in (0.2, 0.025, 0.001):
            low = curve.evidence.ends(1 - 2 * tail)[0][lag]
            if abs(np.log(tail / pvalue)) > 0.02:
                assert (low > 0.5) == (pvalue < tail)
    assert found[0] > found[1] > found[2] > found[3] >= 1e-9


def test_agreeing_trials_are_not_a_proof():
    """Two trials that rise by one canary each: the spread is not taken to be zero."""
    unseen = np.tile(np.arange(32.0), (2, 1))
    seen = unseen - 0.5
    more = seen.copy()
    more[:, 0] = 100.0
    found = hidden_test(
        seen_before=seen,
        unseen_before=unseen,
        seen_after=more[None],
        unseen_after=unseen[None],
        success="auc",
        rng=np.random.default_rng(0),
    )
    assert found.rise[0] > 0
    assert found.pvalues_rise[0] > 0.05


def test_an_increasing_map_of_a_disturbance_changes_nothing():
    made = audit(np.random.default_rng(0), after=(0.5, 1.0))
    first = hidden_test(**made, rng=np.random.default_rng(1))
    for side in ("seen_after", "unseen_after"):
        made[side] = made[side].copy()
        made[side][1] = np.exp(made[side][1])
    again = hidden_test(**made, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(first.after, again.after)
    np.testing.assert_array_equal(first.pvalues_after, again.pvalues_after)


def test_too_little_and_bad_input_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(NotEnoughEvidence, match="one trial"):
        judged(rng, trials=1)
    with pytest.raises(NotEnoughEvidence, match="at least 10"):
        judged(rng, success="precision", canaries=8)
    with pytest.raises(InvalidInput, match="seen_after has 8 trials of 32 canaries"):
        hidden_test(**(audit(rng) | {"seen_before": np.zeros((4, 32))}), rng=rng)
