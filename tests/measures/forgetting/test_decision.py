"""From curve to decision: what is claimed, what is protected, and when nothing is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import forgetting_curve, forgetting_decision
from remnant.measures.forgetting.decay import fit_decay
from remnant.measures.forgetting.safe_after import SafeAfter, protect_last

LAGS = np.array([0.0, 25, 50, 100, 200, 400])


def curve(*, lags=LAGS, start=3.0, scale=60.0, trials=8, seed=0):
    rng = np.random.default_rng(seed)
    shift = start * np.exp(-np.asarray(lags) / scale)[:, None, None]
    shape = (len(lags), trials, 100)
    return forgetting_curve(
        seen_scores=shift + rng.normal(size=shape),
        unseen_scores=rng.normal(size=shape),
        lags=lags,
        success="auc",
        rng=rng,
        draws=60,
    )


def safe(lag):
    return SafeAfter(lag=lag, reason="", limit=0.6, confidence=0.95, tested=2)


@pytest.mark.parametrize(
    ("lag", "steps", "examples"), [(200.0, 200, 3200), (2.5, 3, 48), (0.0, 0, 0), (1.0, 1, 16)]
)
def test_the_last_examples_are_those_with_a_smaller_lag(lag, steps, examples):
    found = protect_last(safe(lag), batch=16)
    assert (found.steps, found.examples) == (steps, examples)
    lags_left_out = np.arange(1000)[found.steps :]
    assert lags_left_out.min() >= lag
    assert (found.limit, found.confidence) == (0.6, 0.95)


def test_where_no_lag_holds_nothing_is_left_out():
    found = protect_last(safe(None), batch=16)
    assert (found.steps, found.examples) == (None, None)
    assert "every example that was ever used counts as exposed" in found.reason


@pytest.mark.parametrize("batch", [0, -3, 2.5, True, None])
def test_a_batch_that_is_none_is_refused(batch):
    with pytest.raises(InvalidInput, match="not a whole number from 1"):
        curve().protect_last(0.6, batch=batch)


def test_the_curve_protects_what_its_own_claim_leaves():
    found, claim = curve().protect_last(0.6, batch=64), curve().safe_after(0.6)
    assert found.steps == claim.lag == 200
    stricter = curve().protect_last(0.6, batch=64, confidence=0.999)
    assert stricter.steps is None or stricter.steps >= found.steps


def test_a_decision_holds_all_its_parts():
    found = forgetting_decision(curve(), 0.6, batch=64)
    assert found.safe.lag == 200
    assert found.protect.examples == 12800
    assert found.no_decay is None
    assert found.decay.half_life_low < found.decay.half_life < found.decay.half_life_high
    assert found.floor.low <= found.decay.floor <= found.floor.high
    assert found.floor.value == pytest.approx(found.decay.floor)
    assert not found.reaches.beyond
    assert found.reaches.low <= found.reaches.value <= found.reaches.high


def test_a_limit_beyond_the_last_lag_is_a_forecast():
    found = forgetting_decision(curve(scale=400.0, trials=4), 0.62, batch=64)
    assert found.safe.lag is None
    assert found.protect.examples is None
    assert found.reaches.beyond


def test_too_few_lags_have_a_claim_but_no_law():
    found = forgetting_decision(curve(lags=[0.0, 100, 400]), 0.6, batch=64)
    assert found.safe.lag == 400
    assert (found.decay, found.floor, found.reaches) == (None, None, None)
    assert "3 lags after planting are too few" in found.no_decay


def test_a_curve_that_rises_first_has_a_claim_but_no_law():
    rng = np.random.default_rng(5)
    shift = np.array([1.0, 2.5, 3.0, 2.0, 0.3, 0.0])[:, None, None]
    rising = forgetting_curve(
        seen_scores=shift + rng.normal(size=(6, 8, 100)),
        unseen_scores=rng.normal(size=(6, 8, 100)),
        lags=LAGS,
        success="auc",
        rng=rng,
        draws=60,
    )
    found = forgetting_decision(rising, 0.62, batch=64)
    assert found.safe.lag is not None
    assert (found.decay, found.floor, found.reaches) == (None, None, None)
    assert found.no_decay.startswith("Success rises first: it is 0.")


def test_a_ruler_that_never_showed_anything_calls_nothing_safe():
    blind = curve(start=0.0)
    assert blind.safe_after(0.6, control=False).lag is not None
    assert blind.safe_after(0.6).lag is None
    found = forgetting_decision(blind, 0.6, batch=64)
    assert found.safe.lag is None
    assert "did not find the canaries" in found.safe.reason
    assert found.protect.steps is None


def test_the_floors_interval_covers_at_its_rate():
    """Models with a level of their own, ten trials, 200 audits."""
    rng = np.random.default_rng(0)
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    hits = []
    for _ in range(200):
        truth = 0.55 + 0.4 * np.exp(-lags / 120)
        rates = truth[:, None] + 0.02 * rng.normal(size=(1, 10)) + 0.03 * rng.normal(size=(7, 10))
        floor = fit_decay(lags=lags, per_trial=rates, law="exponential").value_at(math.inf)
        hits.append(floor.low <= 0.55 <= floor.high)
    assert np.mean(hits) > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200)
