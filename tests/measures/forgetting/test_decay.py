"""Decay laws: recovered exactly where the data follow one, intervals that cover, honest flags."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.forgetting.decay import fit_decay

LAGS = np.array([-50.0, 0, 25, 50, 100, 200, 400, 800])


def exponential(lags, *, start=0.95, floor=0.55, scale=120.0):
    return floor + (start - floor) * np.exp(-np.maximum(lags, 0) / scale)


def power(lags, *, start=0.95, floor=0.55, scale=60.0, shape=1.0):
    return floor + (start - floor) * (1 + np.maximum(lags, 0) / scale) ** -shape


@pytest.mark.parametrize("scale", [20.0, 120.0, 700.0])
def test_an_exponential_is_found_exactly(scale):
    fit = fit_decay(lags=LAGS, per_trial=exponential(LAGS, scale=scale)[:, None])
    assert fit.law == "exponential"
    assert fit.half_life == pytest.approx(scale * math.log(2), rel=1e-3)
    assert (fit.start, fit.floor) == pytest.approx((0.95, 0.55), abs=1e-3)
    assert fit.error < 1e-5


def test_a_power_law_is_found_and_chosen():
    fit = fit_decay(lags=LAGS, per_trial=power(LAGS)[:, None])
    assert fit.law == "power"
    assert fit.half_life == pytest.approx(60.0, rel=0.02)
    assert fit.held_out_error["power"] < fit.held_out_error["exponential"]


def test_a_forecast_says_that_it_is_one():
    fit = fit_decay(lags=LAGS, per_trial=exponential(LAGS, scale=500.0)[:, None], law="exponential")
    near, far, never = fit.steps_to(0.75), fit.steps_to(0.6), fit.steps_to(0.5)
    assert near.value == pytest.approx(500 * math.log(2), rel=1e-3)
    assert not near.beyond
    assert far.value == pytest.approx(500 * math.log(8), rel=1e-3)
    assert far.beyond
    assert never.value is None
    assert never.beyond
    assert fit.value_at(100).value == pytest.approx(exponential(np.array(100.0), scale=500.0))
    assert fit.value_at(5000).beyond


def test_a_plateau_stays_within_what_success_can_be_and_within_its_interval():
    falling = 0.3 - np.outer(LAGS / LAGS[-1], [0.20, 0.25, 0.30, 0.28])
    plateau = fit_decay(lags=LAGS, per_trial=falling, law="exponential").value_at(math.inf)
    assert 0.0 <= plateau.low <= plateau.value <= plateau.high <= 1.0


def test_fewer_than_three_trials_have_no_interval():
    fit = fit_decay(lags=LAGS, per_trial=np.tile(exponential(LAGS)[:, None], 2))
    assert (fit.half_life_low, fit.half_life_high) == (0.0, math.inf)


def no_half_life(fit):
    assert (fit.half_life, fit.half_life_low, fit.half_life_high) == (None, None, None)
    return fit.no_half_life


def trials_of(mean, *, trials=8, noise=0.01, seed=0):
    return mean[:, None] + noise * np.random.default_rng(seed).normal(size=(mean.size, trials))


RISES = np.array([0.7, 0.82, 0.89, 0.91, 0.88, 0.81, 0.78, 0.76])


@pytest.mark.parametrize("trials", [1, 2, 3, 8])
def test_a_curve_that_rises_first_has_no_half_life_and_no_forecast(trials):
    lags = np.array([0.0, 1, 10, 50, 100, 300, 600, 900])
    fit = fit_decay(lags=lags, per_trial=trials_of(RISES, trials=trials))
    words = r"Success rises first: it is 0\.[67]\d\d at lag 0 and 0\.9\d\d at lag 50"
    assert re.match(words, no_half_life(fit))
    with pytest.raises(NotEnoughEvidence, match=words):
        fit.steps_to(0.8)


def test_a_rise_within_chance_is_none():
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    steps = trials_of(exponential(lags), noise=0.0)
    steps[1, 0] += 0.3
    assert fit_decay(lags=lags, per_trial=steps, law="exponential").half_life is not None, "one"
    alone = exponential(lags)[:, None].copy()
    alone[1] = alone[0] + 0.04
    assert fit_decay(lags=lags, per_trial=alone, law="exponential").half_life is not None
    alone[1] += 0.02
    assert "rises first" in no_half_life(fit_decay(lags=lags, per_trial=alone))


def test_a_curve_that_never_rises_is_rarely_called_rising():
    """Flat and falling curves of 8 trials: at most 5 % by the test's own level."""
    rng = np.random.default_rng(4)
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    called = []
    for floor in (0.95, 0.55):
        for _ in range(150):
            rates = exponential(lags, floor=floor)[:, None] + 0.03 * rng.normal(size=(7, 8))
            fit = fit_decay(lags=lags, per_trial=rates, law="exponential")
            called.append("rises" in (fit.misfit or ""))
    assert np.mean(called) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(called))


@pytest.mark.parametrize(
    ("mean", "name"),
    [
        (0.95 - 0.001 * LAGS.clip(0), "plateau"),
        (0.1 + 2.4 * np.exp(-LAGS.clip(0) / 8), "start"),
    ],
)
def test_a_law_that_leaves_what_success_can_be_has_no_half_life(mean, name):
    keep = (LAGS != 0) | (name == "plateau")
    fit = fit_decay(lags=LAGS[keep], per_trial=trials_of(mean, noise=1e-4)[keep], law="exponential")
    words = f"The fitted law has its {name} at (-|2)"
    assert re.match(words, no_half_life(fit))
    with pytest.raises(NotEnoughEvidence, match=words):
        fit.steps_to(0.3)


