"""Near-duplicates in a list of texts: MinHash proposes pairs, exact measures decide.

A passage that stands in the data a hundred times makes repeats mean something else. As Lee et al.
(Deduplicating Training Data Makes Language Models Better) have it, two texts are duplicates if the
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
    """Find near-duplicates, in time that grows with the number of texts and not with its square.

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
        >>> found = find_duplicates(["a b c d e f g", "other words", "A  b c d e f g"])
        >>> found.keep.tolist(), found.pairs.tolist()
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
    grams = [_grams(one, words) for one in cut]
    rivals = _proposed(grams, jaccard, permutations, seed)
    similarity = _edit_similarity()
    pairs = [
        (one, other)
        for one, other in rivals
        if _jaccard(grams[one], grams[other]) >= jaccard
        and similarity(cut[one], cut[other]) >= edit
    ]
    group = _groups(len(texts), pairs)
    return Duplicates(
        keep=np.flatnonzero(group == np.arange(len(texts))),
        group=group,
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        proposed=len(rivals),
    )


def _grams(words: list[str], many: int) -> frozenset[tuple[str, ...]]:
    last = max(1, len(words) - many + 1)
    return frozenset(tuple(words[at : at + many]) for at in range(last))


def _jaccard(one: frozenset[Any], other: frozenset[Any]) -> float:
    return len(one & other) / len(one | other)


def _proposed(
    grams: list[frozenset[tuple[str, ...]]], jaccard: float, permutations: int, seed: int
) -> list[tuple[int, int]]:
    """Pairs that share a band of their MinHash signatures."""
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError as fault:
        raise _missing("datasketch", fault) from None
    # Equal sets share every band; the index is not asked to tell 1 from a little less.
    index = MinHashLSH(threshold=min(jaccard, 0.95), num_perm=permutations, weights=_RECALL)
    found = []
    for number, one in enumerate(grams):
        sketch = MinHash(num_perm=permutations, seed=seed)
        sketch.update_batch([" ".join(gram).encode() for gram in sorted(one)])
        found += [(int(before), number) for before in index.query(sketch)]
        index.insert(number, sketch)
    return sorted(found)


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
        hint="pip install 'remnant[dedup]'",
    )


def _groups(many: int, pairs: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The first member of each one's connected group."""
    parent = list(range(many))

    def first(one: int) -> int:
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for one, other in pairs:
        low, high = sorted((first(one), first(other)))
        parent[high] = low
    return np.array([first(one) for one in range(many)], dtype=np.int64)
