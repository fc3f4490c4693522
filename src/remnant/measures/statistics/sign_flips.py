r"""A sign-flip test over groups: is the first number of a pair larger more often than by chance?

Each pair says higher (+1), lower (-1) or level (0). Pairs of one group, such as the secrets of one
letter, need not be independent of each other; groups are. If nothing but a coin decided which of
the two numbers of a group's pairs is called the first, exchanging them is as likely as not, for
each group on its own. So with d the sum of the signs of a group, all

    Σ ±|d|

are equally likely, and the p-value is the share of them that are at least Σ d. It is worked out
exactly. A group whose signs cancel says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats

LEAST = 5  # groups: four have no p-value under 5 %
FEWEST_PAIRS = 6  # of a two-sided test: five have no p-value under 5 %
_EXACT = 36  # pairs whose 2^n exchanges are counted from two halves
_BINS = 1 << 16


@dataclass(frozen=True, slots=True)
class SignFlipTest:
    """Whether the first numbers are the larger ones.

    Attributes:
        higher, lower, level: Pairs whose first number is larger, smaller, neither.
        groups: Groups whose signs do not cancel.
        p_value: Small where the first are larger; one-sided.
        method: In words.
    """

    higher: int
    lower: int
    level: int
    groups: int
    p_value: float
    method: str


def sign_flip_test(*, signs: ArrayLike, groups: ArrayLike) -> SignFlipTest:
    """Test "the two numbers of a pair could as well be exchanged", group by group.

    Args:
        signs: 1, 0 or -1 for each pair, shape ``(n,)``.
        groups: The number of each pair's group; pairs of equal numbers belong together.

    Guarantees:
        * Under the null, ``p_value <= a`` has probability at most ``a``, however the pairs of a
          group depend on each other.
        * With each pair in a group of its own it is the sign test, level pairs left out.

    Raises:
        InvalidInput: Signs that are none of the three; arrays of unequal length.
        NotEnoughEvidence: Fewer than five groups whose signs do not cancel.

    Example:
        >>> found = sign_flip_test(signs=[1, 1, 1, -1, 1, 1, 1], groups=[0, 0, 1, 2, 3, 4, 5])
        >>> found.higher, found.groups, found.p_value
        (6, 6, 0.09375)
    """
    faults: list[str] = []
    given = read_floats("signs", signs, 1, faults)
    labels = read_floats("groups", groups, 1, faults)
    if given is not None and not np.isin(given, (-1.0, 0.0, 1.0)).all():
        faults.append("signs holds others than 1, 0 and -1")
    if given is not None and labels is not None and given.size != labels.size:
        faults.append(f"signs has {given.size} entries and groups {labels.size}")
    require(faults)
    if given is None or labels is None:
        raise InvalidInput("signs and groups must be arrays of numbers.")
    _, places = np.unique(labels, return_inverse=True)
    sums = np.bincount(places, weights=given).round().astype(np.int64)
    sums = sums[sums != 0]
    if sums.size < LEAST:
        raise NotEnoughEvidence(
            f"Groups that say higher or lower: {sums.size}, too few for a test; it takes {LEAST}."
        )
    return SignFlipTest(
        higher=int((given > 0).sum()),
        lower=int((given < 0).sum()),
        level=int((given == 0).sum()),
        groups=int(sums.size),
        p_value=_share_as_large(sums),
        method=f"all exchanges of {sums.size} groups",
    )


def _share_as_large(sums: NDArray[np.int64]) -> float:
    """The share of all Σ ±|d| that are at least Σ d.

    The positive ones of a choice add up to (Σ|d| + Σ ±|d|)/2, a whole number; its law is that of
    one group more at a time.
    """
    law = np.zeros(int(np.abs(sums).sum()) + 1)
    law[0] = 1.0
    for size in np.abs(sums).tolist():
        law[size:] = (law[size:] + law[:-size]) / 2.0
        law[:size] /= 2.0
    return min(float(law[int(sums[sums > 0].sum()) :].sum()), 1.0)


def no_difference_p_value(gaps: ArrayLike) -> float | None:
    """Two-sided p-value of "the two of each pair have one law", from their differences.

    Exchanging the two of a pair turns its difference round, so that all Σ ±d are equally likely
    under one law. The p-value is the share of them that are as far from 0 as Σ d. A small one shows
    that the laws differ; it need not be their means.

    Args:
        gaps: One difference a pair.

    Returns:
        At most a with probability a under one law, whatever that is. None under six pairs, where no
        outcome has a p-value under 5 %.

    Example:
        >>> no_difference_p_value([1.0, 2.0, 0.5, 3.0, 1.0, 2.0])
        0.03125
        >>> no_difference_p_value([1.0, 2.0, 0.5]) is None
        True
    """
    sizes = np.abs(np.asarray(gaps, dtype=np.float64))
    observed = abs(float(np.sum(gaps)))
    if sizes.size < FEWEST_PAIRS:
        return None
    observed -= 1e-9 * float(sizes.sum())  # sums that are equal but for rounding
    if sizes.size > _EXACT:
        return _p_value_of_many(sizes, observed)
    first, second = (_all_sums(part) for part in (sizes[::2], sizes[1::2]))
    first.sort()
    upper = first.size - np.searchsorted(first, observed - second, side="left")
    return float(min(1.0, 2.0 * upper.sum() / 2.0**sizes.size)) if observed > 0.0 else 1.0


def _all_sums(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.zeros(1)
    for size in sizes.tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _p_value_of_many(sizes: NDArray[np.float64], observed: float) -> float:
    """The same on a grid; sums within its rounding count as far enough."""
    total = float(sizes.sum())
    if observed <= 0.0:
        return 1.0
    whole = np.round(sizes / total * _BINS).astype(np.int64)
    law = np.zeros(int(whole.sum()) + 1)
    law[0] = 1.0
    for size in whole[whole > 0].tolist():
        law[size:] = (law[size:] + law[:-size]) / 2.0
        law[:size] /= 2.0
    least = (observed / total * _BINS - sizes.size / 2.0 + whole.sum()) / 2.0
    return float(min(1.0, 2.0 * law[max(0, int(np.ceil(least))) :].sum()))
