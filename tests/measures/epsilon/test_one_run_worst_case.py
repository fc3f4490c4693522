"""One-run bounds beside the worst mechanism of all, found by linear programming.

The mechanisms that are private for each canary form a polytope, and the largest P[v or more
correct] over it is a linear program. No bound may call that probability impossible.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from remnant.measures.epsilon import gaussian_delta
from remnant.measures.epsilon.one_run import rejects


def maximum(gain, inequalities, sums):
    """The largest ``gain @ x`` over x >= 0 with rows ``(columns, values, limit)`` and sums of 1."""
    rows = [
        (row, *entry)
        for row, (c, v, _) in enumerate(inequalities)
        for entry in zip(c, v, strict=True)
    ]
    row, column, value = zip(*rows, strict=True)
    solved = optimize.linprog(
        -gain,
        A_ub=sparse.csr_array((value, (row, column)), shape=(len(inequalities), gain.size)),
        b_ub=[limit for _, _, limit in inequalities],
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
    )
    assert solved.success
    return -solved.fun


@functools.cache
def over_all_mechanisms(m, r, v, curve):
    """The largest P[v or more of r correct] of mechanisms that hold every (ε, δ) of ``curve``.

    A mechanism gives each vector of coins a law over vectors of guesses, r of them not None.
    """
    inputs = list(itertools.product((0, 1), repeat=m))
    outputs = [g for g in itertools.product((0, 1, None), repeat=m) if m - g.count(None) == r]
    place = {u: row * len(outputs) for row, u in enumerate(inputs)}
    correct = [[sum(map(int.__eq__, *pair(u, g))) for g in outputs] for u in inputs]
    masses = len(inputs) * len(outputs)
    inequalities, slack = [], masses
    for u, j, (epsilon, delta) in itertools.product(inputs, range(m), curve):
        other = (*u[:j], 1 - u[j], *u[j + 1 :])
        for g in range(len(outputs)):  # P(g | u) - e^ε P(g | other) <= slack; slacks sum to <= δ
            columns = (place[u] + g, place[other] + g, slack + g)
            inequalities.append((columns, (1.0, -math.exp(epsilon), -1.0), 0.0))
        ends = range(slack, slack + len(outputs))
        inequalities.append((ends, [1.0] * len(outputs), delta))
        slack += len(outputs)
    gain = np.zeros(slack)
    gain[:masses] = (np.array(correct) >= v).ravel() / len(inputs)
    laws = sparse.kron(sparse.eye(len(inputs)), np.ones((1, len(outputs))))
    sums = sparse.hstack([laws, sparse.csr_array((len(inputs), slack - masses))])
    return maximum(gain, inequalities, sums)


def pair(coins, guesses):
    """The coins that were guessed, and their guesses."""
    guessed = [(c, g) for c, g in zip(coins, guesses, strict=True) if g is not None]
    return [c for c, _ in guessed], [g for _, g in guessed]


def over_counts(m, r, v, epsilon, delta):
    """The same for one (ε, δ) and any r: the worst mechanism may be taken to be symmetric.

    With w_k = P[k correct], a canary that is right in a law with k + 1 correct is wrong in one with
    k; all canaries' excesses together are at most m δ.
    """
    ratio, n = math.exp(epsilon), r + 1
    inequalities = []
    for k in range(r):
        right, wrong = k + 1.0, float(r - k)
        inequalities.append(((k + 1, k, n + k), (right, -ratio * wrong, -1.0), 0.0))
        inequalities.append(((k, k + 1, n + r + k), (wrong, -ratio * right, -1.0), 0.0))
    inequalities.append((range(n, n + 2 * r), [1.0] * (2 * r), m * delta))
    gain = np.zeros(n + 2 * r)
    gain[v:n] = 1.0
    sums = sparse.csr_array(np.concatenate([np.ones(n), np.zeros(2 * r)])[None])
    return maximum(gain, inequalities, sums)


def largest_possible(m, r, v, strength, delta, method):
    """The largest P[v or more correct] that a bound does not call impossible."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        impossible = rejects(
            m, r, v, np.array([strength]), delta=delta, error=middle, method=method
        )[0]
        low, high = (low, middle) if impossible else (middle, high)
    return high


SMALL = [(1, 1, 1), (2, 2, 2), (2, 2, 1), (3, 3, 3), (3, 3, 2), (3, 2, 2), (3, 2, 1), (3, 1, 1)]
CLAIMS = [(0.0, 0.1), (1.0, 0.0), (1.0, 0.05), (2.5, 0.01)]


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize(("m", "r", "v"), SMALL)
def test_the_worst_mechanism_is_symmetric(m, r, v, epsilon, delta):
    every = over_all_mechanisms(m, r, v, ((epsilon, delta),))
    assert over_counts(m, r, v, epsilon, delta) == pytest.approx(every, abs=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize(("m", "r"), [(3, 3), (6, 6), (20, 20), (100, 20), (60, 60)])
def test_no_bound_calls_the_worst_private_mechanism_impossible(m, r, epsilon, delta):
    law = stats.binom(r, 1 / (1 + math.exp(-epsilon)))
    for v in sorted({int(min(r, law.isf(tail) + 1)) for tail in (0.9, 0.4, 0.1, 0.05, 0.01)}):
        worst = over_counts(m, r, v, epsilon, delta)
        for method in ("binomial", "trade-off"):
            possible = largest_possible(m, r, v, epsilon, delta, method)
            if possible <= 0.5 or method == "trade-off":  # the former holds up to one half
                assert possible >= worst - 1e-6


def test_without_delta_the_binomial_bound_is_the_worst_case():
    for r, v, epsilon in ((3, 2, 1.0), (20, 17, 0.5), (60, 58, 2.0)):
        worst = over_counts(r, r, v, epsilon, 0.0)
        assert largest_possible(r, r, v, epsilon, 0.0, "binomial") == pytest.approx(worst, abs=1e-6)


def test_the_published_correction_for_delta_is_too_small_for_probable_counts():
    """Why a confidence below one half is refused: one of two guesses correct, (1, 0.05)."""
    worst = over_counts(2, 2, 1, 1.0, 0.05)
    assert worst == pytest.approx((1 - (1 - 0.05 * (2 + math.e)) / (1 + math.e) ** 2), abs=1e-6)
    assert largest_possible(2, 2, 1, 1.0, 0.05, "binomial") < worst - 1e-3


@pytest.mark.parametrize("mu", [0.5, 1.5])
@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 2, 2), (3, 3, 3), (3, 3, 2), (3, 2, 2)])
def test_no_mechanism_with_a_gaussian_curve_is_called_impossible(m, r, v, mu):
    """Eight points of the curve allow a little more than the whole curve: hence the tolerance."""
    epsilons = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    curve = tuple((e, float(gaussian_delta(mu=mu, epsilon=e))) for e in epsilons)
    worst = over_all_mechanisms(m, r, v, curve)
    assert largest_possible(m, r, v, mu, 0.0, "gaussian") >= worst - 0.01
