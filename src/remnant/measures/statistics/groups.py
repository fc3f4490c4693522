"""Canaries that come in clusters: which cluster each of them belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from remnant.measures.statistics.resampling import Groups

GroupPair = tuple[Groups | None, Groups | None]
NO_GROUPS: GroupPair = (None, None)


def read_group_pair(given: Any, *, n_seen: int, n_unseen: int, faults: list[str]) -> GroupPair:
    """The clusters of the seen and of the unseen side, numbered from 0.

    Args:
        given: None; one label for each canary, where both sides are the same canaries; or a pair of
            label sequences, for the seen and for the unseen side.
        n_seen, n_unseen: Canaries on each side.
        faults: Grows by one sentence part where something is wrong.
    """
    if given is None:
        return NO_GROUPS
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(_is_labels, given)):
        seen = read_groups("groups[0]", given[0], n_seen, faults)
        return seen, read_groups("groups[1]", given[1], n_unseen, faults)
    if n_seen != n_unseen:
        faults.append(
            f"groups is one sequence of labels, but there are {n_seen} seen and {n_unseen} unseen "
            "canaries; pass a pair of sequences"
        )
        return NO_GROUPS
    both = read_groups("groups", given, n_seen, faults)
    return both, both


def read_groups(name: str, given: Any, n: int, faults: list[str]) -> Groups | None:
    """The clusters in ``given``, numbered from 0; None, with the reason added, where faulty."""
    try:
        labels = np.asarray(given)
    except ValueError:
        labels = np.empty((0, 0))
    if labels.ndim != 1:
        faults.append(f"{name} is not one label a canary")
        return None
    if labels.size != n:
        faults.append(f"{name} has {labels.size} labels for {n} canaries")
        return None
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        faults.append(f"{name} holds labels that are NaN or infinite")
        return None
    try:
        numbers = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
    except TypeError:
        faults.append(f"{name} mixes labels that cannot be compared")
        return None
    if n and numbers.max() == 0:
        faults.append(f"{name} puts all canaries into one cluster; it takes two or more")
        return None
    return numbers


def _is_labels(part: Any) -> bool:
    return isinstance(part, Sequence | np.ndarray) and not isinstance(part, str)
