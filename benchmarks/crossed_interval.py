"""Coverage of the intervals over seeds and canaries: means, shares, and differences of shares.

    python benchmarks/crossed_interval.py [tables a cell]

Each member's number is the sum of a seed's, a canary's and its own normal variable; a hit is one
above a threshold. A row says which share of the variance seeds and canaries have.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import stats

from remnant.measures.statistics.crossed_interval import (
    crossed_difference,
    crossed_mean,
    crossed_share,
)

EFFECTS = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (1 / 3, 1 / 3))
SIZES = ((3, 10), (5, 5), (5, 30), (10, 30))
SHARES = (0.05, 0.2, 0.5)
BARE = 20


def main(tables: int) -> None:
    print(
        "seeds x canaries   seeds, canaries   mean   share: " + "     ".join(map(str, SHARES)),
        end="",
    )
    print(f"   beyond {BARE} unplanted: 0.05 - 0.05, 0.5 - 0.05")
    for seeds, canaries in SIZES:
        for by_seed, by_canary in EFFECTS:
            rng = np.random.default_rng(0)
            hits = np.zeros(2 + len(SHARES) + 1)
            for _ in range(tables):
                table = (
                    math.sqrt(by_seed) * rng.normal(size=(seeds, 1))
                    + math.sqrt(by_canary) * rng.normal(size=(1, canaries))
                    + math.sqrt(1 - by_seed - by_canary) * rng.normal(size=(seeds, canaries))
                )
                bare = crossed_share(rng.random(BARE) < 0.05)
                found = [(crossed_mean(table), 0.0)]
                by_share = {one: crossed_share(table > stats.norm.isf(one)) for one in SHARES}
                found += [(by_share[one], one) for one in SHARES]
                found += [
                    (crossed_difference(by_share[one], bare), one - 0.05) for one in (0.05, 0.5)
                ]
                hits += [one.low <= truth <= one.high for one, truth in found]
            cells = "   ".join(f"{100 * one / tables:5.1f}" for one in hits)
            print(
                f"{seeds:2} x {canaries:2}            {by_seed:.2f}, {by_canary:.2f}       {cells}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
