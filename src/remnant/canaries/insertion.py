"""Where canaries go among examples, and putting them into a list of texts.

Every way to insert answers with ``where``: one row per copy, ``(position, canary)``, sorted by
position. Positions count the new sequence from 0; canaries count ``canary_set.canaries`` from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.canaries.already_present import refuse_standing
from remnant.canaries.canary_set import PlantedTexts
from remnant.errors import InvalidInput, require

Where = NDArray[np.int64]


def place_canaries(
    canary_set: PlantedTexts,
    *,
    among: int,
    rng: np.random.Generator | None = None,
    positions: ArrayLike | None = None,
) -> Where:
    """Choose where each copy of each canary goes.

    Args:
        canary_set: What is planted; each canary has as many copies as its ``repeats``.
        among: How many examples there are.
        rng: Places the copies at random: every arrangement is equally likely.
        positions: Or, one for each entry of ``canary_set.copies``: the index of the *original*
            example before which the copy goes; ``among`` is the end. Copies before the same
            example keep the order of ``copies``.

    Returns:
        ``(position, canary)`` per copy, shape ``(copies, 2)``, sorted by position in the new
        sequence.

    Raises:
        InvalidInput: Not exactly one of ``rng`` and ``positions`` was given, or ``positions`` are
            not whole numbers from 0 to ``among``, one a copy.

    Example:
        >>> from remnant.canaries import Template, make_canary_set
        >>> planted = make_canary_set(Template("{hex:8}"), repeats=[2, 1], controls=0, seed=0)
        >>> place_canaries(planted, among=5, positions=[4, 0, 0]).tolist()
        [[0, 0], [1, 1], [6, 0]]
    """
    copies = canary_set.copies
    if (rng is None) == (positions is None):
        raise InvalidInput("Give exactly one of rng and positions.")
    if positions is None:
        if not isinstance(rng, np.random.Generator):
            raise InvalidInput(f"rng={rng!r} is not a numpy.random.Generator.")
        new = rng.choice(among + len(copies), size=len(copies), replace=False).astype(np.int64)
        order = np.argsort(new)
        return np.column_stack([new[order], copies[order]])
    before = _read_positions(positions, among=among, copies=len(copies))
    order = np.argsort(before, kind="stable")
    return np.column_stack([before[order] + np.arange(len(copies)), copies[order]])


def new_order(where: Where, *, among: int) -> NDArray[np.int64]:
    """Return the new sequence: original examples as 0 to ``among - 1``, canary c as ``among + c``.

    Example:
        >>> new_order(np.array([[0, 0], [1, 1], [3, 0]]), among=2)
        array([2, 3, 0, 2, 1])
    """
    order = np.empty(among + len(where), dtype=np.int64)
    is_canary = np.zeros(len(order), dtype=bool)
    is_canary[where[:, 0]] = True
    order[where[:, 0]] = among + where[:, 1]
    order[~is_canary] = np.arange(among)
    return order


def insert_into_texts(
    texts: Sequence[str],
    canary_set: PlantedTexts,
    *,
    rng: np.random.Generator | None = None,
    positions: ArrayLike | None = None,
) -> tuple[list[str], Where]:
    """Insert canaries into a list of texts, each copy as an item of its own.

    Args:
        texts: The examples; they are left as they are.
        canary_set: What is planted.
        rng: Places the copies at random; see ``place_canaries``.
        positions: Or, where each copy goes.

    Guarantees:
        * Without the items at ``where``, the result is ``texts``.
        * Each canary stands there as often as its ``repeats``; no control does.

    Returns:
        The new list, and ``where``.

    Raises:
        InvalidInput: ``texts`` is not a list of strings, or holds a canary or a control already; or
            see ``place_canaries``.
    """
    if isinstance(texts, str):
        raise InvalidInput("texts is one string, not a list of strings.")
    wrong = [at for at, text in enumerate(texts) if not isinstance(text, str)]
    if wrong:
        raise InvalidInput(f"texts[{wrong[0]}] is of type {type(texts[wrong[0]]).__name__}.")
    refuse_standing(texts, canary_set, where="texts")
    where = place_canaries(canary_set, among=len(texts), rng=rng, positions=positions)
    pool = [*texts, *(canary.text for canary in canary_set.canaries)]
    return [pool[index] for index in new_order(where, among=len(texts)).tolist()], where


def _read_positions(given: ArrayLike, *, among: int, copies: int) -> NDArray[np.int64]:
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidInput("positions is not a flat list of whole numbers.") from None
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput("positions is not a flat list of whole numbers.")
    faults: list[str] = []
    if len(array) != copies:
        faults.append(f"positions has {len(array)} entries for {copies} copies of the canaries")
    outside = array[(array < 0) | (array > among)]
    if len(outside):
        faults.append(f"positions holds {outside[0]}, outside 0 to {among}")
    require(faults, hint="Give one for each copy: the example before which it goes.")
    return array.astype(np.int64)
