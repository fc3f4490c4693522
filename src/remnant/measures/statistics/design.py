r"""What scores show of how they were made: shared canaries, copied trainings, clusters.

Are the canaries of one side the same in all trainings?

What a shared canary contributes is in every training's success, so the spread between trainings
says nothing of other canaries. Scores in the same place then correlate over trainings. With R the
mean rank correlation over pairs of T trainings, (n-1)(1 + (T-1) R) has for independent rows of n
scores the mean n-1 and the variance 2(n-1)(T-1)/T; a gamma law with these is its tail (Friedman's
test has the same statistic). A side counts as shared where this is improbable at 1 % over both
sides and all lags. A side that is taken for shared in error has a slightly wider interval.

A canary that is planted in one training and unseen in others *rotates*: its part in the two sides
cancels. It is not shared.

Is one training counted as several? Copies of scores say nothing of how trainings differ.

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

Do scores look like those of canaries that come in clusters, where no groups were given?

Two signs are looked for, on each side and at each lag:

* **Neighbours are alike.** Canaries of one author or template are mostly next to each other. Ranks
  lose a trend over the places (a line or cubic polynomial, since canaries may be sorted by length),
  and the correlation r of neighbours is held against chance: of n independent canaries in T
  trainings, √(nT) r is about standard normal. Scores that are sorted themselves show nothing.
* **Near-duplicates.** Canaries whose scores agree with another's to a millionth of their range, at
  all lags. Scores on a grid, of few values or in half precision, agree by chance and do not count.

Clusters whose members are apart in the arrays, and that are no duplicates, are not noticed. Nor are
weak ones: of clusters of five with a correlation of 0.5, 100 canaries a side and one training,
about nine in ten are (``benchmarks/false_claims_trainings.py``).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from remnant.measures.statistics.resampling import Counts, cluster_numbers, smoothed_counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shared = Literal["seen", "unseen", "both", "neither"]
_ERROR = 0.01


def read_shared(
    given: Any,
    *,
    seen: Floats,
    unseen: Floats,
    labels: tuple[Any, Any],
    faults: list[str],
    names: tuple[str, str] = ("seen", "unseen"),
) -> tuple[bool, bool]:
    """Which sides are shared: as declared, as their labels say, or as their scores show.

    Args:
        given: What the caller declared; None to find out.
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.
        labels: Of each side; of shape ``(trials, canaries)`` they say which canaries recur.
        faults: Grows by one sentence part where something is wrong.
        names: Of the sides, as declared.
    """
    if given is not None:
        if given not in (*names, "both", "neither"):
            faults.append(f"shared={given!r} is not one of {', '.join(names)}, both, neither")
            return False, False
        return given in (names[0], "both"), given in (names[1], "both")
    return (
        _recur(labels[0], labels[1]) if _by_trial(labels[0]) else same_places(seen),
        _recur(labels[1], labels[0]) if _by_trial(labels[1]) else same_places(unseen),
    )


def same_places(scores: Floats) -> bool:
    """Whether scores in the same place correlate over trainings.

    Args:
        scores: Shape ``(lags, trials, canaries)``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> own = rng.normal(size=(3, 8, 40))
        >>> same_places(own), same_places(own + rng.normal(size=40))
        (False, True)
    """
    lags, trials, canaries = scores.shape
    if trials < 2 or canaries < 3:
        return False
    ranks = stats.rankdata(scores, axis=2)
    ranks -= ranks.mean(axis=2, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=2, keepdims=True))
    together = (ranks / np.where(length > 0.0, length, 1.0)).sum(axis=1)
    varied = (length[..., 0] > 0.0).sum(axis=1)
    statistic = (canaries - 1.0) * (together**2).sum(axis=1) / np.maximum(varied, 1)
    scale = 2.0 * (1.0 - 1.0 / np.maximum(varied, 2))  # variance / mean
    chance = stats.gamma.sf(statistic, (canaries - 1.0) / scale, scale=scale)
    return bool((chance[varied > 1] <= _ERROR / (2 * lags)).any())


def paired_places(seen: Floats, unseen: Floats) -> bool:
    """Whether both sides are the same canaries in the same order, by their scores.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)`` of two shared sides.
    """
    if seen.shape != unseen.shape:
        return False
    means = np.stack([side.mean(axis=1) for side in (seen, unseen)], axis=1)
    return same_places(means)


def _by_trial(labels: Any) -> bool:
    return labels is not None and labels.ndim == 2


def _recur(labels: Ints, others: Any) -> bool:
    """Whether a label is in several trainings, and not on the other side."""
    own = np.concatenate([np.unique(row) for row in labels])
    found, counts = np.unique(own, return_counts=True)
    return bool((~np.isin(found[counts > 1], others if _by_trial(others) else [])).any())


class Resampling:
    """Resamples of both sides' canaries; the same in all trainings where these share them.

    Args:
        rng: Draws them.
        groups: The clusters of each side, ``(canaries,)`` or ``(trials, canaries)``, or None.
        shared: Whether the trainings share the canaries of each side.
        paired: Whether both sides are the same canaries.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        groups: tuple[Any, Any],
        shared: tuple[bool, bool],
        paired: bool = False,
    ) -> None:
        self._rng, self._groups, self._shared = rng, groups, shared
        self._seeds = rng.integers(2**63, size=2).tolist() if any(shared) else [0, 0]
        if paired:
            self._seeds[1] = self._seeds[0]
        self.next_trial(0)

    def next_trial(self, trial: int) -> None:
        """Go on to a training; the draws of shared canaries start again."""
        self._trial = trial
        self._again = [np.random.default_rng(seed) for seed in self._seeds]

    def __call__(self, side: int, *, n: int, draws: int) -> Counts:
        """Counts of one side's canaries, as ``smoothed_counts``."""
        groups = self._groups[side]
        if groups is not None and groups.ndim == 2:
            groups = groups[self._trial]
            if not self._shared[side]:
                groups = cluster_numbers(groups)
        elif groups is not None:
            groups = cluster_numbers(groups)
        rng = self._again[side] if self._shared[side] else self._rng
        return smoothed_counts(n=n, draws=draws, rng=rng, groups=groups, units=self._units(side))

    def _units(self, side: int) -> int | None:
        groups = self._groups[side]
        if groups is None or groups.ndim == 1 or not self._shared[side]:
            return None
        return int(groups.max()) + 1


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


