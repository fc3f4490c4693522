import dataclasses

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import forgetting_curve, forgetting_verdict


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(0)
    shift = np.array([3.0, 0.0])[:, None, None]
    return forgetting_curve(
        seen_scores=shift + rng.normal(size=(2, 4, 30)),
        unseen_scores=rng.normal(size=(2, 4, 30)),
        lags=[0, 500],
        success="auc",
        rng=rng,
        draws=20,
    )


def ending(curve, low, value, high, **changes):
    ends = {
        name: np.array([0.99, end])
        for name, end in (("low", low), ("value", value), ("high", high))
    }
    return dataclasses.replace(curve, **ends, **changes)


@pytest.mark.parametrize(
    ("low", "value", "high", "outcome"),
    [
        (0.46, 0.50, 0.55, "PASS"),
        (0.56, 0.60, 0.65, "FAIL"),
        (0.55, 0.60, 0.65, "INCONCLUSIVE"),
        (0.45, 0.50, 0.56, "INCONCLUSIVE"),
    ],
)
def test_only_the_last_lag_is_judged(curve, low, value, high, outcome):
    verdict = forgetting_verdict(ending(curve, low, value, high), 0.55)
    assert verdict.outcome == outcome
    assert (verdict.limit, verdict.lag) == (0.55, 500.0)
    assert f"auc is {value:.3f} (95% interval {low:.3f} to {high:.3f})" in verdict.sentence


@pytest.mark.parametrize(
    ("ends", "changes", "words"),
    [
        ((0.30, 0.50, 0.60), {}, "About 16 trials (here 4) would make it PASS if the value holds."),
        ((0.50, 0.60, 0.90), {}, "above the limit. About 16 trials (here 4) would most likely"),
        ((0.50, 0.60, 0.90), {}, "make it FAIL"),
        ((0.40, 0.55, 0.60), {}, "too near the limit"),
        ((0.30, 0.50, 0.60), {"trials": 1}, "About 120 canaries a side (here 30)"),
        ((0.30, 0.50, 0.60), {"trials": 1}, "run several trials as well"),
        ((0.30, 0.50, 0.60), {"fpr": 0.1, "success": "precision"}, "precision at FPR 0.1 is"),
    ],
)
def test_an_open_verdict_says_what_would_close_it(curve, ends, changes, words):
    verdict = forgetting_verdict(ending(curve, *ends, **changes), 0.55)
    assert verdict.outcome == "INCONCLUSIVE"
    assert words in verdict.sentence


@pytest.mark.parametrize("limit", [0.5, 0.4, 0.0, 1.0, "high", True])
def test_a_limit_has_to_lie_between_chance_and_one(curve, limit):
    with pytest.raises(InvalidInput, match=r"limit="):
        forgetting_verdict(curve, limit)


def test_chance_of_a_tpr_is_its_fpr(curve):
    tpr = ending(curve, 0.05, 0.1, 0.15, success="tpr", fpr=0.1, chance=0.1)
    assert forgetting_verdict(tpr, 0.2).outcome == "PASS"
    with pytest.raises(InvalidInput, match=r"chance, which is 0\.1 for tpr"):
        forgetting_verdict(tpr, 0.1)


def test_there_is_no_forgetting_before_planting(curve):
    with pytest.raises(InvalidInput, match="before planting"):
        forgetting_verdict(dataclasses.replace(curve, lags=np.array([-2.0, -1.0])), 0.6)


def test_a_null_rarely_fails(curve):
    """A wrong FAIL takes an interval wholly above a limit that is itself above the truth."""
    rng = np.random.default_rng(1)
    outcomes = []
    for _ in range(100):
        null = forgetting_curve(
            seen_scores=rng.normal(size=(1, 5, 40)),
            unseen_scores=rng.normal(size=(1, 5, 40)),
            lags=[10],
            rng=rng,
            draws=40,
        )
        outcomes.append(forgetting_verdict(null, 0.55).outcome)
    assert outcomes.count("FAIL") <= 5
