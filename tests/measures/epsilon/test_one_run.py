"""Epsilon from one training: the published algorithm, false alarms, power, properties."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from remnant import one_run_epsilon, one_run_from_scores
from remnant.errors import InvalidInput
from remnant.measures.epsilon import gaussian_epsilon
from remnant.measures.epsilon.one_run import ONE_RUN_METHODS, rejects

GUESSES = {"guesses": 200, "correct": 160, "canaries": 1000, "delta": 1e-5}


@functools.cache
def bound(m, r, v, delta, method, confidence=0.95):
    return one_run_epsilon(
        guesses=r, correct=v, canaries=m, delta=delta, method=method, confidence=confidence
    ).value


def published_p_value(m, r, v, epsilon, delta):
    """The p-value of Steinke, Nasr and Jagielski, summed term by term."""
    accuracy = 1 / (1 + math.exp(-epsilon))
    masses = [math.comb(r, k) * accuracy**k * (1 - accuracy) ** (r - k) for k in range(r + 1)]
    steepest, passed = 0.0, 0.0
    for i in range(1, v + 1):
        passed += masses[v - i]
        steepest = max(steepest, passed / i)
    return min(1.0, sum(masses[v:]) + 2 * m * delta * steepest)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("m", "r", "v"), [(1000, 200, 160), (50, 50, 45), (30, 10, 10)])
def test_the_binomial_bound_is_where_the_published_p_value_is_five_percent(m, r, v, delta):
    value = bound(m, r, v, delta, "binomial")
    assert published_p_value(m, r, v, value, delta) == pytest.approx(0.05, abs=1e-6)
    grid = np.linspace(0, value, 50)[:-1]
    assert all(published_p_value(m, r, v, epsilon, delta) < 0.05 for epsilon in grid)


def slow_reject(m, r, v, size_of, error):
    """The recursion with plain numbers, and all masses summed at the end."""
    right, wrong = error * v / m, error * (r - v) / m
    for correct in range(v - 1, -1, -1):
        least = max(size_of(min(right, 1.0)), wrong)
        mass = (least - wrong) * m / (r - correct)  # P[exactly ``correct``]
        right, wrong = right + correct * mass / m, least
    return right + wrong > r / m


@pytest.mark.parametrize("method", ["trade-off", "gaussian"])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_trade_off_bounds_equal_their_recursion(method, delta):
    def size_of(power, strength):
        if method == "gaussian":
            return float(special.ndtr(special.ndtri(power) - strength))
        ratio = math.exp(strength)
        return max((power - delta) / ratio, 1 - delta - ratio * (1 - power), 0.0)

    strengths = np.linspace(0.0, 3.0, 61)
    fast = rejects(60, 40, 33, strengths, delta=delta, error=0.05, method=method)
    slow = [slow_reject(60, 40, 33, lambda p, s=s: size_of(p, s), 0.05) for s in strengths]
    assert fast.tolist() == slow
    assert 0 < fast.sum() < len(strengths)
    assert np.all(np.diff(fast.astype(int)) <= 0)  # what rejects a weak leak accepts a strong one


@pytest.mark.parametrize("method", ["binomial", "trade-off"])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize(("m", "r"), [(200, 200), (200, 20), (10, 10)])
def test_randomised_response_is_accused_in_at_most_five_percent(method, epsilon, m, r):
    correct = np.arange(r + 1)
    accused = np.array([bound(m, r, int(v), 1e-5, method) > epsilon + 1e-8 for v in correct])
    assert accused @ stats.binom.pmf(correct, r, 1 / (1 + math.exp(-epsilon))) <= 0.05


def correct_guesses(rng, *, audits, m, r, mu):
    """How many coins are guessed right, half from each end, per audit of a Gaussian mechanism."""
    coins = rng.random((audits, m)) < 0.5
    scores = rng.normal(size=(audits, m)) + mu * coins
    ordered = np.take_along_axis(coins, np.argsort(scores, axis=1), axis=1)
    return ordered[:, m - r // 2 :].sum(axis=1) + (~ordered[:, : r // 2]).sum(axis=1)


@pytest.mark.parametrize("method", ONE_RUN_METHODS)
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("m", "r"), [(300, 300), (300, 40)])
def test_a_gaussian_mechanism_is_accused_in_at_most_five_percent(method, mu, m, r):
    delta = 1e-3
    correct = correct_guesses(np.random.default_rng(3), audits=1000, m=m, r=r, mu=mu)
    values = np.array([bound(m, r, int(v), delta, method) for v in correct])
    truth = gaussian_epsilon(mu=mu, delta=delta)
    assert np.sum(values > truth + 1e-8) <= stats.binom.isf(1e-4, 1000, 0.05)
    if mu == 2.0:
        assert np.mean(values > 0.5) > 0.99  # power


@pytest.mark.parametrize("method", ["binomial", "trade-off"])
def test_a_mechanism_that_uses_its_delta_is_accused_in_at_most_five_percent(method):
    """Randomised response that shows everything in one training out of many."""
    epsilon, delta, m, r = 1.0, 0.04, 40, 20
    correct = np.arange(r + 1)
    law = stats.binom.pmf(correct, r, 1 / (1 + math.exp(-epsilon))) * (1 - delta)
    law[-1] += delta
    accused = np.array([bound(m, r, int(v), delta, method) > epsilon for v in correct])
    assert accused @ law <= 0.05


def test_correlated_canaries_are_no_false_alarm():
    """A null training whose canaries share one shift, which independent counts would not allow."""
    rng = np.random.default_rng(4)
    accused = 0
    for _ in range(1000):
        coins = rng.random(100) < 0.5
        scores = 5.0 * rng.normal() + 0.1 * rng.normal(size=100)
        accused += one_run_from_scores(scores, coins, guesses=40, delta=1e-5).value > 0
    assert accused <= stats.binom.isf(1e-4, 1000, 0.05)


def test_the_gaussian_bound_is_the_highest_for_a_gaussian_mechanism():
    correct = int(
        np.median(correct_guesses(np.random.default_rng(5), audits=99, m=500, r=100, mu=1))
    )
    values = {method: bound(500, 100, correct, 1e-5, method) for method in ONE_RUN_METHODS}
    assert values["gaussian"] > 1.3 * values["binomial"] > 0.5
    assert values["trade-off"] == pytest.approx(values["binomial"], rel=0.05)


def test_the_trade_off_bound_is_higher_where_delta_is_large():
    assert bound(1000, 200, 160, 1e-3, "trade-off") > 1.5 * bound(1000, 200, 160, 1e-3, "binomial")


@pytest.mark.parametrize("method", ONE_RUN_METHODS)
@given(
    r=st.integers(1, 60),
    abstained=st.integers(0, 60),
    delta=st.sampled_from([1e-9, 1e-5, 1e-3, 0.1]),
    data=st.data(),
)
def test_properties(method, r, abstained, delta, data):
    v, m = data.draw(st.integers(0, r)), r + abstained
    value = bound(m, r, v, delta, method)
    assert 0.0 <= value < 60.0
    assert bound(m, r, min(v + 1, r), delta, method) >= value - 1e-8
    assert bound(m + 7, r, v, delta, method) <= value + 1e-8
    assert bound(m, r, v, delta * 2, method) <= value + 1e-8
    assert bound(m, r, v, delta, method, 0.99) <= value + 1e-8
    if v <= r / 2:
        assert value == 0.0
    if method != "gaussian" and 0 < v < r:
        assert value <= max(0.0, math.log(v / (r - v)))


def test_scores_are_guessed_from_both_ends():
    scores = np.array([0.1, 5.0, -3.0, 0.2, 4.0, -2.0])
    coins = np.array([True, True, False, False, False, False])
    result = one_run_from_scores(scores, coins, guesses=4, delta=0.0)
    assert (result.guesses, result.correct, result.canaries) == (4, 3, 6)
    assert one_run_from_scores(scores, coins.astype(int), guesses=4, delta=0.0) == result


@pytest.mark.parametrize("method", ONE_RUN_METHODS)
def test_scores_that_are_all_one_number_bound_epsilon_by_0(method):
    coins = np.repeat([False, True], 100)
    for guesses in (100, (20, 100, 200)):
        for seed in range(20):
            bound = one_run_from_scores(
                np.full(200, 0.7), coins, guesses=guesses, delta=1e-5, method=method, seed=seed
            )
            assert bound.value == 0.0
            assert bound.mu in (None, 0.0)


def test_ties_are_broken_at_random_whatever_the_order_of_the_canaries():
    rng = np.random.default_rng(8)
    accused = 0
    for seed in range(400):
        coins = np.sort(rng.random(200) < 0.5)  # those that were left out come first
        scores = rng.integers(0, 3, 200)
        accused += one_run_from_scores(scores, coins, guesses=100, delta=1e-5, seed=seed).value > 0
    assert accused <= stats.binom.isf(1e-4, 400, 0.05)


def test_the_same_seed_gives_the_same_guesses():
    coins = np.repeat([False, True], 50)
    scores = np.repeat([0.0, 1.0, 2.0, 1.0], 25)

    def correct(seed=0):
        return one_run_from_scores(scores, coins, guesses=60, delta=0.0, seed=seed).correct

    assert correct() == correct(0) == correct(np.random.default_rng(0))
    assert len({correct(seed) for seed in range(20)}) > 1
    with pytest.raises(InvalidInput, match="seed=-1 is no seed"):
        correct(-1)


def test_several_numbers_of_guesses_are_corrected():
    rng = np.random.default_rng(6)
    coins = rng.random(400) < 0.5
    scores = rng.normal(size=400) + 2 * coins
    several = one_run_from_scores(scores, coins, guesses=(20, 100, 400), delta=1e-5)
    corrected = [
        one_run_from_scores(scores, coins, guesses=r, delta=1e-5, confidence=1 - 0.05 / 3)
        for r in (20, 100, 400)
    ]
    assert several.value == max(result.value for result in corrected)
    assert several.confidence == 0.95


def test_the_best_of_several_numbers_raises_no_more_false_alarms():
    rng = np.random.default_rng(7)
    coins = rng.random((1000, 200)) < 0.5
    scores = rng.normal(size=(1000, 200))
    accused = 0
    for run_scores, run_coins in zip(scores, coins, strict=True):
        ordered = run_coins[np.argsort(run_scores)]
        accused += any(
            bound(
                200,
                r,
                int(ordered[-r // 2 :].sum() + (~ordered[: r // 2]).sum()),
                1e-5,
                "binomial",
                1 - 0.05 / 3,
            )
            > 0
            for r in (20, 60, 200)
        )
    assert accused <= stats.binom.isf(1e-4, 1000, 0.05)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"guesses": 1001}, "guesses=1001 is not between 1 and 1000"),
        ({"correct": 201}, "correct=201 is not between 0 and 200"),
        ({"canaries": 0}, "canaries=0 is not at least 1"),
        ({"correct": 1.0}, "correct=1.0 is not a whole number"),
        ({"delta": -1e-5}, "delta=-1e-05"),
        ({"confidence": 0.0}, "confidence=0.0"),
        ({"confidence": 0.4}, "confidence=0.4 is not from 0.5"),
        ({"method": "gdp"}, "method='gdp' is not one of binomial, trade-off, gaussian"),
        ({"method": "gaussian", "delta": 0.0}, "delta=0.0 is not between 0 and 1"),
    ],
)
def test_bad_counts_are_one_sentence(changed, message):
    with pytest.raises(InvalidInput, match=message):
        one_run_epsilon(**{**GUESSES, **changed})


@pytest.mark.parametrize(
    ("scores", "coins", "guesses", "message"),
    [
        ([1.0, 2.0], [True], 2, "one entry per canary"),
        ([1.0, math.nan], [True, False], 2, "NaN"),
        ([1.0, 2.0], [True, False], 3, "guesses=3 is not between 2 and 2"),
        ([1.0, 2.0, 3.0], [True, False, True], 3, "guesses=3 is odd"),
        ([1.0, 2.0], [1, 2], 2, "other than True and False"),
        ([1.0, 2.0], [True, False], (), "guesses is empty"),
        ([], [], 2, "one entry per canary"),
    ],
)
def test_bad_scores_are_one_sentence(scores, coins, guesses, message):
    with pytest.raises(InvalidInput, match=message):
        one_run_from_scores(scores, coins, guesses=guesses, delta=1e-5)
