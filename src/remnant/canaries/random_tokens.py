"""Random-token canaries: sequences that no text predicts, and others they could have been."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.canaries.sampling import draw_distinct
from remnant.errors import InvalidInput, require

Ids = NDArray[np.int64]


def random_token_sequences(
    *, count: int, tokens: int, choices: ArrayLike, rng: np.random.Generator
) -> Ids:
    """Draw sequences of tokens, each token uniform over ``choices``, no two sequences alike.

    Canaries and references are drawn in one call and then separated by their place, so that
    either could have been the other.

    Args:
        count: How many sequences.
        tokens: Of each.
        choices: The tokens they are made of, none twice.
        rng: Draws them.

    Returns:
        int64 ``(count, tokens)``.

    Guarantees:
        * Every ordered choice of distinct sequences is equally likely.
        * A longer draw from an equal generator begins with the shorter one.

    Raises:
        InvalidInput: Fewer than two choices, one that is there twice, or fewer sequences than asked
            for.

    Example:
        >>> random_token_sequences(
        ...     count=3, tokens=2, choices=[7, 9], rng=np.random.default_rng(0)).tolist()
        [[9, 7], [7, 7], [9, 9]]
    """
    own = np.asarray(choices)
    faults = [
        f"{name}={value!r} is not a whole number of at least 1"
        for name, value in (("count", count), ("tokens", tokens))
        if isinstance(value, bool) or not isinstance(value, int) or value < 1
    ]
    if own.ndim != 1 or not np.issubdtype(own.dtype, np.integer):
        faults.append("choices is not a list of tokens")
    elif len(own) < 2 or len(np.unique(own)) < len(own):
        faults.append(f"choices has {len(np.unique(own))} different tokens of {len(own)}")
    require(faults)
    space = len(own) ** tokens
    if count > space:
        raise InvalidInput(
            f"count={count} sequences of {tokens} tokens were asked for, and there are {space}.",
            hint="Use longer sequences, more tokens to choose from, or fewer of them.",
        )
    made = np.empty((count, tokens), dtype=np.int64)
    for row, number in zip(made, draw_distinct(count, space=space, rng=rng), strict=True):
        rest = number
        for place in range(tokens):
            rest, digit = divmod(rest, len(own))
            row[place] = own[digit]
    return made


def commonest_tokens(ids: ArrayLike, *, vocabulary_size: int, at_most: int | None = None) -> Ids:
    """Return the tokens of a vocabulary, the commonest of ``ids`` first, ties sorted.

    Args:
        ids: The text.
        vocabulary_size: How many tokens there are; those that the text lacks come last.
        at_most: Keep so many.

    Example:
        >>> commonest_tokens([2, 0, 2], vocabulary_size=4, at_most=2).tolist()
        [2, 0]
    """
    counts = np.bincount(np.asarray(ids, dtype=np.int64).ravel(), minlength=vocabulary_size)
    return np.argsort(-counts, kind="stable")[:at_most]
