r"""Is one training counted as several? Copies of scores say nothing of how trainings differ.

A copy may carry noise, its scores may be scaled or shifted, and its canaries may be in another
order. At each lag a training's scores are therefore put on a scale of their own, (x - median) /
interquartile range, and two trainings are compared in two ways:

* **In place.** They are copies where at every lag their mean absolute difference is under a
  thousandth of the range, or under a tenth of what two trainings usually differ by (the median over
  pairs, of three trainings or more), or where the changes of each canary's score over the lags
  correlate above 0.99. Trainings that share canaries differ by the training only: what a canary
  contributes to all of them is in the yardstick, and not in its changes.
* **Sorted.** Independent draws of n scores differ by about range/√n when both are sorted. A mean
  difference under a tenth of this on both sides, at every lag, is no chance. Scores with few values
  agree more easily: with c scores at each value, two draws agree in about Π e^(-2c) I₀(2c) of
  cases, and where this is above 1e-9 nothing is concluded. Nor is it where scores in place
  correlate above one half: canaries are then shared, and the comparison in place decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
COPIED = "two trainings have the same scores at all lags, but for noise, so they are one training"
_SAME = 1e-3  # mean difference, as a share of the interquartile range
_NEAR = 0.1  # of what trainings usually differ by, and of range/√n when sorted
_CORRELATED = 0.99
_CHANGES = 0.01  # share of the scores' variance that changes over lags have to make
_SHARED = 0.5
_CHANCE = 1e-9
_NOISE = 1e-5
_MOST = 2.0  # ranges: no single canary counts with a larger difference


def copied_trainings(seen: Floats, unseen: Floats) -> bool:
    """Whether two trainings have the same scores at all lags, up to noise, scale and order.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.

    Guarantees:
        * Trainings whose scores are all alike do not count.
        * The order of trainings, and one order of canaries for all trainings, do not matter.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> seen, unseen = rng.normal(size=(2, 2, 4, 50))  # 2 lags, 4 trainings
        >>> copied_trainings(seen, unseen)
        False
        >>> noise = 1e-9 * rng.normal(size=(2, 2, 50))
        >>> copied_trainings(seen[:, [0, 0]] + noise, unseen[:, [0, 0]])
        True
    """
    together = np.concatenate([seen, unseen], axis=2)
    varied = np.ptp(together, axis=(0, 2)) > 0.0
    if varied.sum() < 2:
        return False
    scores = [np.moveaxis(side[:, varied], 1, 0) for side in (seen, unseen)]
    whole = np.concatenate(scores, axis=2).reshape(int(varied.sum()), -1)
    if len(np.unique(whole, axis=0)) < len(whole):
        return True
    scaled, varies = zip(*map(_scaled, scores), strict=True)
    useful = (varies[0] | varies[1]).all(axis=0)  # lags at which no training has equal scores only
    if not useful.any():
        return False
    sides = [side[:, useful] for side in scaled]
    unshared = np.asarray((_correlations(sides) <= _SHARED).any(axis=0))
    return _in_place(sides) or _same_changes(scores) or _sorted(sides, unshared)


def _scaled(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """One side's scores as (x - median) / range, and whether they vary, ``(trials, lags)``."""
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=2, keepdims=True)
    deviation = scores.std(axis=2, keepdims=True)
    # Scores of which most tie but for noise have a range that is noise.
    spread = np.where(high - low > _NOISE * deviation, high - low, deviation)
    varies = spread > 1e-14 * np.abs(scores).max(axis=2, keepdims=True)
    return np.where(varies, (scores - middle) / np.where(varies, spread, 1.0), 0.0), varies[..., 0]


def _in_place(sides: list[Floats]) -> bool:
    whole = np.concatenate(sides, axis=2)
    trials, lags, _ = whole.shape
    apart = np.empty((lags, trials, trials))
    for trial in range(trials):
        apart[:, trial] = np.minimum(np.abs(whole - whole[trial]), _MOST).mean(axis=2).T
    first, second = np.triu_indices(trials, 1)
    apart = apart[:, first, second]
    near = apart <= _SAME
    if trials > 2:
        near |= apart <= _NEAR * np.median(apart, axis=1, keepdims=True)
    return bool(near.all(axis=0).any())


def _same_changes(scores: list[Floats]) -> bool:
    """Whether canaries' changes over the lags rank the same in two trainings, at every lag."""
    changes = [side - side.mean(axis=1, keepdims=True) for side in scores]
    moving = (_spread(changes) >= _CHANGES * _spread(scores)).all(axis=1)
    if moving.sum() < 2:
        return False
    ranks = [stats.rankdata(side[moving], axis=2) for side in changes]
    first, second = np.triu_indices(int(moving.sum()), 1)
    same = _correlations(ranks)[:, first, second] >= _CORRELATED
    return bool(same.all(axis=0).any())


def _sorted(sides: list[Floats], unshared: NDArray[np.bool_]) -> bool:
    """Whether two trainings agree once sorted.

    Args:
        sides: Shape ``(trials, lags, canaries)`` each.
        unshared: Pairs whose scores in place do not correlate, ``(trials, trials)``.
    """
    trials = len(sides[0])
    ordered = [np.sort(side, axis=2) for side in sides]
    for trial in range(trials - 1):
        left = trial + 1 + np.flatnonzero(unshared[trial, trial + 1 :])
        for lag in range(sides[0].shape[1]):
            for side in ordered:
                apart = np.abs(side[left, lag] - side[trial, lag]).mean(axis=1)
                left = left[apart <= _NEAR / np.sqrt(side.shape[2])]
        if left.size:
            lags = zip(*(side[trial] for side in ordered), strict=True)
            if min(map(_agreement, lags)) < _CHANCE:
                return True
    return False


def _agreement(of_lag: tuple[Floats, ...]) -> float:
    """How probable it is that two draws of such scores agree, both sides together."""
    chance = 1.0
    for ranked in of_lag:
        _, counts = np.unique(
            np.floor(ranked * np.sqrt(len(ranked)) / _NEAR + 0.37), return_counts=True
        )
        # The counts add up to n, which makes one of them certain.
        chance *= float(np.prod(np.sort(special.i0e(2.0 * counts))[: len(counts) - 1]))
    return chance


def _correlations(sides: list[Floats]) -> Floats:
    """Pearson's correlation of trainings over canaries, each side centred; ``(lags, a, b)``."""
    centred = np.concatenate([side - side.mean(axis=2, keepdims=True) for side in sides], axis=2)
    length = np.sqrt((centred**2).sum(axis=2, keepdims=True))
    unit = np.moveaxis(centred / np.where(length > 0.0, length, 1.0), 1, 0)
    return np.asarray(unit @ np.swapaxes(unit, 1, 2))


def _spread(sides: list[Floats]) -> Floats:
    """Variance over canaries, each side for itself; ``(trials, lags)``."""
    return np.asarray(sum(side.var(axis=2) for side in sides))