def test_a_half_life_beyond_the_last_lag_is_none_and_its_forecast_is_marked():
    rates = trials_of(exponential(LAGS, scale=1600.0, floor=0.3), noise=1e-4)
    fit = fit_decay(lags=LAGS, per_trial=rates, law="exponential")
    assert no_half_life(fit) == "Half of the fall is not over at the last lag, 800."
    assert fit.misfit is None
    assert fit.steps_to(0.6).beyond
    assert fit.steps_to(0.6).value == pytest.approx(1600 * math.log(65 / 30), rel=0.01)


def test_a_fall_that_is_over_before_the_second_lag_has_no_half_life():
    lags = np.array([0.0, 50, 100, 200, 400, 800])
    rates = trials_of(exponential(lags, scale=5.0), noise=1e-4)
    fit = fit_decay(lags=lags, per_trial=rates, law="exponential")
    assert no_half_life(fit) == (
        "Most of the fall is over before the second lag, 50 after the first."
    )


def test_a_law_that_describes_the_curve_is_taken_before_one_that_does_not():
    """Of an exponential seen up to three fifths of its scale, a power law may fall for ever."""
    rng = np.random.default_rng(3)
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    laws = {"power": 0, "exponential": 0}
    for _ in range(20):
        rates = exponential(lags, scale=400.0)[:, None] + 0.03 * rng.normal(size=(lags.size, 8))
        fit = fit_decay(lags=lags, per_trial=rates)
        laws[fit.law] += 1
        better = min(fit.held_out_error, key=fit.held_out_error.get)
        if better != fit.law:
            other = fit_decay(lags=lags, per_trial=rates, law=better)
            assert other.misfit is not None or other.drop_low <= 0.0
            assert fit.misfit is None
            assert fit.drop_low > 0.0
    assert laws["exponential"] >= 15


@pytest.mark.parametrize(
    ("changes", "trials", "noise"),
    [
        ({}, 8, 0.03),
        ({"start": 0.99}, 8, 0.03),
        ({"start": 0.75, "floor": 0.5}, 8, 0.05),
        ({"scale": 400.0}, 8, 0.03),
        ({"floor": 0.5}, 3, 0.03),
    ],
)
def test_a_true_decay_is_rarely_refused_a_half_life(changes, trials, noise):
    rng = np.random.default_rng(2)
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    refused = []
    for _ in range(40):
        level = 0.02 * rng.normal(size=(1, trials))
        rates = exponential(lags, **changes)[:, None] + level
        rates += noise * rng.normal(size=rates.shape)
        refused.append(fit_decay(lags=lags, per_trial=rates.clip(0.0, 1.0)).half_life is None)
    assert np.mean(refused) <= 0.1


def test_where_nothing_decays_there_is_no_half_life():
    rng = np.random.default_rng(0)
    flat = 0.5 + 0.02 * rng.normal(size=(8, 6))
    fit = fit_decay(lags=LAGS, per_trial=flat, law="exponential")
    assert fit.drop_low <= 0 <= fit.drop_high
    assert no_half_life(fit) == "No fall is shown."


def test_intervals_cover_at_their_rate():
    """Models of half-lives of their own around the law's, ten trials, 200 audits."""
    rng = np.random.default_rng(0)
    lags = np.array([0.0, 20, 40, 80, 160, 320, 640])
    audits, hits = 200, []
    for _ in range(audits):
        level = 0.02 * rng.normal(size=(1, 10))
        noise = 0.03 * rng.normal(size=(lags.size, 10))
        rates = exponential(lags)[:, None] + level + noise
        fit = fit_decay(lags=lags, per_trial=rates, law="exponential")
        half, late = 120 * math.log(2), fit.value_at(1000)
        steps = fit.steps_to(0.7)
        crossing = 120 * math.log(0.4 / 0.15)
        hits.append(
            (
                fit.half_life_low <= half <= fit.half_life_high,
                steps.low <= crossing <= steps.high,
                fit.drop_low <= 0.4 <= fit.drop_high,
                late.low <= exponential(np.array(1000.0)) <= late.high,
            )
        )
    rates = np.mean(hits, axis=0)
    assert np.all(rates > 0.95 - 3 * math.sqrt(0.05 * 0.95 / audits)), rates


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"law": "linear"}, InvalidInput, "law='linear'"),
        ({"confidence": 1.0}, InvalidInput, "confidence=1.0"),
        ({"lags": LAGS - 300}, NotEnoughEvidence, "too few"),
    ],
)
def test_bad_input_is_named(changes, error, words):
    asked = {"lags": LAGS, "per_trial": exponential(LAGS)[:, None]} | changes
    with pytest.raises(error, match=words):
        fit_decay(**asked)


def test_bad_questions_are_named():
    fit = fit_decay(lags=LAGS, per_trial=exponential(LAGS)[:, None])
    with pytest.raises(InvalidInput, match="alpha=0"):
        fit.steps_to(0.0)
    with pytest.raises(InvalidInput, match="lag=-1"):
        fit.value_at(-1)
