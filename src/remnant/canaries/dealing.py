"""Deals examples of one's own at random to controls and to numbers of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries.canary_set import whole_fault
from remnant.errors import NotEnoughEvidence, require

LEAST_CONTROLS = 10  # a threshold at a false-positive rate of 10 % takes as many
LEAST_OF_A_LEVEL = 4  # examples planted equally often, for a rank test that can be significant
_STREAM, _COINS = 6, 9  # of random numbers, beside those of an audit


@dataclass(frozen=True, slots=True)
class Dealt:
    """Who is planted how often, by number of the example.

    Attributes:
        planted: The examples that are planted, those planted least first.
        repeats: How often each of them is.
        held_out: Those that never are.
    """

    planted: tuple[int, ...]
    repeats: tuple[int, ...]
    held_out: tuple[int, ...]


def deal(count: int, *, controls: int, repeats: Sequence[int], seed: int, given: int = 0) -> Dealt:
    """Draw the controls, and deal the other examples evenly to the numbers of repeats.

    Args:
        count: How many examples there are.
        controls: How many of them are held out.
        repeats: How often examples are planted.
        seed: Fixes the draw.
        given: How many controls there are beside these.

    Raises:
        InvalidInput: A number is not a whole one in its range.
        NotEnoughEvidence: There are fewer than 10 controls, or fewer than 4 examples for a number
            of repeats: no attack could be shown to work.
    """
    faults = [
        fault
        for at, often in enumerate(repeats)
        for fault in whole_fault(f"repeats[{at}]", often, least=1)
    ]
    faults += whole_fault("seed", seed, least=0)
    faults += whole_fault("controls", controls, least=0)
    faults += [] if len(repeats) else ["repeats is empty: nothing is planted"]
    require(faults)
    order = np.random.default_rng([int(seed), _STREAM]).permutation(count).tolist()
    held_out, planted = order[:controls], order[controls:]
    aside = len(held_out) + given
    if aside < LEAST_CONTROLS or len(planted) < LEAST_OF_A_LEVEL * len(repeats):
        raise NotEnoughEvidence(
            f"{len(planted)} examples would be planted in {len(repeats)} groups (repeats=) beside "
            f"{aside} controls; it takes at least {LEAST_OF_A_LEVEL} examples a group and "
            f"{LEAST_CONTROLS} controls.",
            hint="Pass more examples, or fewer numbers of repeats.",
        )
    dealt = sorted((int(repeats[i % len(repeats)]), number) for i, number in enumerate(planted))
    return Dealt(
        planted=tuple(number for _, number in dealt),
        repeats=tuple(often for often, _ in dealt),
        held_out=tuple(held_out),
    )


def tails(count: int, *, seed: int) -> int:
    """Return how many of so many fair coins show tails.

    If as many examples are then drawn at random to be held out, each of them was held out by a fair
    coin of its own.

    Raises:
        InvalidInput: A number is not a whole one in its range.
    """
    require([*whole_fault("count", count, least=0), *whole_fault("seed", seed, least=0)])
    return int(np.random.default_rng([int(seed), _COINS]).binomial(count, 0.5))
