"""Attack success of resampled canaries, from counts instead of re-sorted copies.

A bootstrap resample of ``n`` canaries is ``n`` counts. Every rate that depends on ranks only can be
read off the running sum of those counts along the *original* order, so the scores of a trial are
sorted once and a thousand resamples cost a thousand columns of additions. Counts have the shape
``(canaries, draws)``: rows are contiguous, and reordering them is a copy of rows.

Canaries may come in clusters, which are resampled whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Groups = NDArray[np.int64]
Rate = Callable[[Floats, Floats, Counts, Counts], Floats]
GroupPair = tuple[Groups | None, Groups | None]
NO_GROUPS: GroupPair = (None, None)


def read_group_pair(
    given: Any, *, n_seen: int, n_unseen: int, trials: int = 1, faults: list[str]
) -> GroupPair:
    """The clusters of the seen and of the unseen side, numbered from 0.

    Args:
        given: None; labels of both sides, where they are the same canaries; or a pair of labels,
            for the seen and for the unseen side. Labels are one a canary, the same in all trials,
            or an array ``[trials, canaries]``; a label then means the same canary, or cluster, in
            all trials and on both sides.
        n_seen, n_unseen: Canaries on each side.
        trials: Of the scores.
        faults: Grows by one sentence part where something is wrong.

    Returns:
        Numbers of shape ``(canaries,)`` or ``(trials, canaries)`` a side; None where each canary is
        a cluster of its own.
    """
    if given is None:
        return NO_GROUPS
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(_is_labels, given)):
        read = [
            _labels(f"groups[{side}]", part, n, trials, faults)
            for side, (part, n) in enumerate(zip(given, (n_seen, n_unseen), strict=True))
        ]
    elif n_seen != n_unseen:
        faults.append(
            f"groups is one sequence of labels, but there are {n_seen} seen and {n_unseen} unseen "
            "canaries; pass a pair of sequences"
        )
        return NO_GROUPS
    else:
        both = _labels("groups", given, n_seen, trials, faults)
        read = [both, both]
    seen, unseen = read
    if seen is not None and unseen is not None and seen.ndim == unseen.ndim == 2:
        try:
            together = np.unique(np.concatenate([seen, unseen], axis=1), return_inverse=True)[1]
        except TypeError:
            faults.append("groups mixes labels that cannot be compared")
            return NO_GROUPS
        numbers = together.reshape(trials, -1).astype(np.int64)
        return numbers[:, :n_seen], numbers[:, n_seen:]
    numbered = [None if side is None else _numbered(side) for side in read]
    return numbered[0], numbered[1]


def cluster_numbers(groups: Groups) -> Groups | None:
    """One training's clusters, numbered from 0; None where each canary is one of its own."""
    numbers = _numbered(groups)
    return None if int(numbers.max(initial=0)) + 1 == numbers.size else numbers


def clusters_of(groups: Groups | None, n: int) -> int:
    """How many clusters a training has; of several trainings, the fewest."""
    if groups is None:
        return n
    return min(np.unique(row).size for row in np.atleast_2d(groups))


def read_groups(name: str, given: Any, n: int, faults: list[str]) -> Groups | None:
    """The clusters in ``given``, numbered from 0; None, with the reason added, where faulty."""
    labels = _labels(name, given, n, 1, faults)
    return None if labels is None else _numbered(labels)


def _numbered(labels: NDArray[Any]) -> Groups:
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def _labels(name: str, given: Any, n: int, trials: int, faults: list[str]) -> NDArray[Any] | None:
    """Labels of a side; None, with the reason added, where faulty."""
    try:
        labels = np.asarray(given)
    except ValueError:
        labels = np.empty(0).reshape(())
    if labels.ndim == 2 and len(labels) == trials == 1:
        labels = labels[0]
    if labels.ndim != 1 and not (labels.ndim == 2 and len(labels) == trials):
        several = f", or an array of {trials} trials" * (trials > 1)
        faults.append(f"{name} is not one label a canary{several}")
        return None
    if labels.shape[-1] != n:
        faults.append(f"{name} has {labels.shape[-1]} labels for {n} canaries")
        return None
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        faults.append(f"{name} holds labels that are NaN or infinite")
        return None
    try:
        one = any(np.unique(row).size == 1 for row in np.atleast_2d(labels)) and n > 0
    except TypeError:
        faults.append(f"{name} mixes labels that cannot be compared")
        return None
    if one:
        faults.append(f"{name} puts all canaries into one cluster; it takes two or more")
        return None
    return labels


def _is_labels(part: Any) -> bool:
    return isinstance(part, Sequence | np.ndarray) and not isinstance(part, str)


def smoothed_counts(
    *,
    n: int,
    draws: int,
    rng: np.random.Generator,
    groups: Groups | None = None,
    units: int | None = None,
) -> Counts:
    """Resample ``n`` canaries from the ``n`` observed ones and one that was not.

    The unobserved canary is split in halves: one scores above everything, one below. Without it the
    resamples of a saturated trial are all alike and claim that there is no error (the same step as
    Jeffreys' half counts for a proportion).

    Args:
        n: Canaries.
        draws: Resamples.
        rng: Draws them.
        groups: The cluster of each canary, numbered from 0. Whole clusters are then resampled, and
            the unobserved half canaries become half clusters of the mean size. A resample's counts
            add up to ``n`` only on average.
        units: How many clusters there are, where ``groups`` does not hold all of them.

    Returns:
        Counts of shape ``(n + 2, draws)``; the last two rows belong to the scores +inf and -inf.
    """
    if units is None:
        units = n if groups is None else int(groups.max()) + 1
    shares = np.full(units + 2, 1.0 / (units + 1))
    shares[units:] = 0.5 / (units + 1)
    counts = rng.multinomial(units, shares, size=draws).T.astype(np.int32)
    if groups is not None:
        unobserved = counts[units:] * max(1, round(n / np.unique(groups).size))
        counts = np.concatenate([counts[groups], unobserved])
    return np.ascontiguousarray(counts)


