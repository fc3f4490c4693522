"""Decay laws: recovered exactly where the data follow one, intervals that cover, honest flags."""

from __future__ import annotations

import math

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


def test_where_nothing_decays_the_half_life_may_be_anything():
    rng = np.random.default_rng(0)
    flat = 0.5 + 0.02 * rng.normal(size=(8, 6))
    fit = fit_decay(lags=LAGS, per_trial=flat, law="exponential")
    assert fit.drop_low <= 0 <= fit.drop_high
    assert (fit.half_life_low, fit.half_life_high) == (0.0, math.inf)


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
