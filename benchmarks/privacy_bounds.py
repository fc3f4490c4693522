"""Bounds on epsilon: what the fast integral gains, and what each bound shows of a known mechanism.

    python benchmarks/privacy_bounds.py              # a minute on one core
    python benchmarks/privacy_bounds.py --rounds 20  # more rounds for the ratio

1. The joint-beta bound by one integral beside scipy's double integral of the same region, in turns:
   the ratio of their times and the difference of their answers.
2. One run of a Gaussian mechanism whose epsilon is known: the median bound of each method over
   simulated audits, and how many audits exceed the truth.
3. The accountants: dp-accounting's tables and what takes their place at the extremes.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from functools import cache

import numpy as np
from scipy import integrate, optimize, special

from remnant import epsilon_lower_bound, one_run_epsilon
from remnant.measures.epsilon import gaussian_epsilon
from remnant.measures.epsilon.one_run import ONE_RUN_METHODS
from remnant.privacy import privacy_spent

COUNTS = {"true_positives": 90, "seen": 100, "false_positives": 5, "unseen": 100}
DELTA = 1e-5
REPEATS = 200  # of the fast one in a round, so that both take about as long


def beta_density(a: float, b: float):
    """A density in plain numbers: scipy.stats' own is far slower in a loop."""
    scale = math.exp(-special.betaln(a, b))
    return lambda x: scale * x ** (a - 1) * (1 - x) ** (b - 1)


def by_two_integrals() -> float:
    """The joint-beta bound by the double integral, to 0.01 as its authors' code has it."""
    hits, alarms = COUNTS["true_positives"], COUNTS["false_positives"]
    tpr = beta_density(hits + 0.5, COUNTS["seen"] - hits + 0.5)
    fpr = beta_density(alarms + 0.5, COUNTS["unseen"] - alarms + 0.5)

    def excess(epsilon: float) -> float:
        ratio = math.exp(epsilon)
        mass, _ = integrate.dblquad(
            lambda f, t: fpr(f) * tpr(t),
            0.0,
            1.0,
            lambda t: min(max((t - DELTA) / ratio, 1 - DELTA - ratio * (1 - t), 0.0), 1.0),
            lambda t: max(min(ratio * t + DELTA, 1 - (1 - t - DELTA) / ratio, 1.0), 0.0),
        )
        return mass - 0.05

    return float(optimize.brentq(excess, 1e-3, 6.0, xtol=1e-2))


def by_one_integral() -> float:
    return epsilon_lower_bound(**COUNTS, delta=DELTA, method="joint-beta").value


def timed(work):
    started = time.perf_counter()
    value = work()
    return value, time.perf_counter() - started


def joint_beta(rounds: int) -> None:
    by_one_integral()
    ratios = []
    for _ in range(rounds):
        slow, slow_time = timed(by_two_integrals)
        fast, fast_time = timed(lambda: [by_one_integral() for _ in range(REPEATS)][-1])
        fast_time /= REPEATS
        ratios.append(slow_time / fast_time)
        print(
            f"  one integral {fast:.4f} in {1e3 * fast_time:.1f} ms, "
            f"two integrals {slow:.4f} in {slow_time:.2f} s: {ratios[-1]:.0f} times"
        )
    print(f"joint-beta: {np.median(ratios):.0f} times the speed of a double integral (median)")


def one_run(audits: int) -> None:
    @cache
    def bound(m: int, r: int, v: int, method: str) -> float:
        return one_run_epsilon(guesses=r, correct=v, canaries=m, delta=DELTA, method=method).value

    print(f"one run of a Gaussian mechanism, delta {DELTA:g}, {audits} audits of 1000 canaries:")
    print("  mu   true epsilon  guesses  " + "  ".join(f"{name:>18}" for name in ONE_RUN_METHODS))
    for mu in (0.0, 0.5, 1.0, 2.0, 4.0):
        rng = np.random.default_rng(0)
        coins = rng.random((audits, 1000)) < 0.5
        scores = rng.normal(size=coins.shape) + mu * coins
        ordered = np.take_along_axis(coins, np.argsort(scores, axis=1), axis=1)
        truth = gaussian_epsilon(mu=mu, delta=DELTA)
        for r in (100, 400):
            half = r // 2
            correct = ordered[:, -half:].sum(axis=1) + (~ordered[:, :half]).sum(axis=1)
            cells = []
            for method in ONE_RUN_METHODS:
                values = np.array([bound(1000, r, int(v), method) for v in correct])
                cells.append(f"{np.median(values):9.2f} ({np.mean(values > truth):5.1%})")
            print(f"  {mu:3.1f}  {truth:12.2f}  {r:7}  " + "  ".join(f"{c:>18}" for c in cells))
    print("  median bound (share of audits above the truth)")


def accountants() -> None:
    print("accountants: sampling rate, noise, steps, delta: epsilon (who computed it, seconds)")
    for rate, noise, steps, delta in (
        (0.01, 1.0, 1000, 1e-5),
        (0.01, 0.3, 1000, 1e-5),
        (0.01, 0.01, 100, 1e-9),
        (0.01, 1e-4, 1000, 1e-9),
        (0.01, 1.0, 1000, 1e-18),
    ):
        spent, seconds = timed(
            lambda case=(rate, noise, steps, delta): privacy_spent(
                sampling_rate=case[0], noise=case[1], steps=case[2], delta=case[3]
            )
        )
        print(
            f"  {rate:g}, {noise:g}, {steps}, {delta:g}: {spent.epsilon:.6g} "
            f"({spent.accountant}, {seconds:.2f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the ratio (default 5)")
    parser.add_argument("--audits", type=int, default=1000, help="simulated audits (default 1000)")
    args = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    joint_beta(args.rounds)
    one_run(args.audits)
    accountants()


if __name__ == "__main__":
    main()
