"""What makes scores no evidence, whatever their bounds say: they are all alike.

An attack that is saturated, rounded, clipped or not computed gives seen and unseen examples one
number. Its success is then exactly chance, as after perfect forgetting. So no gate passes on scores
most of which tie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_TIES = 0.5  # of the pairs of a seen and an unseen score
_ROUNDING = 1e-12  # relative differences that are rounding


def tied_pairs(seen: Floats, unseen: Floats) -> Floats:
    """The share of the pairs of a seen and an unseen score that tie.

    Scores that differ by rounding alone are one number.

    Args:
        seen: Shape ``(..., n_seen)``.
        unseen: Shape ``(..., n_unseen)``.

    Returns:
        Shape ``(...)``.

    Example:
        >>> tied_pairs(np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0])).round(2).tolist()
        0.33
    """
    shares = np.empty(seen.shape[:-1])
    for place in np.ndindex(shares.shape):
        shares[place] = _tied(seen[place], unseen[place])
    return shares


def alike_fault(share: float, where: str = "") -> str:
    """Why scores of which so many pairs tie prove nothing; empty where they may.

    Args:
        share: See ``tied_pairs``.
        where: Behind the scores, such as " at the end".

    Example:
        >>> alike_fault(0.5), alike_fault(0.75).partition(":")[0]
        ('', '75% of the pairs of a seen and an unseen score tie')
    """
    if share <= MOST_TIES:
        return ""
    what = f"{share:.0%} of the pairs of a seen and an unseen score{where} tie"
    if share == 1.0:
        what = f"all scores{where} are one number, seen and unseen"
    return f"{what}: an attack that is saturated, rounded or not computed looks like this too"


def _tied(seen: Floats, unseen: Floats) -> float:
    both = np.concatenate([seen, unseen])
    if np.ptp(both) <= _ROUNDING * np.abs(both).max():
        return 1.0
    own, own_counts = np.unique(seen, return_counts=True)
    other, other_counts = np.unique(unseen, return_counts=True)
    _, ours, theirs = np.intersect1d(own, other, assume_unique=True, return_indices=True)
    pairs = own_counts[ours].astype(np.float64) @ other_counts[theirs]
    return float(pairs / (seen.size * unseen.size))
