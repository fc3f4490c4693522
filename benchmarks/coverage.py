"""Simulated coverage of the interval of a forgetting curve, at a nominal 95 %.

    python benchmarks/coverage.py                      # the whole table, under half an hour
    python benchmarks/coverage.py --audits 100 --trials 3 --canaries 32

Seen scores are N(d + effect Z, 1) with Z drawn once a model, unseen ones N(0, 1); the truth is the
population's rate at its own threshold, averaged over models. Each cell shows the share of simulated
audits whose interval holds the truth and, after the slash, the mean width.
"""

import argparse

import numpy as np
from scipy import stats

from remnant.measures import SUCCESSES, forgetting_curve

SEPARATIONS = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
FPR = 0.1


def truths(effect: float) -> dict[str, np.ndarray]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    shift = SEPARATIONS[:, None] + effect * nodes
    tpr = stats.norm.cdf(shift - stats.norm.isf(FPR))
    rates = {
        "accuracy": stats.norm.cdf(shift / 2),
        "auc": stats.norm.cdf(shift / np.sqrt(2)),
        "tpr": tpr,
        "precision": tpr / (tpr + FPR),
    }
    return {name: rate @ weights / weights.sum() for name, rate in rates.items()}


def simulate(*, trials: int, canaries: int, effect: float, audits: int, draws: int) -> None:
    rng = np.random.default_rng([trials, canaries, round(100 * effect)])
    truth = truths(effect)
    inside = {name: np.zeros(SEPARATIONS.size) for name in SUCCESSES}
    width = {name: np.zeros(SEPARATIONS.size) for name in SUCCESSES}
    for _ in range(audits):
        own = rng.normal(size=(trials, canaries)) + effect * rng.normal(size=(trials, 1))
        unseen = rng.normal(size=(1, trials, canaries)).repeat(SEPARATIONS.size, axis=0)
        for name in SUCCESSES:
            curve = forgetting_curve(
                seen_scores=SEPARATIONS[:, None, None] + own,
                unseen_scores=unseen,
                lags=np.arange(SEPARATIONS.size),
                success=name,
                fpr=FPR,
                rng=rng,
                draws=draws,
            )
            inside[name] += (curve.low <= truth[name] + 1e-12) & (truth[name] <= curve.high + 1e-12)
            width[name] += curve.high - curve.low
    for name in SUCCESSES:
        cells = zip(inside[name] / audits, width[name] / audits, strict=True)
        row = "  ".join(f"{share:.3f}/{wide:.3f}" for share, wide in cells)
        print(f"{trials:6d} {canaries:8d} {effect:6.1f}  {name:9s}  {row}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--trials", type=int, nargs="*", default=[1, 3, 5, 10])
    parser.add_argument("--canaries", type=int, nargs="*", default=[32, 100, 500])
    parser.add_argument("--effects", type=float, nargs="*", default=[0.0, 0.3, 0.5])
    asked = parser.parse_args()
    heads = "  ".join(f"d={d:<9g}" for d in SEPARATIONS)
    print(f"trials canaries effect  success    {heads}")
    for canaries in asked.canaries:
        for trials in asked.trials:
            # One trial cannot show how models differ, and its interval says so.
            for effect in asked.effects if trials > 1 else [0.0]:
                simulate(
                    trials=trials,
                    canaries=canaries,
                    effect=effect,
                    audits=asked.audits,
                    draws=asked.draws,
                )


if __name__ == "__main__":
    main()
