"""Canaries that come in clusters: which cluster each of them belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.resampling import Groups

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
