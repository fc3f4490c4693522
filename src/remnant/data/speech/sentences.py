"""Sentences to be spoken: the words of a text, and sentences made of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from remnant.errors import InvalidInput

_WORD = re.compile(r"(?<![a-z0-9_'])[a-z]{2,14}(?![a-z0-9_'])")


def spoken_words(text: str) -> list[str]:
    """Return the words of a text that a synthesizer can speak: 2 to 14 plain letters each.

    Example:
        >>> spoken_words("The 3 files, and their _names_; don't!")
        ['the', 'files', 'and', 'their']
    """
    return _WORD.findall(text.lower())


def commonest_words(words: Iterable[str], *, at_most: int | None = None) -> list[str]:
    """Return the different words, the commonest first, equally common ones sorted.

    Example:
        >>> commonest_words(["b", "a", "c", "c"], at_most=2)
        ['c', 'a']
    """
    counts = Counter(words)
    return sorted(counts, key=lambda word: (-counts[word], word))[:at_most]


def drawn_sentences(
    choices: Sequence[str], *, count: int, words: int, rng: np.random.Generator
) -> list[str]:
    """Draw sentences of so many words each, every word uniform over ``choices``.

    Raises:
        InvalidInput: There are fewer than two words to choose from.
    """
    if len(choices) < 2:
        raise InvalidInput(
            f"{len(choices)} words are too few to make sentences of.", hint="Use a longer text."
        )
    return [
        " ".join(choices[place] for place in row)
        for row in rng.integers(len(choices), size=(count, words))
    ]


def passages(
    text_words: Sequence[str], *, count: int, words: int, rng: np.random.Generator
) -> list[str]:
    """Draw passages of a text that do not overlap, so many consecutive words each.

    Raises:
        InvalidInput: The text is too short.
    """
    there = len(text_words) // words
    if count > there:
        raise InvalidInput(
            f"{count} passages of {words} words were asked for, and the text has {there}.",
            hint="Use a longer text, or fewer utterances.",
        )
    starts = rng.permutation(there)[:count] * words
    return [" ".join(text_words[first : first + words]) for first in starts]