_CLUSTERS_BY_CHANCE = 0.002  # chance that independent canaries are taken for clusters
_FEWEST = 20  # canaries
_LONG = 60  # canaries, from which on the trend is a cubic one
_EQUAL = 1e-6  # of the range
_DUPLICATES = 0.05  # share of canaries
_BLOCKS = 4  # of equal scores
_REMEDY = "pass groups, one label each (all different where they are independent)"


def noticed_clusters(
    seen: Floats,
    unseen: Floats,
    shared: tuple[bool, bool] = (False, False),
    *,
    what: str = "canaries",
    remedy: str = _REMEDY,
) -> str:
    """Why canaries seem to come in clusters; empty where nothing shows it.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.
        shared: Whether the trials share the canaries of each side.
        what: Is scored, in the plural.
        remedy: What to do.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> alone, other = rng.normal(size=(2, 2, 8, 100))
        >>> noticed_clusters(alone, other)
        ''
        >>> author = np.repeat(rng.normal(size=(2, 8, 20)), 5, axis=2)
        >>> noticed_clusters(alone + author, other)[:45]
        'scores of neighbouring canaries are alike (co'
    """
    for side in filter(_near, (seen, unseen)):
        share = max(_duplicates(side[:, trial]) for trial in range(side.shape[1]))
        if share > _DUPLICATES:
            return (
                f"{share:.0%} of {what} have the scores of another one, as near-duplicates do: "
                f"{remedy}"
            )
    found = [_neighbours(side, same) for side, same in zip((seen, unseen), shared, strict=True)]
    normal = np.stack([z for _, z in found])
    tests = np.concatenate([normal, normal.sum(axis=0, keepdims=True) / np.sqrt(2.0)])
    if stats.norm.sf(tests.max()) * tests.size > _CLUSTERS_BY_CHANCE:
        return ""
    correlation = max(float(r.max()) for r, _ in found)
    return (
        f"scores of neighbouring {what} are alike (correlation {correlation:.2f}), as those of "
        f"clusters are: {remedy}"
    )


