"""Exposure curves: their definition, their guarantees, and intervals that hold in simulation."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import exposure, exposure_curve, exposure_curve_verdict, null_exposure
from remnant.measures.exposure.curve import null_median


def made(gains=(4.0, 1.0, 0.0), trials=4, canaries=20, references=60, seed=0, **changes):
    rng = np.random.default_rng(seed)
    shift = np.asarray(gains)[:, None, None]
    asked = {
        "canary_losses": rng.normal(size=(len(gains), trials, canaries)) - shift,
        "reference_losses": rng.normal(size=(len(gains), trials, references)),
        "lags": np.arange(len(gains)) * 10,
        "draws": 40,
        "rng": np.random.default_rng(1),
    }
    return asked | changes


@given(seed=st.integers(0, 10**6), coarse=st.booleans())
@settings(max_examples=30)
def test_the_value_is_the_mean_of_each_trials_exposures(seed, coarse):
    asked = made(seed=seed, trials=2)
    if coarse:  # with many ties
        for side in ("canary_losses", "reference_losses"):
            asked[side] = asked[side].round()
    curve = exposure_curve(**asked)
    for lag in range(3):
        for trial in range(2):
            alone = exposure(
                canary_losses=asked["canary_losses"][lag, trial],
                reference_losses=asked["reference_losses"][lag, trial],
            )
            assert curve.per_trial[lag, trial] == pytest.approx(alone.bits.mean(), abs=1e-12)
    np.testing.assert_allclose(curve.value, curve.per_trial.mean(axis=1))
    assert np.all((curve.low >= 0) & (curve.low <= curve.value))
    assert np.all((curve.value <= curve.high + 1e-12) & (curve.high <= curve.ceiling + 1e-12))
    assert (curve.trials, curve.n_canaries, curve.n_references, curve.draws) == (2, 20, 60, 40)
    assert curve.ceiling == pytest.approx(math.log2(61))


def test_the_null_is_the_mean_over_all_ranks():
    for n in (1, 7, 100):
        by_hand = np.mean(np.log2((n + 1) / (np.arange(n + 1) + 1.0)))
        assert null_exposure(n) == pytest.approx(by_hand, abs=1e-12)
    assert null_exposure(10**6) == pytest.approx(1 / math.log(2), abs=1e-4)
    many = exposure_curve(**made(gains=(0.0,), trials=400, draws=20))
    assert many.null == null_exposure(60)
    assert abs(many.value[0] - many.null) < 5 * many.per_trial.std() / 20


def test_the_median_is_over_the_canaries_of_all_trials():
    asked = made(trials=3)
    curve = exposure_curve(**asked)
    for lag in range(3):
        each = [
            exposure(canary_losses=canaries, reference_losses=references).bits
            for canaries, references in zip(
                asked["canary_losses"][lag], asked["reference_losses"][lag], strict=True
            )
        ]
        assert curve.median[lag] == pytest.approx(np.median(each), abs=1e-12)
    for n in (1, 8, 499):
        by_hand = np.median(np.log2((n + 1) / (np.arange(n + 1) + 1.0)))
        assert null_median(n) == pytest.approx(by_hand, abs=1e-12)
    many = exposure_curve(**made(gains=(0.0,), trials=400, draws=20))
    assert many.median[0] == pytest.approx(null_median(60), abs=0.05)


def test_what_may_not_matter_does_not():
    asked = made()
    curve = exposure_curve(**asked)
    again = exposure_curve(**asked | {"rng": np.random.default_rng(1)})
    np.testing.assert_array_equal(curve.low, again.low)
    for side in ("canary_losses", "reference_losses"):
        shuffled = np.random.default_rng(5).permuted(asked[side], axis=2)
        other = exposure_curve(**asked | {side: shuffled})
        np.testing.assert_allclose(curve.value, other.value)
    stretched = {
        side: np.stack([np.exp(asked[side][0]), asked[side][1] ** 3, asked[side][2] * 7 - 2])
        for side in ("canary_losses", "reference_losses")
    }
    other = exposure_curve(**asked | stretched | {"rng": np.random.default_rng(1)})
    for name in ("value", "low", "high", "saturated"):
        np.testing.assert_array_equal(getattr(curve, name), getattr(other, name))


def test_a_model_that_scores_everything_alike_exposes_nothing():
    asked = made()
    alike = {side: np.zeros_like(asked[side]) for side in ("canary_losses", "reference_losses")}
    curve = exposure_curve(**asked | alike)
    assert curve.value.tolist() == curve.low.tolist() == [0.0] * 3
    assert curve.saturated.tolist() == [0.0] * 3
    assert np.all(curve.high > 0)


@pytest.mark.parametrize("trials", [1, 2, 8])
def test_canaries_that_all_rank_first_keep_an_honest_width(trials):
    curve = exposure_curve(**made(gains=(100.0,), trials=trials))
    assert curve.value[0] == pytest.approx(curve.ceiling)
    assert curve.saturated[0] == 1.0
    assert 0.01 < curve.high[0] - curve.low[0] < 3


def test_all_lags_share_the_draw():
    asked = made(gains=(1.0, 1.0))
    for side in ("canary_losses", "reference_losses"):
        asked[side][1] = asked[side][0]
    curve = exposure_curve(**asked)
    assert curve.low[0] == curve.low[1]
    assert curve.high[0] == curve.high[1]


def test_blocks_of_draws_bound_the_memory_and_nothing_else(monkeypatch):
    module = sys.modules["remnant.measures.exposure.curve"]  # the package's name is the function
    monkeypatch.setattr(module, "BLOCK", 80 * 7)
    curve = exposure_curve(**made())
    assert np.all((curve.low <= curve.value) & (curve.value <= curve.high))


def test_one_trial_says_what_it_cannot_carry():
    assert "no between-model error" in exposure_curve(**made(trials=1)).method
    assert "Student t over 4 trials" in exposure_curve(**made()).method


def truth(gain, effect, references):
    """The mean of what ``references`` show, over models N(gain, effect²) and their canaries."""
    models, weights = np.polynomial.hermite_e.hermegauss(40)
    nodes, chances = np.polynomial.hermite_e.hermegauss(100)
    under = np.arange(references + 1)
    bits = np.log2((references + 1) / (under + 1))
    found = [
        (chances / chances.sum())
        @ stats.binom.pmf(under, references, stats.norm.cdf(nodes - gain - effect * z)[:, None])
        @ bits
        for z in models
    ]
    return float(np.dot(weights / weights.sum(), found))


@pytest.mark.parametrize(("trials", "effect"), [(1, 0.0), (3, 0.5), (10, 0.5)])
def test_curves_cover(trials, effect, covers):
    """No leak, a leak and a strong one as three lags of one curve, with models that differ."""
    gains = np.array([0.0, 1.5, 4.0])
    expected = np.array([truth(gain, effect, 100) for gain in gains])
    if effect == 0.0:
        assert expected[0] == pytest.approx(null_exposure(100), abs=1e-3)
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(400):
        models = effect * rng.normal(size=(trials, 1))
        canaries = rng.normal(size=(trials, 24)) - models
        references = rng.normal(size=(1, trials, 100)).repeat(3, axis=0)
        curve = exposure_curve(
            canary_losses=canaries - gains[:, None, None],
            reference_losses=references,
            lags=[0, 1, 2],
            rng=rng,
            draws=40,
        )
        inside.append((curve.low <= expected) & (expected <= curve.high))
    for lag in range(3):
        assert covers(np.array(inside)[:, lag]), np.mean(inside, axis=0)


def test_steps_to_is_the_last_crossing():
    curve = dataclasses.replace(
        exposure_curve(**made(gains=(4, 2, 1, 0))), value=np.array([6.0, 2.0, 4.0, 1.0])
    )
    assert curve.steps_to(3.0) == pytest.approx(20 + 10 / 3)
    assert curve.steps_to(7.0) == 0.0
    assert curve.steps_to(0.5) is None
    for bits in (0.0, -1.0, math.nan, math.inf, True, "2"):
        with pytest.raises(InvalidInput, match="bits="):
            curve.steps_to(bits)
    with pytest.raises(NotEnoughEvidence, match="before planting"):
        dataclasses.replace(curve, lags=curve.lags - 100).steps_to(2.0)


def test_safe_after_is_tested_backward_in_bits():
    curve = exposure_curve(**made(gains=(5.0, 5.0, 0.0, 0.0), trials=8, canaries=40))
    assert curve.safe_after(3.0).lag == 20
    assert curve.safe_after(5.5).lag == 20
    assert "at the ceiling" in curve.safe_after(3.0).reason
    assert "mean exposure in bits" in curve.safe_after(3.0, control=False).reason
    with pytest.raises(InvalidInput, match=r"not above chance, which is 1\.\d+ for mean exposure"):
        curve.safe_after(curve.null)
    with pytest.raises(InvalidInput, match=r"limit=6\.0 is not under 5\.931"):
        curve.safe_after(6.0)
    with pytest.raises(InvalidInput, match="limit='2' is not a number"):
        curve.safe_after("2")
    with pytest.raises(InvalidInput, match=r"confidence=0\.4 is under 0\.8"):
        curve.safe_after(3.0, confidence=0.4)


def test_false_claims_of_safety_are_as_rare_as_said():
    """Eight trials whose models differ; the limit a hair under the true mean of the second lag."""
    audits, gains, effect = 300, np.array([2.0, 1.0, 0.0]), 0.3
    limit = truth(1.0, effect, 50) - 0.01
    rng, false, claims = np.random.default_rng(0), 0, 0
    for _ in range(audits):
        models = effect * rng.normal(size=(8, 1))
        curve = exposure_curve(
            canary_losses=rng.normal(size=(3, 8, 20)) - models - gains[:, None, None],
            reference_losses=rng.normal(size=(3, 8, 50)),
            lags=[0, 1, 2],
            rng=rng,
            draws=20,
        )
        lag = curve.safe_after(limit).lag
        claims += lag is not None
        false += lag is not None and lag < 2
    assert claims > audits / 4
    assert stats.binomtest(false, audits, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"canary_losses": np.full((3, 4, 2), np.nan)}, "canary_losses holds 24 value"),
        ({"reference_losses": np.zeros((3, 4))}, r"reference_losses has shape \(3, 4\)"),
        ({"reference_losses": np.zeros((3, 5, 9))}, "4 trials, reference_losses 3 and 5"),
        ({"lags": [0, 10]}, "lags has 2 entries for 3 lags of losses"),
        ({"lags": [0, 20, 10]}, "lags are not strictly increasing"),
        ({"confidence": 1.0}, "confidence=1.0 is not between"),
        ({"rng": 3}, "rng=3 is not a numpy"),
        ({"draws": 5}, "draws=5 is not"),
        ({"lags": [2, 1, 0], "draws": 1}, "strictly increasing.*draws=1"),
    ],
)
def test_bad_input_is_named_all_at_once(changes, words):
    with pytest.raises(InvalidInput, match=words):
        exposure_curve(**made(**changes))


@pytest.mark.parametrize(
    ("gains", "outcome", "words"),
    [
        ((4.0, 2.0, 0.0), "PASS", "mean exposure is"),
        ((4.0, 3.0, 3.0), "FAIL", "above the limit of 3 bits"),
        ((4.0, 2.0, 0.9), "INCONCLUSIVE", "trainings (here 8)"),
        ((0.0, 0.0, 0.0), "INCONCLUSIVE", "did not find the canaries"),
    ],
)
def test_the_verdict_is_about_the_last_lag(gains, outcome, words):
    curve = exposure_curve(**made(gains=gains, trials=8, canaries=60))
    found = curve.verdict(3.0)
    assert (found.outcome, found.lag) == (outcome, 20.0)
    assert words in found.sentence
    assert exposure_curve_verdict(curve, 3.0) == found


def test_more_canaries_at_the_ceiling_than_chance_allows_keep_a_pass_back():
    curve = exposure_curve(**made(gains=(4.0, 2.0, 0.0), trials=8, canaries=60))
    for share, outcome in ((0.2, "INCONCLUSIVE"), (0.025, "PASS")):
        shown = dataclasses.replace(curve, saturated=np.array([1.0, 0.2, share]))
        assert shown.verdict(3.0).outcome == outcome
    beyond = dataclasses.replace(curve, saturated=np.array([1.0, 0.2, 0.2])).verdict(3.0)
    assert "20.0% of the canaries are cheaper" in beyond.sentence


def test_a_limit_that_nothing_can_be_held_against_is_refused():
    curve = exposure_curve(**made())
    for limit, words in ((1.0, "not above chance"), (9.0, "is not under")):
        with pytest.raises(InvalidInput, match=words):
            exposure_curve_verdict(curve, limit)
    with pytest.raises(InvalidInput, match="before planting"):
        exposure_curve_verdict(dataclasses.replace(curve, lags=curve.lags - 50), 2.0)


def test_chance_alone_seldom_looks_saturated():
    """Canaries and references drawn alike: of 400 audits about one in a hundred at most."""
    rng = np.random.default_rng(0)
    curve = exposure_curve(**made())
    wrong = 0
    for _ in range(400):
        losses = rng.random((4, 80))
        share = np.mean([(row[:20] < row[20:].min()).mean() for row in losses])
        shown = dataclasses.replace(curve, saturated=np.array([0.0, 0.0, share]))
        wrong += shown.more_saturated_than_chance()
    assert stats.binomtest(wrong, 400, 0.01, alternative="greater").pvalue > 0.001


def attackers(*gains, **changes):
    """A curve of one attacker and those of others, by name, on models alike."""
    curves = [
        exposure_curve(**made(gains=gain, trials=8, canaries=60, **changes)) for gain in gains
    ]
    return curves[0], dict(zip(("an ally", "a rival"), curves[1:], strict=False))


def test_a_pass_needs_the_bound_of_every_attacker():
    own, others = attackers((4.0, 2.0, 0.0), (4.0, 0.0, 0.0), (4.0, 2.0, 0.9))
    found = own.verdict(3.0, attacker="somebody", others={"an ally": others["an ally"]})
    assert found.outcome == "PASS"
    assert "mean exposure to somebody is" in found.sentence
    assert "mean exposure to somebody is at most" in found.claim
    assert "The same holds for an ally (at most 1." in found.claim
    found = own.verdict(3.0, others=others)
    assert found.outcome == "INCONCLUSIVE"
    assert "not shown to be within the limit of 3 for a rival (at most " in found.claim
    loud, others = attackers((4.0, 3.0, 3.0), (4.0, 0.0, 0.0))
    assert loud.verdict(3.0, others=others) == loud.verdict(3.0), "FAIL is about one attacker"


def test_a_lag_is_safe_only_for_every_attacker():
    own, others = attackers((5.0, 0.0, 0.0), (5.0, 5.0, 0.0), (5.0, 0.0, 3.0), control_at_zero=True)
    assert own.safe_after(3.0).lag == 10
    assert own.safe_after(3.0, others={"an ally": others["an ally"]}).lag == 20
    found = own.safe_after(3.0, others=others)
    assert found.lag is None
    assert "for another attacker of this run, above 3" in found.reason


def test_bounds_of_other_attackers_allow_for_ties_and_the_ceiling():
    own, others = attackers((4.0, 2.0, 0.0), (4.0, 2.0, 0.0))
    assert own.verdict(3.0, others=others).outcome == "PASS"
    first = dataclasses.replace(others["an ally"], saturated=np.array([1.0, 0.2, 0.2]))
    assert first.cautious_upper(0.95)[2] == first.ceiling
    assert own.verdict(3.0, others={"an ally": first}).outcome == "INCONCLUSIVE"
    same = exposure_curve(
        **made(trials=8, canary_losses=np.ones((3, 8, 20)), reference_losses=np.ones((3, 8, 60)))
    )
    assert np.all(same.evidence.upper(0.95) < 1.0), "ties count against the canary"
    assert np.all(same.cautious_upper(0.95) > 5.0)
    assert own.verdict(3.0, others={"an ally": same}).outcome == "INCONCLUSIVE"


def test_curves_of_other_lags_are_not_compared():
    own, others = attackers((4.0, 2.0, 0.0), (4.0, 2.0, 0.0))
    later = {"an ally": dataclasses.replace(others["an ally"], lags=own.lags + 1)}
    for judged in (own.verdict, own.safe_after):
        with pytest.raises(InvalidInput, match=r"'an ally'.* has other lags"):
            judged(3.0, others=later)


def test_false_passes_against_one_of_several_attackers_are_as_rare_as_said():
    """The named attacker sees nothing at the end; another one is a hair above the limit."""
    audits, effect = 200, 0.3
    limit = truth(1.0, effect, 50) - 0.01
    rng, passed, alone = np.random.default_rng(0), 0, 0
    for _ in range(audits):
        models, references = effect * rng.normal(size=(8, 1)), rng.normal(size=(2, 8, 50))
        noise = rng.normal(size=(2, 8, 20)) - models
        own, other = (
            exposure_curve(
                canary_losses=noise - np.array([3.0, gain])[:, None, None],
                reference_losses=references,
                lags=[0, 1],
                rng=rng,
                draws=20,
                control_at_zero=True,
            )
            for gain in (0.0, 1.0)
        )
        alone += own.verdict(limit).outcome == "PASS"
        passed += own.verdict(limit, others={"a rival": other}).outcome == "PASS"
    assert alone > audits / 2
    assert stats.binomtest(passed, audits, 0.05, alternative="greater").pvalue > 0.001
