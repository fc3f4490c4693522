"""How many canaries an audit needs: the power that was asked for is reached, and not by far."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant import canaries_needed, one_run_epsilon
from remnant.errors import InvalidInput
from remnant.measures.epsilon import gaussian_delta, gaussian_epsilon
from remnant.measures.epsilon.canaries_needed import SHARES, _at_least, _Audit, guessed


def share_caught(needed, canaries, guesses, rng):
    """How often audits of the assumed mechanism exceed the claim."""
    coins = rng.random((2000, canaries)) < 0.5
    scores = rng.normal(size=coins.shape) + needed.mu * coins
    ordered = np.take_along_axis(coins, np.argsort(scores, axis=1), axis=1)
    half = guesses // 2
    correct = ordered[:, canaries - half :].sum(axis=1) + (~ordered[:, :half]).sum(axis=1)
    counts, times = np.unique(correct, return_counts=True)
    caught = [
        one_run_epsilon(
            guesses=guesses,
            correct=int(count),
            canaries=canaries,
            delta=needed.delta,
            method=needed.method,
        ).value
        > needed.claimed_epsilon
        for count in counts
    ]
    return float(np.array(caught) @ times / times.sum())


@pytest.mark.parametrize(
    ("method", "claimed", "mu"),
    [
        *(("binomial", 1.0, 1.0), ("trade-off", 1.0, 1.5), ("gaussian", 2.0, 1.0)),
        *(("binomial", 1.0, 2.0), ("binomial", 1.0, 3.0), ("gaussian", 1.0, 2.0)),  # 16 to 40
    ],
)
def test_the_claim_is_caught_as_often_as_was_asked(method, claimed, mu):
    needed = canaries_needed(claimed_epsilon=claimed, mu=mu, delta=1e-5, method=method)
    rng = np.random.default_rng(0)
    error = (0.8 * 0.2 / 2000) ** 0.5
    assert share_caught(needed, needed.canaries, needed.guesses, rng) > 0.8 - 3 * error
    half = needed.guesses // 2 - needed.guesses // 2 % 2
    assert share_caught(needed, needed.canaries // 2, half, rng) < 0.7


@pytest.mark.parametrize(
    ("canaries", "guesses", "fewest", "mu"),
    [
        *((30, 16, 15, 2.0), (30, 30, 25, 1.5), (31, 30, 24, 1.5), (100, 20, 19, 1.5)),
        *((16, 2, 2, 1.0), (18, 16, 13, 1.0), (60, 40, 30, 0.5)),
    ],
)
def test_the_probability_of_enough_correct_guesses_is_that_of_simulated_audits(
    canaries, guesses, fewest, mu
):
    rng = np.random.default_rng(canaries + guesses)
    draws, half = 40_000, guesses // 2
    coins = rng.random((draws, canaries)) < 0.5
    scores = rng.normal(size=coins.shape) + mu * coins
    ordered = np.take_along_axis(coins, np.argsort(scores, axis=1), axis=1)
    correct = ordered[:, canaries - half :].sum(axis=1) + (~ordered[:, :half]).sum(axis=1)
    simulated = float(np.mean(correct >= fewest))
    exact = _at_least(fewest, canaries=canaries, guesses=guesses, mu=mu)
    assert exact == pytest.approx(simulated, abs=4 * (0.25 / draws) ** 0.5)


@pytest.mark.parametrize(
    ("canaries", "guesses"), [(2, 2), (16, 16), (17, 16), (18, 14), (64, 64), (200, 190), (500, 20)]
)
def test_power_is_exact_where_the_scores_of_included_canaries_are_all_higher(canaries, guesses):
    half, included = guesses // 2, np.arange(canaries + 1)
    likely = stats.binom.pmf(included, canaries, 0.5)
    # Only guesses beyond the number of included canaries, or of the others, are wrong.
    right = np.minimum(included, half) + np.minimum(canaries - included, half)
    for fewest in range(max(0, guesses - 12), guesses + 1):
        found = _at_least(fewest, canaries=canaries, guesses=guesses, mu=40.0)
        assert found == pytest.approx(likely[right >= fewest].sum(), abs=1e-3)


def test_a_weaker_leak_or_a_larger_claim_needs_more():
    def size(**changed):
        return canaries_needed(
            **{"claimed_epsilon": 1.0, "mu": 1.5, "delta": 1e-5, **changed}
        ).canaries

    assert size(mu=1.2) > size() > size(mu=2.0)
    assert size(claimed_epsilon=1.5) > size() > size(claimed_epsilon=0.5)
    assert size(power=0.95) > size() > size(power=0.5)


def test_a_claim_that_is_true_is_never_refuted():
    needed = canaries_needed(claimed_epsilon=5.0, mu=1.0, delta=1e-5)
    assert needed.canaries is None
    assert needed.guesses is None
    assert "keeps the claim" in needed.reason
    assert needed.true_epsilon == pytest.approx(4.377, abs=1e-3)


def test_too_many_canaries_are_a_reason_and_no_number():
    needed = canaries_needed(claimed_epsilon=4.0, mu=1.0, delta=1e-5, at_most=1000)
    assert needed.canaries is None
    assert needed.reason == "1000 canaries are too few"


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-2])
def test_epsilon_of_a_gaussian_mechanism_inverts_delta(mu, delta):
    epsilon = gaussian_epsilon(mu=mu, delta=delta)
    if epsilon > 0:
        assert float(gaussian_delta(mu=mu, epsilon=epsilon)) == pytest.approx(delta, rel=1e-6)
    else:
        assert float(gaussian_delta(mu=mu, epsilon=0.0)) <= delta


def test_bad_input_is_one_sentence():
    with pytest.raises(InvalidInput, match=r"claimed_epsilon=0 is not .*; mu=-1 .*; delta=0"):
        canaries_needed(claimed_epsilon=0, mu=-1, delta=0)
    with pytest.raises(InvalidInput, match="mu=-1"):
        gaussian_epsilon(mu=-1, delta=0.1)


@pytest.mark.parametrize(
    ("claimed", "mu"), [(1.0, 2.0), (1.0, 2.5), (0.5, 2.0), (2.0, 3.0), (1.5, 2.2)]
)
def test_more_canaries_keep_the_power(claimed, mu):
    """Guesses are counted, so that power falls with some numbers of canaries."""
    needed = canaries_needed(claimed_epsilon=claimed, mu=mu, delta=1e-5)
    share = min(SHARES, key=lambda share: abs(guessed(needed.canaries, share) - needed.guesses))
    audit = _Audit(claimed, mu, 1e-5, 0.05, 0.8, "binomial")
    ahead = range(needed.canaries, needed.canaries + needed.canaries // 2)
    assert min(audit.power(more, share) for more in ahead) >= 0.8
