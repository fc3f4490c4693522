"""Do intervals and tests over few trials hold their level, whatever the law of trials?

    python benchmarks/trial_intervals.py [--runs 400]

Trials are numbers of bits between 0 and 20. ``mean``: how often the interval of ``trial_mean``
holds the law's mean. ``pair``: how often ``paired_difference`` finds two sides of one law different
at 5 %. ``crossed``: how often the interval of ``crossed_mean`` holds the mean of tables of trials
by 20 canaries, the trials' effects having that law. ``signs`` and ``ranks``: how often
``sign_flip_test`` (groups are trials; 5 are needed) and ``stratified_rank_test`` find something at
5 % where there is nothing. Nominal are 95, 5, 95, 5 and 5 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.crossed_interval import crossed_mean
from remnant.measures.statistics.paired_difference import paired_difference
from remnant.measures.statistics.rank_sum import stratified_rank_test
from remnant.measures.statistics.sign_flips import sign_flip_test
from remnant.measures.statistics.trial_mean import trial_mean

MOST = 20.0
Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def other_kind(share: float, usual: float, other: float) -> Draw:
    """Trials near ``usual``, of which a share is near ``other``."""
    return lambda rng, size: (
        np.where(rng.random(size) < share, other, usual) + rng.normal(size=size)
    )


LAWS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(8.0, 2.0, size),
    "exponential": lambda rng, size: 2.0 + rng.exponential(2.0, size),
    "lognormal": lambda rng, size: rng.lognormal(0.5, 1.0, size),
    "whole numbers": lambda rng, size: rng.poisson(2.0, size).astype(np.float64),
    "one in five remembers": other_kind(0.2, 4.0, 14.0),
    "one in five forgets": other_kind(0.2, 14.0, 4.0),
    "one in ten remembers": other_kind(0.1, 4.0, 14.0),
    "half of them remember": other_kind(0.5, 4.0, 14.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--trials", type=int, nargs="+", default=[3, 5, 8])
    args = parser.parse_args()
    print("trials  law                      mean   pair  crossed  signs  ranks")
    for trials in args.trials:
        for name, law in LAWS.items():
            rng = np.random.default_rng(trials)

            def draw(size, rng=rng, law=law):
                return np.clip(law(rng, size), 0.0, MOST)

            truth = draw((400_000,)).mean()
            rows = []
            for _ in range(args.runs):
                mean = trial_mean(draw((trials,)), most=MOST)
                one, other = draw((2, trials))
                pair = paired_difference(one, other, most=MOST)
                table = draw((trials, 1)) + rng.normal(size=(1, 20)) + rng.normal(size=(trials, 20))
                crossed = crossed_mean(table)
                signs = np.nan
                if trials >= 5:
                    groups = np.repeat(np.arange(trials), 5)
                    drawn = np.sign(
                        draw((trials, 1)) - draw((trials, 1)) + rng.normal(size=(trials, 5))
                    )
                    signs = sign_flip_test(signs=drawn.ravel(), groups=groups).p_value <= 0.05
                ranks = stratified_rank_test(list(draw((trials, 4))), list(draw((trials, 12))))
                rows.append(
                    (
                        mean.low <= truth <= mean.high,
                        np.nan if pair.p_value is None else pair.p_value <= 0.05,
                        crossed.low <= truth <= crossed.high,
                        signs,
                        ranks.p_value <= 0.05,
                    )
                )
            cells = 100.0 * np.mean(np.array(rows, dtype=np.float64), axis=0)
            print(
                f"{trials:6d}  {name:<22s} {cells[0]:6.1f} {cells[1]:6.1f}  {cells[2]:7.1f} "
                f"{cells[3]:6.1f} {cells[4]:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
