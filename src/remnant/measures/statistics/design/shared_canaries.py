r"""Are the canaries of one side the same in all trainings?

What a shared canary contributes is in every training's success, so the spread between trainings
says nothing of other canaries. Scores in the same place then correlate over trainings. With R the
mean rank correlation over pairs of T trainings, (n-1)(1 + (T-1) R) has for independent rows of n
scores the mean n-1 and the variance 2(n-1)(T-1)/T; a gamma law with these is its tail (Friedman's
test has the same statistic). A side counts as shared where this is improbable at 1 % over both
sides and all lags. A side that is taken for shared in error has a slightly wider interval.

A canary that is planted in one training and unseen in others *rotates*: its part in the two sides
cancels. It is not shared.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.measures.statistics.groups import cluster_numbers
from remnant.measures.statistics.resampling import Counts, smoothed_counts

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
