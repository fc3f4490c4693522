"""The table of ``measures.statistics.skewed_trials``: quantiles of the mean of few skewed trials.

    python benchmarks/skewed_trials.py

For each law and number of trials: the quantile of (true mean - mean) · √trials / deviation, divided
by Student's. About 40 seconds on one core.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from remnant.measures.statistics.skewed_trials import _RATIOS, _TAILS, _TRIALS

LAWS = {
    "moderate": lambda rng, size: rng.standard_exponential(size) - 1.0,
    "heavy": lambda rng, size: np.exp(rng.standard_normal(size)) - np.exp(0.5),
}


def main() -> None:
    rng = np.random.default_rng(7)
    for name, draw in LAWS.items():
        print(f"{name}: tails {_TAILS.tolist()}")
        for row, trials in enumerate(_TRIALS.tolist()):
            means = int(min(1_500_000, 3e7 // trials))
            drawn = draw(rng, (means, trials))
            ratio = -drawn.mean(axis=1) * np.sqrt(trials) / drawn.std(axis=1, ddof=1)
            found = np.quantile(ratio, 1.0 - _TAILS) / stats.t.isf(_TAILS, trials - 1)
            apart = np.abs(found / _RATIOS[name][row] - 1.0).max()
            print(f"{trials:4d}  {found.round(3).tolist()}  {apart:.1%} from the table at most")


if __name__ == "__main__":
    main()
