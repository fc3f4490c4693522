"""A one-sided rank-sum test that holds with ties, also where few scores differ from the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.measures.statistics.groups import GroupPair
from remnant.measures.statistics.resampling import Groups

Floats = NDArray[np.float64]
_EXACT = 8  # scores of the smaller side up to which the test is exact where none tie
_FEW = 12  # seen scores up to which rows are tested exactly, ties counted against them


def rank_sum_p_value(seen: Floats, unseen: Floats) -> float:
    """The one-sided p-value of "seen scores are no higher than unseen ones", by the sum of ranks.

    It is exact for few scores without ties. Otherwise it is approximated by the first three moments
    of the sum under a random assignment, given the ties. Without ties its law is close to normal.
    Where most scores tie and a few are higher it is skewed, and a normal law would take one high
    score among few seen ones for a proof; a Pearson law of type III has its skewness. Sums are
    discrete: half of the widest step between ranks is subtracted.

    Args:
        seen, unseen: Finite scores, shapes ``(n,)`` and ``(m,)``.

    Guarantees:
        * 1 where all scores are alike.
        * A strictly increasing map of all scores changes nothing.

    Example:
        >>> one_high = np.array([1.0] + [0.0] * 19)
        >>> round(rank_sum_p_value(one_high, np.zeros(200)), 2)  # exactly 20/220
        0.08
    """
    ranks = stats.rankdata(np.concatenate([seen, unseen]))
    n, total = seen.size, ranks.size
    steps = np.diff(np.unique(ranks))
    if not steps.size:
        return 1.0
    if steps.size == total - 1 and min(n, total - n) <= _EXACT:
        test = stats.mannwhitneyu(seen, unseen, alternative="greater", method="exact")
        return float(test.pvalue)
    apart = ranks - ranks.mean()
    variance = n * (total - n) / (total - 1.0) * np.mean(apart**2)
    skewness = 0.0
    if total > 2:
        third = n * (total - n) * (total - 2.0 * n) / ((total - 1.0) * (total - 2.0))
        # Skewed to the left, a normal law errs on the safe side.
        skewness = max(0.0, third * float(np.mean(apart**3)) / variance**1.5)
    deviation = (apart[:n].sum() - steps.max() / 2.0) / np.sqrt(variance)
    return float(stats.pearson3.sf(deviation, skewness))


def rank_p_values(seen: Floats, unseen: Floats, groups: GroupPair) -> Floats:
    """One-sided p-values, row by row, of "seen scores are no higher", by ranks.

    Clusters count with their mean. Few canaries are tested exactly, with ties counted against them;
    more of them by ``rank_sum_p_value``.
    """
    sides = [
        side if group is None else _cluster_means(side, group)
        for side, group in zip((seen, unseen), groups, strict=True)
    ]
    few = sides[0].shape[1] <= _FEW
    p_values = []
    for own, others in zip(*sides, strict=True):
        if not few:
            p_values.append(rank_sum_p_value(own, others))
            continue
        # Ranks with every seen score under the unseen ones that it ties with.
        pool = np.concatenate([own, others])
        order = np.lexsort((np.repeat([0, 1], [own.size, others.size]), pool))
        places = np.empty(pool.size)
        places[order] = np.arange(pool.size)
        test = stats.mannwhitneyu(
            places[: own.size], places[own.size :], alternative="greater", method="exact"
        )
        p_values.append(float(test.pvalue))
    return np.array(p_values)


def _cluster_means(side: Floats, groups: Groups) -> Floats:
    sizes = np.bincount(groups)
    return np.stack([np.bincount(groups, row) / sizes for row in side])
