"""Drawing distinct whole numbers, uniformly, from ranges of any size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np


def below(bound: int, *, rng: np.random.Generator) -> int:
    """Draw a whole number uniformly from ``range(bound)``; the bound may have any size.

    Draws as many bits as ``bound - 1`` has and begins anew where they are too large: a remainder
    would favour small numbers.
    """
    bits = (bound - 1).bit_length()
    whole = -(-bits // 8)
    while True:
        drawn = int.from_bytes(rng.bytes(whole), "little") >> (8 * whole - bits)
        if drawn < bound:
            return drawn


def draw_distinct(
    n: int, *, space: int, rng: np.random.Generator, exclude: Iterable[int] = ()
) -> list[int]:
    """Draw ``n`` distinct numbers of ``range(space)``, in random order.

    The first n steps of a Fisher-Yates shuffle of all numbers that are not excluded, of which only
    the entries that were moved are stored.

    Guarantees:
        * Every ordered choice of n distinct numbers is equally likely, for any space and any n.
        * A longer draw from an equal generator begins with the shorter one.

    ``n`` may not be more than the numbers that are left; the callers see to that.

    Example:
        >>> sorted(draw_distinct(4, space=6, rng=np.random.default_rng(0), exclude=[1, 5]))
        [0, 2, 3, 4]
    """
    barred = sorted(set(exclude))
    free = space - len(barred)
    # Of the numbers left, the k-th stands after all barred ones that leave at most k before them.
    gaps = [number - rank for rank, number in enumerate(barred)]
    moved: dict[int, int] = {}
    drawn: list[int] = []
    for first, ahead in enumerate(_falling(n, bound=free, rng=rng)):
        chosen = first + ahead
        number = moved.get(chosen, chosen)
        moved[chosen] = moved.pop(first, first)
        drawn.append(number + bisect_right(gaps, number))
    return drawn


def _falling(n: int, *, bound: int, rng: np.random.Generator) -> Iterator[int]:
    """Draw as ``below`` from ``range(bound)``, ``range(bound - 1)`` and so on: n numbers in all.

    Numbers of as many bits are drawn together, and never more of them than are sure to be needed:
    the generator gives the bytes that it would give one by one, and stands where it would stand.
    """
    while n > 0:
        bits = (bound - 1).bit_length()
        whole = -(-bits // 8)
        size = -(-whole // 4) * 4  # a generator gives whole words, and what is left is dropped
        alike = min(n, bound - (1 << bits >> 1))
        drawn = rng.bytes(size * alike)
        for at in range(0, size * alike, size) if size else range(alike):
            number = int.from_bytes(drawn[at : at + whole], "little") >> (8 * whole - bits)
            if number < bound:
                yield number
                n, bound = n - 1, bound - 1
