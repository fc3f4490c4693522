"""Safe after k steps: the sequence, its words, and how often it claims too much."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.exposure.curve import exposure_curve
from remnant.measures.forgetting.control import Control
from remnant.measures.forgetting.curve import forgetting_curve
from remnant.measures.forgetting.one_run import one_run_forgetting
from remnant.measures.forgetting.safe_after import safe_after

LAGS = np.array([-10.0, 0.0, 100.0, 200.0, 300.0])


def claimed(bounds, **changes):
    asked = {
        "lags": LAGS,
        "upper": lambda confidence: np.array(bounds),
        "limit": 0.6,
        "chance": 0.5,
        "success": "auc",
        "confidence": 0.95,
        "control": None,
    }
    return safe_after(**(asked | changes))


@pytest.mark.parametrize(
    ("bounds", "lag", "tested", "words"),
    [
        ([0.9, 0.9, 0.8, 0.6, 0.55], 200, 3, "one-sided 95% upper bound of AUC is 0.800"),
        ([0.9, 0.5, 0.5, 0.5, 0.5], 0, 4, "At every lag from 0 on"),
        ([0.1, 0.1, 0.1, 0.1, 0.61], None, 1, "Not even the last lag"),
        ([0.9, 0.55, 0.7, 0.55, 0.5], 200, 3, "at lag 100"),  # lag 0 looks safe and is no evidence
    ],
)
def test_the_sequence_stops_at_the_first_failure_from_behind(bounds, lag, tested, words):
    found = claimed(bounds)
    assert (found.lag, found.tested) == (lag, tested)
    assert words in found.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limit": 0.5}, "not above chance"),
        ({"limit": 1.2}, "limit=1.2"),
        ({"confidence": 0.79}, "confidence=0.79 is under 0.8, the least that a gate takes"),
        ({"lags": LAGS - 400}, "before planting"),
    ],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(InvalidInput, match=words):
        claimed([0.5] * 5, **changes)


def test_no_lag_is_safe_where_the_attack_never_found_the_canaries():
    missed = Control(None, "The attack did not find the canaries.")
    found = claimed([0.9, 0.9, 0.8, 0.6, 0.55], control=missed)
    assert (found.lag, found.reason) == (None, missed.reason)
    beyond = claimed([0.9, 0.9, 0.8, 0.6, 0.65], control=missed)
    assert "Not even the last lag" in beyond.reason
    assert claimed([0.9, 0.9, 0.8, 0.6, 0.55], control=Control(1.0, "")).lag == 200


def test_the_reason_says_what_so_many_trainings_cannot_exclude():
    bounds = [0.9, 0.9, 0.8, 0.6, 0.55]
    per_trial = np.full((5, 8), 0.52)
    assert "cannot exclude" not in claimed(bounds).reason
    found = claimed(bounds, per_trial=per_trial)
    assert found.reason.endswith(
        " 8 trainings cannot exclude that up to 31% of trainings behave otherwise."
    )
    per_trial[2, 0], per_trial[3, 1] = 0.7, 0.7  # before the safe lag, and at it
    found = claimed(bounds, per_trial=per_trial)
    assert "1 of 8 trainings is above the limit, so up to 47%" in found.reason
    assert "one training" in claimed(bounds, per_trial=per_trial[:, :1]).reason
    assert "cannot exclude" not in claimed([0.9] * 5, per_trial=per_trial).reason


@pytest.mark.parametrize("confidence", [0.55, 0.79])
def test_no_curve_passes_at_a_low_confidence(confidence):
    rng = np.random.default_rng(0)
    shift = np.array([3.0, 0.0])[:, None, None]
    seen, unseen = shift + rng.normal(size=(2, 8, 50)), rng.normal(size=(2, 8, 200))
    made = {"lags": [10, 20], "confidence": confidence, "rng": rng, "draws": 20}
    last = np.repeat([-1, 10], [200, 50])
    one = one_run_forgetting(
        scores=np.concatenate([unseen[:, 0], seen[:, 0]], axis=1),
        checkpoints=[10, 20],
        last_seen=last,
        repeats=np.ones(250),
        success="auc",
        rng=rng,
        confidence=confidence,
        draws=20,
    )
    attacked = forgetting_curve(seen_scores=seen, unseen_scores=unseen, success="auc", **made)
    exposed = exposure_curve(canary_losses=-seen, reference_losses=-unseen, **made)
    for judged in (
        lambda: one.verdict(0.7),
        lambda: attacked.verdict(0.7),
        lambda: attacked.safe_after(0.7, confidence),
        lambda: exposed.verdict(4.0),
        lambda: exposed.safe_after(4.0, confidence),
    ):
        with pytest.raises(InvalidInput, match=r"under 0\.8, the least that a gate takes"):
            judged()


def test_false_claims_are_as_rare_as_said():
    """Twelve trials whose models differ, success falling through the limit; 300 audits.

    Each model has an effect of its own. A claim is false if the true mean success of any lag it
    covers is above the limit. ``benchmarks/safe_after.py`` runs a thousand audits a set-up.
    """
    audits, trials, canaries = 300, 12, 40
    shift = np.array([1.2, 0.8, 0.5, 0.3, 0.0])
    own = 0.25
    truth = stats.norm.cdf(shift / np.sqrt(2.0 + own**2))
    limit = (truth[2] + truth[3]) / 2
    rng = np.random.default_rng(0)
    false, claims = 0, 0
    for _ in range(audits):
        models = own * rng.normal(size=(1, trials, 1))
        seen = shift[:, None, None] + models + rng.normal(size=(5, trials, canaries))
        unseen = rng.normal(size=(5, trials, canaries))
        curve = forgetting_curve(
            seen_scores=seen,
            unseen_scores=unseen,
            lags=[0, 1, 2, 3, 4],
            success="auc",
            rng=rng,
            draws=40,
        )
        found = curve.safe_after(limit=limit)
        claims += found.lag is not None
        false += found.lag is not None and found.lag <= 2
    assert claims > audits / 4
    assert stats.binomtest(false, audits, 0.05, alternative="greater").pvalue > 0.001
