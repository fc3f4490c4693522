"""Near-duplicates in a list of texts: MinHash proposes pairs, exact measures decide.

A passage that occurs a hundred times in the data distorts any count of repeats. As in Lee et al.
(Deduplicating Training Data Makes Language Models Better), two texts are duplicates if the
Jaccard similarity of their word n-grams and the similarity of their words by edit distance both
reach 0.7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import MissingExtra, import_failure, require

_WORD = re.compile(r"\w+|[^\w\s]")
_RECALL = (0.05, 0.95)  # weights of false proposals, which cost time, and of missed ones


@dataclass(frozen=True, slots=True, eq=False)
class Duplicates:
    """Which texts are near-duplicates of which.

    Attributes:
        keep: The first text of every group, and all texts without a duplicate, in order.
        group: The number of each text's first duplicate, its own where it is the first.
        pairs: Pairs that were found, the smaller number first, shape ``(pairs, 2)``.
        proposed: Pairs that MinHash proposed and the exact measures looked at.
    """

    keep: NDArray[np.int64]
    group: NDArray[np.int64]
    pairs: NDArray[np.int64]
    proposed: int


def find_duplicates(
    texts: Sequence[str],
    *,
    jaccard: float = 0.7,
    edit: float = 0.7,
    words: int = 5,
    permutations: int = 128,
    seed: int = 1,
) -> Duplicates:
    """Find near-duplicates, in time that is linear in the number of texts.

    Duplicates of duplicates are one group, of which the first is kept.

    Args:
        texts: To be compared, case and blanks aside.
        jaccard: Least Jaccard similarity of the sets of word n-grams.
        edit: Least similarity of the words, ``1 - distance / length of the longer``.
        words: Words of an n-gram; a shorter text is one n-gram.
        permutations: Of MinHash.
        seed: Of MinHash.

    Guarantees:
        * Every pair has both similarities, exactly: MinHash only proposes.
        * Equal texts are always found.

    Raises:
        InvalidInput: Similarities outside (0, 1], counts under 1, texts that are not strings.
        MissingExtra: datasketch or rapidfuzz is not installed.

    Example:
        >>> duplicates = find_duplicates(["a b c d e f g", "other words", "A  b c d e f g"])
        >>> duplicates.keep.tolist(), duplicates.pairs.tolist()
        ([0, 1], [[0, 2]])
    """
    faults = [
        f"{name}={value!r} is not above 0 and at most 1"
        for name, value in (("jaccard", jaccard), ("edit", edit))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1
    ]
    faults += [
        f"{name}={value!r} is not a whole number of at least {least}"
        for name, value, least in (("words", words, 1), ("permutations", permutations, 16))
        if isinstance(value, bool) or not isinstance(value, int) or value < least
    ]
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        faults.append("texts is not a list of strings")
    require(faults)
    cut = [_WORD.findall(text.lower()) for text in texts]
    grams = [_grams(text_words, words) for text_words in cut]
    proposals = _proposed(grams, jaccard, permutations, seed)
    similarity = _edit_similarity()
    pairs = [
        (first, second)
        for first, second in proposals
        if _jaccard(grams[first], grams[second]) >= jaccard
        and similarity(cut[first], cut[second]) >= edit
    ]
    group = _groups(len(texts), pairs)
    return Duplicates(
        keep=np.flatnonzero(group == np.arange(len(texts))),
        group=group,
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        proposed=len(proposals),
    )


def _grams(words: list[str], size: int) -> frozenset[tuple[str, ...]]:
    last = max(1, len(words) - size + 1)
    return frozenset(tuple(words[at : at + size]) for at in range(last))


def _jaccard(first: frozenset[Any], second: frozenset[Any]) -> float:
    return len(first & second) / len(first | second)


def _proposed(
    grams: list[frozenset[tuple[str, ...]]], jaccard: float, permutations: int, seed: int
) -> list[tuple[int, int]]:
    """Pairs that share a band of their MinHash signatures."""
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError as fault:
        raise _missing("datasketch", fault) from None
    # Equal sets share every band; the index need not distinguish 1 from a little less.
    index = MinHashLSH(threshold=min(jaccard, 0.95), num_perm=permutations, weights=_RECALL)
    pairs = []
    for number, own in enumerate(grams):
        sketch = MinHash(num_perm=permutations, seed=seed)
        sketch.update_batch([" ".join(gram).encode() for gram in sorted(own)])
        pairs += [(int(before), number) for before in index.query(sketch)]
        index.insert(number, sketch)
    return sorted(pairs)


def _edit_similarity() -> Any:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as fault:
        raise _missing("rapidfuzz", fault) from None
    return Levenshtein.normalized_similarity


def _missing(library: str, fault: ImportError) -> MissingExtra:
    return import_failure(
        fault,
        library=library,
        message=f"Finding near-duplicates needs {library}.",
        extra="dedup",
    )


def _groups(texts: int, pairs: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The first member of each one's connected group."""
    parent = list(range(texts))

    def first(member: int) -> int:
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    for left, right in pairs:
        low, high = sorted((first(left), first(right)))
        parent[high] = low
    return np.array([first(member) for member in range(texts)], dtype=np.int64)
