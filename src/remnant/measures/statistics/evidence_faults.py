"""What makes scores no evidence, whatever their bounds say: they are all alike.

An attack that is saturated, rounded, clipped or not computed gives seen and unseen examples one
number. Its success is then exactly chance, as after perfect forgetting. So no gate passes on scores
most of which tie, nor where a side has one number only. Scores that are cut at an end hide how far
they lie apart there: with an AUC of 0.602 and a limit of 0.6, cuts at the median unseen score
passed in 28 %. So fewer ties are allowed at the lowest and at the highest score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MOST_TIES = 0.5  # of the pairs of a seen and an unseen score
MOST_AT_AN_END = 0.1  # of these pairs, at the lowest or at the highest score
_ROUNDING = 1e-12  # relative differences that are rounding


def tied_pairs(seen: Floats, unseen: Floats) -> Floats:
    """How far scores are alike: three numbers, the larger the less they prove.

    Scores that differ by rounding alone are one number.

    Args:
        seen: Shape ``(..., n_seen)``.
        unseen: Shape ``(..., n_unseen)``.

    Returns:
        Shape ``(..., 3)``: the share of the pairs of a seen and an unseen score that tie; the share
        that tie at the lowest score, or at the highest, whichever is larger; and 1 where all scores
        of one side are one number, else 0.

    Example:
        >>> tied_pairs(np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0])).round(2).tolist()
        [0.33, 0.33, 0.0]
    """
    shares = np.empty((*seen.shape[:-1], 3))
    for place in np.ndindex(seen.shape[:-1]):
        shares[place] = _tied(seen[place], unseen[place])
    return shares


def alike_fault(shares: ArrayLike, where: str = "") -> str:
    """Why scores that are so much alike prove nothing; empty where they may.

    Args:
        shares: The three of ``tied_pairs``.
        where: Behind the scores, such as " at the end".

    Example:
        >>> alike_fault([0.5, 0.1, 0.0]), alike_fault([0.75, 0.1, 0.0]).partition(":")[0]
        ('', '75% of the pairs of a seen and an unseen score tie')
    """
    tied, at_an_end, one_side = np.asarray(shares, dtype=np.float64).tolist()
    if tied == 1.0:
        what = f"all scores{where} are one number, seen and unseen"
    elif tied > MOST_TIES:
        what = f"{tied:.0%} of the pairs of a seen and an unseen score{where} tie"
    elif one_side:
        what = f"all scores of one side{where} are one number"
    elif at_an_end > MOST_AT_AN_END:
        what = (
            f"{at_an_end:.0%} of the pairs of a seen and an unseen score{where} tie at the lowest "
            "or highest score"
        )
    else:
        return ""
    return f"{what}: an attack that is saturated, rounded or not computed looks like this too"


def _tied(seen: Floats, unseen: Floats) -> tuple[float, float, float]:
    both = np.concatenate([seen, unseen])
    if _one_number(both):
        return 1.0, 1.0, 1.0
    own, own_counts = np.unique(seen, return_counts=True)
    other, other_counts = np.unique(unseen, return_counts=True)
    common, ours, theirs = np.intersect1d(own, other, assume_unique=True, return_indices=True)
    pairs = own_counts[ours].astype(np.float64) * other_counts[theirs]
    at_ends = pairs[(common == both.min()) | (common == both.max())]
    number = seen.size * unseen.size
    one_side = any(side.size > 1 and _one_number(side) for side in (seen, unseen))
    return float(pairs.sum() / number), float(at_ends.max(initial=0.0) / number), float(one_side)


def _one_number(scores: Floats) -> bool:
    return bool(np.ptp(scores) <= _ROUNDING * np.abs(scores).max())
