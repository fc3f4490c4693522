r"""How far above a mean of few trials the true mean may lie, where trials differ in a skewed way.

Student's t assumes that the trials' law is normal. Trainings often differ otherwise: most remember
little, a few remember much. A handful of trials then tends to miss the few, and shows a mean that
is too low *and* a spread that is too small. Student's upper bound is wrong up to seven times as
often as it says.

``upper_quantile`` is the quantile that takes the place of Student's: with it, the bound

    mean + quantile · deviation / √trials

holds for the exponential law ("moderate") or the lognormal law with σ = 1 ("heavy"). AUC, accuracy
and precision are bounded on both sides of chance, which cuts their tails: "moderate" suffices for
exponential and lognormal model effects. TPR and exposure rise ever faster from near zero: "heavy".

Not covered: rare behaviour, such as one training in ten that remembers. No bound from a handful of
trials can be. ``unseen_trainings`` says how large a share of trainings may behave in a way that
none of them showed.

Two trials keep Student's quantile, 6.3 at 95 %: a larger one would leave nothing to say. With
exponential model effects their bound is wrong in 14 % of cases instead of 5 %.

``benchmarks/skewed_trials.py`` makes the table again.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import stats

Skew = Literal["moderate", "heavy"]

_TAILS = np.array([0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001])
_TRIALS = np.array([3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128, 256])
# The law's quantile divided by Student's: a row for each number of trials, a column for each tail.
_RATIOS = {
    "moderate": np.array(
        [
            [2.158, 2.456, 2.684, 2.860, 3.058, 3.186, 3.297, 3.388],
            [1.918, 2.156, 2.358, 2.539, 2.753, 2.885, 2.986, 3.089],
            [1.775, 1.977, 2.153, 2.318, 2.521, 2.666, 2.793, 2.896],
            [1.677, 1.852, 2.011, 2.167, 2.358, 2.492, 2.594, 2.729],
            [1.542, 1.687, 1.817, 1.944, 2.104, 2.218, 2.311, 2.462],
            [1.466, 1.587, 1.703, 1.812, 1.956, 2.053, 2.151, 2.263],
            [1.412, 1.521, 1.622, 1.721, 1.840, 1.926, 2.012, 2.124],
            [1.344, 1.427, 1.509, 1.593, 1.691, 1.762, 1.826, 1.922],
            [1.262, 1.328, 1.393, 1.453, 1.529, 1.585, 1.640, 1.715],
            [1.217, 1.272, 1.322, 1.372, 1.441, 1.486, 1.528, 1.586],
            [1.147, 1.175, 1.211, 1.241, 1.284, 1.317, 1.349, 1.380],
            [1.107, 1.120, 1.140, 1.158, 1.187, 1.206, 1.218, 1.243],
            [1.070, 1.076, 1.092, 1.100, 1.130, 1.141, 1.143, 1.150],
        ]
    ),
    "heavy": np.array(
        [
            [3.233, 3.359, 3.518, 3.629, 3.704, 3.720, 3.745, 3.744],
            [2.883, 3.020, 3.193, 3.330, 3.464, 3.542, 3.606, 3.634],
            [2.649, 2.788, 2.958, 3.117, 3.273, 3.367, 3.417, 3.514],
            [2.498, 2.617, 2.783, 2.936, 3.094, 3.198, 3.278, 3.356],
            [2.275, 2.385, 2.536, 2.682, 2.846, 2.962, 3.050, 3.157],
            [2.122, 2.224, 2.360, 2.496, 2.662, 2.772, 2.880, 2.990],
            [2.019, 2.109, 2.236, 2.360, 2.517, 2.620, 2.722, 2.828],
            [1.874, 1.950, 2.060, 2.166, 2.305, 2.394, 2.490, 2.598],
            [1.700, 1.767, 1.856, 1.946, 2.058, 2.139, 2.212, 2.300],
            [1.604, 1.663, 1.740, 1.817, 1.915, 1.990, 2.051, 2.124],
            [1.428, 1.464, 1.517, 1.572, 1.631, 1.683, 1.727, 1.781],
            [1.300, 1.332, 1.368, 1.415, 1.462, 1.490, 1.518, 1.575],
            [1.222, 1.237, 1.267, 1.292, 1.334, 1.357, 1.389, 1.425],
        ]
    ),
}


def upper_quantile(trials: int, tail: float, skew: Skew) -> float:
    """The deviations of the mean by which a bound has to lie above it.

    Args:
        trials: How many the mean and its deviation come from, two or more.
        tail: The chance, under one half, that the bound is too low.
        skew: Which law the trials may have.

    Guarantees:
        * Never less than Student's quantile.

    Example:
        >>> [round(upper_quantile(n, 0.05, "moderate"), 2) for n in (2, 3, 8)]
        [6.31, 7.84, 3.44]
    """
    student = float(stats.t.isf(tail, trials - 1))
    return student if trials == 2 else student * _ratio(trials, tail, skew)


def _ratio(trials: int, tail: float, skew: Skew) -> float:
    """The table between its entries, linear in the logarithms; beyond it, like 1/√trials."""
    rows = _RATIOS[skew]
    at_tail = [np.interp(-np.log(tail), -np.log(_TAILS), row) for row in rows]
    shrink = np.sqrt(min(1.0, _TRIALS[-1] / trials))
    ratio = float(np.interp(np.log(trials), np.log(_TRIALS), at_tail))
    return max(1.0, 1.0 + (ratio - 1.0) * float(shrink))


def unseen_trainings(trials: int, confidence: float = 0.95, *, above: int = 0) -> float:
    """The largest share of trainings that may behave in a way that ``above`` of ``trials`` showed.

    The exact (Clopper-Pearson) one-sided upper bound; ``1 - (1 - confidence)**(1 / trials)`` where
    none showed it.

    Example:
        >>> round(unseen_trainings(3), 2), round(unseen_trainings(8), 2)
        (0.63, 0.31)
        >>> round(unseen_trainings(8, above=1), 2)
        0.47
    """
    if above >= trials:
        return 1.0
    return float(stats.beta.ppf(confidence, above + 1, trials - above))
