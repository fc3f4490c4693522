"""Simulated coverage of the interval of an exposure curve, at a nominal 95 %.

    python benchmarks/exposure_curve.py                 # the whole table, about four minutes
    python benchmarks/exposure_curve.py --audits 100 --trials 3 --canaries 16

References' losses are N(0, 1), canaries' N(-d - effect Z, 1) with Z drawn once a model; the truth
is the mean of what so many references show, over models, canaries and references. Each cell has the
share of simulated audits whose interval holds the truth and, after the slash, the mean width in
bits. ``d=0`` without an effect is the null.
"""

import argparse

import numpy as np
from scipy import stats

from remnant.measures import exposure_curve

GAINS = np.array([0.0, 1.0, 2.0, 4.0])


def truths(effect: float, references: int) -> np.ndarray:
    models, weights = np.polynomial.hermite_e.hermegauss(60)
    nodes, chances = np.polynomial.hermite_e.hermegauss(120)
    under = np.arange(references + 1)
    bits = np.log2((references + 1) / (under + 1))
    found = np.zeros(GAINS.size)
    for place, gain in enumerate(GAINS):
        for z, weight in zip(models, weights / weights.sum(), strict=True):
            share = stats.norm.cdf(nodes - gain - effect * z)[:, None]
            mean = chances / chances.sum() @ stats.binom.pmf(under, references, share) @ bits
            found[place] += weight * mean
    return found


def simulate(
    *, trials: int, canaries: int, references: int, effect: float, audits: int, draws: int
) -> None:
    rng = np.random.default_rng([trials, canaries, references, round(100 * effect)])
    truth = truths(effect, references)
    inside, width = np.zeros(GAINS.size), np.zeros(GAINS.size)
    for _ in range(audits):
        own = rng.normal(size=(trials, canaries)) - effect * rng.normal(size=(trials, 1))
        drawn = rng.normal(size=(1, trials, references)).repeat(GAINS.size, axis=0)
        curve = exposure_curve(
            canary_losses=own - GAINS[:, None, None],
            reference_losses=drawn,
            lags=np.arange(GAINS.size),
            rng=rng,
            draws=draws,
        )
        inside += (curve.low <= truth) & (truth <= curve.high)
        width += curve.high - curve.low
    cells = zip(inside / audits, width / audits, strict=True)
    row = "  ".join(f"{share:.3f}/{wide:.2f}" for share, wide in cells)
    print(f"{trials:6d} {canaries:8d} {references:10d} {effect:6.1f}  {row}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--trials", type=int, nargs="*", default=[1, 3, 10])
    parser.add_argument("--canaries", type=int, nargs="*", default=[16, 64])
    parser.add_argument("--references", type=int, nargs="*", default=[100, 500])
    parser.add_argument("--effects", type=float, nargs="*", default=[0.0, 0.3, 0.6])
    asked = parser.parse_args()
    heads = "  ".join(f"d={d:<8g}" for d in GAINS)
    print(f"trials canaries references effect  {heads}")
    for references in asked.references:
        for canaries in asked.canaries:
            for trials in asked.trials:
                # One trial cannot show how models differ, and its interval says so.
                for effect in asked.effects if trials > 1 else [0.0]:
                    simulate(
                        trials=trials,
                        canaries=canaries,
                        references=references,
                        effect=effect,
                        audits=asked.audits,
                        draws=asked.draws,
                    )


if __name__ == "__main__":
    main()
