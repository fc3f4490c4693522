"""How often "safe after k steps" claims too much, against the rule that looks easier.

    python benchmarks/safe_after.py
    python benchmarks/safe_after.py --audits 2000 --trials 3 8 --rates auc precision

Each audit simulates trials whose models differ (a random effect of each model, the same at all its
lags), with attack scores that fade through the limit between two lags. A claim is false if the true
mean success at any lag it covers is above the limit; the true means come from 400 models with 5 000
canaries a side. Beside our backward sequence stands the tempting rule: the first lag whose upper
bound is under the limit.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from remnant.measures.forgetting.curve import forgetting_curve
from remnant.measures.statistics.checks import SUCCESSES
from remnant.measures.statistics.success import trial_success

SHIFT = np.array([1.6, 1.1, 0.75, 0.5, 0.35, 0.25, 0.2, 0.15])
LAGS = np.arange(SHIFT.size)


def scores(rng, *, trials: int, canaries: int, own: float, fading: np.ndarray):
    models = own * rng.normal(size=(1, trials, 1))
    level = rng.normal(size=(1, trials, canaries))
    noise = rng.normal(size=(fading.size, trials, canaries))
    seen = fading[:, None, None] * np.exp(models) + 0.7 * level + 0.7 * noise
    control = 0.7 * rng.normal(size=(1, trials, canaries))
    return seen, control + 0.7 * rng.normal(size=(fading.size, trials, canaries))


def true_means(rng, *, rate: str, own: float, fading: np.ndarray) -> np.ndarray:
    """The mean success over such models, each at its own true threshold: 5 000 canaries a side."""
    found = []
    for _ in range(200):
        seen, unseen = scores(rng, trials=2, canaries=5000, own=own, fading=fading)
        found += [
            [trial_success(*sides, success=rate, fpr=0.1) for sides in zip(*trial, strict=True)]
            for trial in zip(seen.swapaxes(0, 1), unseen.swapaxes(0, 1), strict=True)
        ]
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--trials", type=int, nargs="+", default=[3, 8, 16])
    parser.add_argument("--rates", nargs="+", default=list(SUCCESSES))
    parser.add_argument("--canaries", type=int, default=40)
    parser.add_argument("--own", type=float, default=0.3, help="spread of the models' effect")
    parser.add_argument("--draws", type=int, default=40)
    asked = parser.parse_args()
    print(f"{asked.audits} audits each, nominal 5 %, {asked.canaries} canaries a side\n")
    print("rate       trials  true at the edge  claims  false claims  first that looks safe")
    for rate in asked.rates:
        rng = np.random.default_rng(0)
        made = {"own": asked.own, "fading": SHIFT}
        truth = true_means(rng, rate=rate, **made)
        made["canaries"] = asked.canaries
        edge = 4  # a hair above the limit: the hardest lag to keep out of the claim
        limit = float(truth[edge]) - 1e-4
        for trials in asked.trials:
            started, claims, false, tempted = time.perf_counter(), 0, 0, 0
            for _ in range(asked.audits):
                seen, unseen = scores(rng, trials=trials, **made)
                curve = forgetting_curve(
                    seen_scores=seen,
                    unseen_scores=unseen,
                    lags=LAGS,
                    success=rate,
                    rng=rng,
                    draws=asked.draws,
                )
                found = curve.safe_after(limit=limit).lag
                claims += found is not None
                false += found is not None and found <= edge
                safe = np.flatnonzero(curve.evidence.upper(0.95) <= limit)
                tempted += safe.size > 0 and safe[0] <= edge
            print(
                f"{rate:10s} {trials:6d}  {truth[edge]:16.3f}  {claims / asked.audits:6.1%}  "
                f"{false / asked.audits:12.1%}  {tempted / asked.audits:21.1%}   "
                f"({time.perf_counter() - started:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
