"""Differences of paired curves: definition, symmetry, coverage, refusals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import forgetting_curve
from remnant.measures.forgetting.curve_difference import curve_difference


def curve(rng, shift, *, trials=8, lags=(0, 10, 20), success="auc", start=None, canaries=40):
    """A curve of normal scores; ``start`` is what a trial has in common with its pair."""
    start = np.zeros(trials) if start is None else start
    size = (len(lags), trials, canaries)
    return forgetting_curve(
        seen_scores=rng.normal(size=size) + shift + start[:, None],
        unseen_scores=rng.normal(size=size),
        lags=lags,
        success=success,
        rng=rng,
        draws=20,
    )


def test_its_interval_is_the_paired_t_tests_of_scipy():
    rng = np.random.default_rng(0)
    one, base = curve(rng, 1.0), curve(rng, 0.5)
    found = curve_difference(one, base)
    gaps = (one.per_trial - base.per_trial)[1:].mean(axis=0)
    expected = stats.ttest_1samp(gaps, 0.0)
    ends = expected.confidence_interval(0.95)
    assert found.mean == pytest.approx(gaps.mean())
    assert (found.mean_low, found.mean_high) == pytest.approx((ends.low, ends.high))
    np.testing.assert_allclose(found.value, one.value - base.value)


def test_exchanging_the_curves_changes_the_sign():
    rng = np.random.default_rng(1)
    one, base = curve(rng, 1.0), curve(rng, 0.5)
    there, back = curve_difference(one, base), curve_difference(base, one)
    assert there.mean == -back.mean
    assert (there.mean_low, there.p_value) == (-back.mean_high, back.p_value)
    same = curve_difference(one, one)
    assert (same.mean, same.p_value) == (0.0, 1.0)


@dataclass(frozen=True)
class Trials:
    """What a difference takes of a curve."""

    per_trial: np.ndarray
    lags: np.ndarray = field(default_factory=lambda: np.array([0.0, 10.0]))

    @property
    def trials(self):
        return self.per_trial.shape[1]


@dataclass(frozen=True)
class Bits(Trials):
    ceiling: float = 10.0


@pytest.mark.parametrize("trials", [2, 3, 5, 8])
@pytest.mark.parametrize("gap", [0.25, -0.5])
def test_differences_that_are_all_equal_have_a_width_and_a_sign_tests_p_value(trials, gap):
    base = Trials(np.full((2, trials), 0.5))
    found = curve_difference(Trials(base.per_trial + gap), base)
    assert found.mean == gap
    assert found.p_value == (2.0 ** (1 - trials) if trials >= 6 else None)
    unseen = 1.0 - 0.025 ** (1.0 / trials)
    assert found.mean_low == pytest.approx(gap - unseen * (gap + 1.0))
    assert found.mean_high == pytest.approx(gap + unseen * (1.0 - gap))
    np.testing.assert_allclose(found.low, found.mean_low)
    assert "so many trials exclude" in found.method
    same = curve_difference(base, base)
    assert same.p_value == (1.0 if trials >= 6 else None)
    assert same.mean_low < 0.0 < same.mean_high


def test_equal_differences_of_bits_reach_as_far_as_the_references_show():
    base = Bits(np.full((2, 6), 2.0))
    rates, bits = (
        curve_difference(kind(base.per_trial + 0.1 + 0.2), kind(base.per_trial))
        for kind in (Trials, Bits)
    )
    assert bits.mean_high - bits.mean_low == pytest.approx(20 * (1.0 - 0.025 ** (1 / 6)))
    assert bits.mean_high > rates.mean_high
    assert bits.p_value == rates.p_value == 2.0**-5, "rounding is no spread"


LAWS = {
    "normal": lambda rng, size: rng.normal(0.7, 0.05, size),
    "exponential": lambda rng, size: 0.5 + rng.exponential(0.1, size),
    "lognormal": lambda rng, size: 0.5 + 0.05 * rng.lognormal(0.0, 1.0, size),
    "one in ten": lambda rng, size: np.where(rng.random(size) < 0.1, 1.0, 0.5),
    "whole numbers": lambda rng, size: rng.poisson(1.0, size) / 10.0,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("trials", [3, 5, 8])
def test_curves_of_one_law_seldom_differ_significantly(law, trials):
    rng, runs = np.random.default_rng(trials), 1000
    found = [
        curve_difference(*(Trials(LAWS[law](rng, (2, trials))) for _ in range(2)))
        for _ in range(runs)
    ]
    if trials < 6:
        assert all(one.p_value is None for one in found)
        return
    wrong = sum(one.p_value <= 0.05 for one in found)
    assert stats.binom.sf(wrong - 1, runs, 0.05) > 1e-3, wrong / runs
    held = sum(one.mean_low <= 0.0 <= one.mean_high for one in found)
    assert stats.binom.cdf(held, runs, 0.95) > 1e-3, held / runs


def test_only_common_lags_are_compared():
    rng = np.random.default_rng(2)
    found = curve_difference(curve(rng, 1.0), curve(rng, 1.0, lags=(0, 20, 40)))
    assert found.lags.tolist() == [0.0, 20.0]


@pytest.mark.parametrize("trials", [3, 8])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_its_interval_covers_with_models_that_differ(trials, shift):
    """Pairs share a model-level effect; the truth is the difference of the population's AUCs."""
    rng = np.random.default_rng([trials, int(10 * shift)])
    audits, hits = 400, 0
    spread, own = 0.5, 0.2
    effect = np.sqrt(2.0 + spread**2 + own**2)
    truth = stats.norm.cdf((0.3 + shift) / effect) - stats.norm.cdf(0.3 / effect)
    for _ in range(audits):
        common = rng.normal(scale=spread, size=trials)
        pair = [
            curve(
                rng, at, trials=trials, start=common + rng.normal(scale=own, size=trials), lags=(5,)
            )
            for at in (0.3 + shift, 0.3)
        ]
        found = curve_difference(*pair)
        hits += found.mean_low <= truth <= found.mean_high
    assert stats.binom.cdf(hits, audits, 0.95) > 1e-3, hits / audits


def test_curves_that_do_not_compare_are_refused():
    rng = np.random.default_rng(3)
    with pytest.raises(InvalidInput, match=r"success auc and accuracy.*trials 8 and 4"):
        curve_difference(curve(rng, 1.0), curve(rng, 1.0, trials=4, success="accuracy"))
    with pytest.raises(InvalidInput, match="no lag in common"):
        curve_difference(curve(rng, 1.0), curve(rng, 1.0, lags=(1, 2)))
    with pytest.raises(NotEnoughEvidence, match="one trial"):
        curve_difference(curve(rng, 1.0, trials=1), curve(rng, 1.0, trials=1))
    with pytest.raises(InvalidInput, match="confidence"):
        curve_difference(curve(rng, 1.0), curve(rng, 1.0), confidence=2)
