"""Why models forget: the paper's three toy results, and how well closed forms and simulation agree.

    python benchmarks/theory.py                  # replay on scikit-learn's digits
    python benchmarks/theory.py --data DIR       # replay on 2 000 images of Fashion-MNIST

k-means never forgets an outlier; SGD in a known order never forgets an example, in an unknown order
it does; the mean of samples is forgotten as the closed form says.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from remnant import theory
from remnant.data import load_images


def k_means() -> None:
    found = theory.kmeans_outlier(trials=200, rng=np.random.default_rng(0))
    print(
        f"k-means, 200 trials: accuracy {found.accuracy:.3f}, precision {found.precision:.3f} "
        "(paper .97 and 1)"
    )


def mean_estimation() -> None:
    v, sigma = [1.0, -0.5], [[1.0, 0.3], [0.3, 2.0]]
    print("mean estimation, order 2, learning rate 0.1: exact, bound, simulated with its error")
    for k in (1, 3, 10, 30):
        exact = theory.renyi_divergence(k=k, eta=0.1, alpha=2.0, v=v, sigma=sigma)
        bound = theory.renyi_bound(k=k, alpha=2.0, v=v, sigma=sigma)
        made = theory.simulate_mean_estimation(
            k=k, eta=0.1, alpha=2.0, v=v, sigma=sigma, runs=20_000, rng=np.random.default_rng(k)
        )
        print(
            f"  {k:3} steps: {exact:.4g}, {bound:.4g}, "
            f"{made.value:.4g} [{made.low:.4g}, {made.high:.4g}]"
        )


def replay(args) -> None:
    name = "fashion-mnist" if args.data else "digits"
    data = load_images(name, folder=args.data, examples=None, seed=0)
    images, labels = data.clean.images, data.clean.labels
    keep = min(len(images), 2_000)
    batch = 100 if args.data else 32
    settings = [("logistic regression", (), 20, 3, 95), ("network of 64 units", (64,), 10, 2, 45)]
    for words, hidden, trials, replays, epochs in settings:
        epoch = (keep - 2 * trials) // batch
        wanted = [0, 1, 2, 5, 10, 20, epochs // 2, epochs]
        lags = sorted({0, 1, 5, 20, *(epoch * e for e in wanted)})
        started = time.perf_counter()
        found = theory.deterministic_replay(
            inputs=images[:keep],
            labels=labels[:keep],
            rng=np.random.default_rng(0),
            trials=trials,
            clean_steps=5 * epoch,
            lags=lags,
            batch=batch,
            learning_rate=0.1,
            hidden=hidden,
            replays=replays,
        )
        seconds = time.perf_counter() - started
        print(
            f"{name}, {words}, {trials} examples of epoch 5, "
            f"{epoch} steps an epoch, {seconds:.0f} s"
        )
        print("  lag in steps | order known | order unknown, 95 % interval")
        for row in range(len(lags)):
            print(
                f"  {found.lags[row]:6} | {found.known_order[row]:.3f} | "
                f"{found.unknown_order[row]:.3f} "
                f"[{found.unknown_low[row]:.3f}, {found.unknown_high[row]:.3f}]"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with fashion-mnist/; digits without it")
    args = parser.parse_args()
    k_means()
    mean_estimation()
    replay(args)


if __name__ == "__main__":
    main()