def _neighbours(scores: Floats, shared: bool) -> tuple[Floats, Floats]:
    """Correlation of neighbours at each lag, over trials, and how many deviations that is."""
    lags, _, canaries = scores.shape
    if canaries < _FEWEST:
        return np.zeros(lags), np.zeros(lags)
    degree = 3 if canaries >= _LONG else 1
    places = np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, canaries), degree)
    trend = np.linalg.qr(places)[0]
    ranks = stats.rankdata(scores, axis=2)
    left = ranks - (ranks @ trend) @ trend.T
    length = (left**2).sum(axis=2)
    steps = np.diff(scores, axis=2)
    sorted_ = (steps >= 0.0).all(axis=2) | (steps <= 0.0).all(axis=2)
    useful = (length > 1e-9 * canaries**3) & ~sorted_
    each = (left[..., 1:] * left[..., :-1]).sum(axis=2) / np.where(useful, length, 1.0)
    number = useful.sum(axis=1)
    mean = np.where(useful, each, 0.0).sum(axis=1) / np.maximum(number, 1)
    independent = np.minimum(number, 1) if shared else number
    # Without clusters the mean is about -(degree + 1) / n.
    return mean, (mean + (degree + 1.0) / canaries) * np.sqrt(canaries * independent)


def _near(scores: Floats) -> bool:
    """Whether so many scores are so near to another one that duplicates are worth a search."""
    if scores.shape[2] < _FEWEST:
        return False
    ordered = np.sort(scores[0], axis=1)
    gaps = np.diff(ordered, axis=1)
    near = (gaps <= 10.0 * _EQUAL * (ordered[:, -1:] - ordered[:, :1])).mean(axis=1)
    return bool(near.max(initial=0.0) >= _DUPLICATES / 2.0)


def _duplicates(scores: Floats) -> float:
    """Share of canaries whose scores agree with another's at all lags; 0 on a grid.

    Args:
        scores: Shape ``(lags, canaries)``.
    """
    low, high = np.quantile(scores, [0.25, 0.75], axis=1, keepdims=True)
    varies = (high > low)[:, 0]
    if not varies.any() or scores.shape[1] < _FEWEST or _on_grid(scores[varies]):
        return 0.0
    scaled = ((scores - low)[varies] / (high - low)[varies]).T
    rounded = np.floor(scaled / _EQUAL + 0.37)
    counts = np.unique(rounded, axis=0, return_counts=True)[1]
    several = counts[counts > 1]
    # One block of equal scores, as of probabilities that round to 1, is no set of duplicates.
    return float(several.sum() / counts.sum()) if several.size >= _BLOCKS else 0.0


def _on_grid(scores: Floats) -> bool:
    """Whether scores have few values, half precision or up to seven digits."""
    if max(np.unique(row).size for row in scores) < scores.shape[1] / 10.0:
        return True
    bits = np.frexp(scores)[0] * 2.0**12
    size = np.floor(np.log10(np.where(scores == 0.0, 1.0, np.abs(scores))))
    digits = scores / 10.0 ** (size - 6.0)
    return any(bool((np.abs(part - np.round(part)) < 1e-3).all()) for part in (bits, digits))
