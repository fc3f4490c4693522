r"""Rank-sum tests that hold with ties, also where few scores differ, and within groups.

The stratified one asks whether some numbers are higher than others of their own group.

Numbers of one group, such as the exposures in one model, are ranked together; numbers of two groups
are never compared. If the two kinds did not differ, any of a group's numbers could
have been of the first kind, so that all choices of as many of them are equally likely, in each
group on its own. The p-value is the share of all choices whose ranks add up to at least as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats
from remnant.measures.statistics.resampling import GroupPair, Groups

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


@dataclass(frozen=True, slots=True)
class StratifiedRankTest:
    """Whether the first kind is higher.

    Attributes:
        p_value: Small where it is; one-sided.
        groups: Groups that have both kinds.
        n, n_others: Numbers of either kind in these.
    """

    p_value: float
    groups: int
    n: int
    n_others: int


def stratified_rank_test(
    values: Sequence[ArrayLike], others: Sequence[ArrayLike]
) -> StratifiedRankTest:
    """Test "the values of a group could as well be any of its numbers", group by group.

    Args:
        values, others: One array a group each, in the same order; a group without one of the two
            says nothing.

    Guarantees:
        * Under the null, ``p_value <= a`` has probability at most ``a``, however groups differ,
          and with ties.
        * With one group and no ties it is the exact one-sided Mann-Whitney test.

    Raises:
        InvalidInput: NaN, or not as many arrays of the one as of the other.
        NotEnoughEvidence: No group has both.

    Example:
        >>> stratified_rank_test([[9.0], [4.0]], [[1.0, 2.0, 3.0], [2.0, 1.0, 5.0]]).p_value
        0.1875
    """
    faults: list[str] = []
    if len(values) != len(others):
        faults.append(f"values has {len(values)} groups and others {len(others)}")
    read = [
        (read_floats("values", first, 1, faults), read_floats("others", second, 1, faults))
        for first, second in zip(values, others, strict=False)
        if np.size(first) and np.size(second)
    ]
    require(faults)
    groups = [(first, second) for first, second in read if first is not None and second is not None]
    if len(groups) < len(read):
        raise InvalidInput("values and others must be arrays of numbers.")
    if not groups:
        raise NotEnoughEvidence("No group has numbers of both kinds, so there is nothing to rank.")
    law, total = np.ones(1), 0
    for first, second in groups:
        ranks = (2.0 * stats.rankdata(np.concatenate([first, second]))).round().astype(np.int64)
        law = np.convolve(law, _sums(ranks, first.size))
        total += int(ranks[: first.size].sum())
    return StratifiedRankTest(
        p_value=min(float(law[total:].sum()), 1.0),
        groups=len(groups),
        n=sum(first.size for first, _ in groups),
        n_others=sum(second.size for _, second in groups),
    )


def _sums(ranks: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """The probability of each sum of ``many`` of these numbers, all choices equally likely.

    ``law[k]`` is that of the sums of k of the numbers so far; the next is taken with probability
    (many - k) / left, whatever was chosen before.
    """
    law: NDArray[np.float64] = np.zeros((count + 1, int(np.sort(ranks)[-count:].sum()) + 1))
    law[0, 0] = 1.0
    for at, rank in enumerate(ranks.tolist()):
        taken = (count - np.arange(count + 1))[:, None] / (ranks.size - at)
        moved = law * np.clip(taken, 0.0, 1.0)
        law -= moved
        law[1:, rank:] += moved[:-1, : law.shape[1] - rank]
    made: NDArray[np.float64] = law[count]
    return made
