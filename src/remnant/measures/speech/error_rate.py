"""Word and character error rates: the fewest edits that turn what was heard into what was said."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from remnant.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """Edits over all utterances together.

    Attributes:
        edits: Words or characters that were left out, put in, or exchanged.
        length: Words or characters that were said.
    """

    edits: int
    length: int

    @property
    def value(self) -> float:
        """Edits for each word or character; above 1 where much was put in."""
        return self.edits / self.length


def word_error_rate(said: Sequence[str], heard: Sequence[str]) -> ErrorRate:
    """Return the word error rate of what was heard, over all utterances together.

    Example:
        >>> word_error_rate(["go to bed", "yes"], ["go bed", "yes"]).value
        0.25
    """
    return _rate([text.split() for text in said], [text.split() for text in heard])


def character_error_rate(said: Sequence[str], heard: Sequence[str]) -> ErrorRate:
    """Return the character error rate of what was heard, over all utterances together."""
    return _rate(said, heard)


def _rate(said: Sequence[Sequence[Hashable]], heard: Sequence[Sequence[Hashable]]) -> ErrorRate:
    if len(said) != len(heard):
        raise InvalidInput(f"{len(said)} utterances were said and {len(heard)} heard.")
    length = sum(map(len, said))
    if not length:
        raise InvalidInput("nothing was said, so that there is no error rate.")
    edits = sum(edit_distance(own, other) for own, other in zip(said, heard, strict=True))
    return ErrorRate(edits, length)


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return how many parts have to be left out, put in or exchanged to get from one to the other.

    Example:
        >>> edit_distance("kitten", "sitting")
        3
    """
    number: dict[Hashable, int] = {}
    ours, theirs = (
        np.array([number.setdefault(part, len(number)) for part in parts], dtype=np.int64)
        for parts in (first, second)
    )
    places = np.arange(len(theirs) + 1)
    row = places.copy()
    for done, part in enumerate(ours, start=1):
        kept = np.empty_like(row)
        kept[0] = done
        kept[1:] = np.minimum(row[1:] + 1, row[:-1] + (theirs != part))
        # Parts that are put in add one a place: the running minimum of what is left of it.
        row = np.minimum.accumulate(kept - places) + places
    return int(row[-1])