def with_unobserved(scores: Floats) -> Floats:
    """The scores that belong to the rows of ``smoothed_counts``."""
    return np.concatenate([scores, [np.inf, -np.inf]])


def resampled_auc(seen: Floats, unseen: Floats, seen_n: Counts, unseen_n: Counts) -> Floats:
    """Chance that a seen score beats an unseen one (ties half), for each column of counts."""
    order = np.argsort(unseen, kind="stable")
    ranked = unseen[order]
    below = _running(unseen_n[order])
    strictly = below[np.searchsorted(ranked, seen, side="left")]
    weakly = below[np.searchsorted(ranked, seen, side="right")]
    wins = np.einsum("nd,nd->d", seen_n, strictly + weakly, dtype=np.float64) / 2.0
    return np.asarray(wins / (seen_n.sum(axis=0) * below[-1].astype(np.float64)))


def resampled_accuracy(seen: Floats, unseen: Floats, seen_n: Counts, unseen_n: Counts) -> Floats:
    """Balanced accuracy of "seen iff above the balanced pooled median", for each column of counts.

    Both sides weigh one half, whatever their sizes; all comparisons are made on whole numbers.
    Scores at the median are flagged at random, so that half of the weight is flagged on average.
    """
    pool = np.concatenate([seen, unseen])
    order = np.argsort(pool, kind="stable")
    ranked = pool[order]
    nothing = np.zeros((1, seen_n.shape[1]), dtype=np.int32)
    n_seen = seen_n.sum(axis=0, dtype=np.int64)
    n_unseen = unseen_n.sum(axis=0, dtype=np.int64)
    blank_seen = np.broadcast_to(nothing, seen_n.shape)
    blank_unseen = np.broadcast_to(nothing, unseen_n.shape)
    seen_below = _running(np.concatenate([seen_n, blank_unseen])[order])
    unseen_below = _running(np.concatenate([blank_seen, unseen_n])[order])

    mass = seen_below * n_unseen + unseen_below * n_seen.astype(np.int64)
    half = n_seen * n_unseen
    row = np.minimum((mass[1:] < half).sum(axis=0), pool.size - 1)
    start = np.searchsorted(ranked, ranked[row], side="left")
    stop = np.searchsorted(ranked, ranked[row], side="right")
    column = np.arange(row.size)
    tied = mass[stop, column] - mass[start, column]
    # Of the scores at the median so many stay unflagged that half of both sides together does.
    kept = (half - mass[start, column]) / tied
    seen_down, unseen_down = (
        below[start, column] + kept * (below[stop, column] - below[start, column])
        for below in (seen_below, unseen_below)
    )
    return np.asarray(0.5 * (1.0 - seen_down / n_seen + unseen_down / n_unseen))


def resampled_tpr(fpr: float) -> Rate:
    r"""TPR at a threshold whose *expected* FPR is ``fpr``, for each column of counts.

    The r-th largest of n unseen scores has an expected FPR of r/(n+1), so the share of seen scores
    above it is read at ``r = fpr (n+1)``, linearly between whole r. Exchangeable scores then
    give ``fpr`` on average, exactly; the rule of ``tpr_at_fpr`` gives (k+1)/(n+1), which is more.
    Ties between the sides are broken at random, in expectation.
    """

    def rate(seen: Floats, unseen: Floats, seen_n: Counts, unseen_n: Counts) -> Floats:
        seen_up = np.argsort(-seen, kind="stable")
        unseen_up = np.argsort(-unseen, kind="stable")
        falling = -unseen[unseen_up]
        seen_above = _running(seen_n[seen_up])
        unseen_above = _running(unseen_n[unseen_up])
        n_unseen = unseen_above[-1]
        over = np.searchsorted(-seen[seen_up], falling, side="left")
        upto = np.searchsorted(-seen[seen_up], falling, side="right")
        column = np.arange(seen_n.shape[1])

        def at(rank: Floats) -> Floats:
            row = np.minimum((unseen_above[1:] < rank).sum(axis=0), len(falling) - 1)
            start = np.searchsorted(falling, falling[row], side="left")
            stop = np.searchsorted(falling, falling[row], side="right")
            ahead = unseen_above[start, column]
            share = (rank - ahead) / (unseen_above[stop, column] - ahead + 1.0)
            strictly = seen_above[over[row], column]
            tied = seen_above[upto[row], column] - strictly
            flagged = (strictly + tied * share) / seen_above[-1]
            return np.asarray(np.where(rank > n_unseen, 1.0, flagged))

        r = fpr * (n_unseen + 1)
        whole = np.floor(r + 1e-9)
        part = np.maximum(r - whole, 0.0)
        lower = at(whole)
        return lower if not part.any() else (1.0 - part) * lower + part * at(whole + 1)

    return rate


def _running(counts: Counts) -> Counts:
    """Running sums down the rows, with a leading row of zeros."""
    sums = np.zeros((counts.shape[0] + 1, counts.shape[1]), dtype=np.int32)
    np.cumsum(counts, axis=0, out=sums[1:])
    return sums
