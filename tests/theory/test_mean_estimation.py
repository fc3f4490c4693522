"""Closed forms of mean estimation against plain sums, their bound and simulation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.theory import (
    renyi_bound,
    renyi_divergence,
    renyi_divergence_of_seen,
    simulate_mean_estimation,
)

V, SIGMA = [1.0, -0.5], [[2.0, 0.3], [0.3, 0.5]]
LENGTH = float(np.array(V) @ np.linalg.inv(SIGMA) @ np.array(V))
RATES = st.floats(0.001, 0.999).filter(lambda eta: abs(eta - 0.5) > 1e-3)


@given(k=st.integers(1, 60), eta=RATES, alpha=st.floats(0.1, 50.0))
def test_divergence_is_that_of_the_two_normal_laws(k, eta, alpha):
    """The definition: step the mean and the variance of each twin, then the normal divergence."""
    rate = Fraction(eta)
    apart, variance = 4 * rate, Fraction(0)
    for _ in range(k):
        apart *= 1 - 2 * rate
        variance = (1 - 2 * rate) ** 2 * variance + 4 * rate**2
    expected = alpha / 2 * float(apart**2 / variance) * LENGTH
    found = renyi_divergence(k=k, eta=eta, alpha=alpha, v=V, sigma=SIGMA)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(k=st.integers(1, 10**6), eta=st.floats(1e-12, 1 - 1e-12), alpha=st.floats(0.1, 50.0))
def test_divergence_falls_and_stays_under_its_bound(k, eta, alpha):
    given_all = {"alpha": alpha, "v": V, "sigma": SIGMA}
    now = renyi_divergence(k=k, eta=eta, **given_all)
    assert now <= renyi_bound(k=k, **given_all) * (1 + 1e-12)
    assert renyi_divergence(k=k + 1, eta=eta, **given_all) <= now


def test_the_bound_is_met_as_the_rate_vanishes():
    found = renyi_divergence(k=7, eta=1e-13, alpha=2.0, v=V, sigma=SIGMA)
    assert found == pytest.approx(renyi_bound(k=7, alpha=2.0, v=V, sigma=SIGMA), rel=1e-11)


def test_a_rate_of_one_half_forgets_at_once():
    assert renyi_divergence(k=1, eta=0.5, alpha=2.0, v=V, sigma=SIGMA) == 0.0


def test_a_seen_and_an_unseen_twin_are_half_as_far_apart():
    whole = renyi_divergence(k=3, eta=0.2, alpha=2.0, v=V, sigma=SIGMA)
    assert renyi_divergence_of_seen(k=3, eta=0.2, alpha=2.0, v=V, sigma=SIGMA) == whole / 4


@pytest.mark.parametrize(("k", "eta"), [(1, 0.1), (5, 0.05), (12, 0.3)])
def test_simulation_covers_the_closed_form_at_its_rate(k, eta):
    exact = renyi_divergence(k=k, eta=eta, alpha=2.0, v=V, sigma=SIGMA)
    rng = np.random.default_rng(k)
    found = [
        simulate_mean_estimation(k=k, eta=eta, alpha=2.0, v=V, sigma=SIGMA, runs=40, rng=rng)
        for _ in range(200)
    ]
    covered = sum(one.low <= exact <= one.high for one in found)
    assert stats.binomtest(covered, 200, 0.95).pvalue > 1e-4
    assert all(one.low <= one.value <= one.high for one in found)


def test_simulation_is_near_with_many_runs():
    exact = renyi_divergence(k=4, eta=0.1, alpha=3.0, v=V, sigma=SIGMA)
    found = simulate_mean_estimation(
        k=4, eta=0.1, alpha=3.0, v=V, sigma=SIGMA, runs=20_000, rng=np.random.default_rng(0)
    )
    assert found.value == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k=0"),
        ({"k": 1.5}, "k=1.5"),
        ({"eta": 0.0}, "eta=0.0"),
        ({"eta": float("nan")}, "eta=nan"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"v": [[1.0]]}, "v is not a row"),
        ({"sigma": [[1.0]]}, r"needs \(2, 2\)"),
        ({"sigma": [[1.0, 2.0], [0.0, 1.0]]}, "symmetric"),
        ({"sigma": [[1.0, 1.0], [1.0, 1.0]]}, "positive definite"),
    ],
)
def test_bad_input_is_named(change, words):
    asked = {"k": 1, "eta": 0.1, "alpha": 2.0, "v": V, "sigma": SIGMA} | change
    with pytest.raises(InvalidInput, match=words):
        renyi_divergence(**asked)
