"""Near-duplicates: exactly those of the definition, found without comparing everything."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from remnant.data import find_duplicates, standard_library_text
from remnant.errors import InvalidInput, MissingExtra


def edit_distance(one, other):
    """The textbook's table."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def by_definition(texts, jaccard=0.7, edit=0.7, words=5):
    cut = [text.lower().split() for text in texts]
    grams = [{tuple(c[i : i + words]) for i in range(max(1, len(c) - words + 1))} for c in cut]
    found = []
    for i, j in itertools.combinations(range(len(texts)), 2):
        near = len(grams[i] & grams[j]) / len(grams[i] | grams[j]) >= jaccard
        longest = max(len(cut[i]), len(cut[j]))
        if near and 1 - edit_distance(cut[i], cut[j]) / longest >= edit:
            found.append((i, j))
    return found


@pytest.fixture(scope="module")
def texts():
    """Random texts of few words, some of them copies with a few words changed."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(40):
        words = rng.integers(50, size=rng.integers(30, 80))
        made.append(words)
        for changes in rng.integers(0, 6, size=rng.integers(0, 3)):
            copy = words.copy()
            copy[rng.integers(len(copy), size=changes)] = rng.integers(50, size=changes)
            made.append(copy)
    order = rng.permutation(len(made))
    return [" ".join(f"w{word}" for word in made[i]) for i in order]


def test_pairs_are_those_of_the_definition(texts):
    expected = by_definition(texts)
    found = [tuple(pair) for pair in find_duplicates(texts).pairs.tolist()]
    assert len(expected) > 10
    assert set(found) <= set(expected)
    assert len(found) >= 0.95 * len(expected)


def test_far_fewer_pairs_are_looked_at_than_there_are(texts):
    found = find_duplicates(texts)
    assert found.proposed < len(texts) * (len(texts) - 1) / 2 / 10


def test_groups_are_connected_and_the_first_is_kept():
    chain = ["a b c d e f g h i j", "a b c d e f g h i k", "b c d e f g h i k l", "x y z"]
    found = find_duplicates(chain)
    assert found.pairs.tolist() == [[0, 1], [1, 2]]
    assert found.group.tolist() == [0, 0, 0, 3]
    assert found.keep.tolist() == [0, 3]


def test_the_order_of_words_counts():
    """The same n-grams in another order: Jaccard says yes, the edit distance no."""
    halves = "a b c d e f g h i j k l", "m n o p q r s t u v w x"
    turned = [" ".join(halves), " ".join(halves[::-1])]
    found = find_duplicates(turned, words=1)
    assert (found.proposed, found.pairs.tolist()) == (1, [])


def test_equal_texts_are_always_found_on_a_real_corpus():
    files = standard_library_text(characters=60_000).train.split("\n\n")
    again = [*files, *(text.upper() for text in files[:50])]
    found = find_duplicates(again)
    assert all(found.group[len(files) + i] == found.group[i] for i in range(50))
    assert len(found.keep) <= len(files)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jaccard": 0.0}, "jaccard=0.0"),
        ({"edit": 1.5}, "edit=1.5"),
        ({"words": 0}, "words=0"),
        ({"permutations": 2}, "permutations=2"),
        ({"texts": "one text"}, "not a list of strings"),
        ({"texts": [b"bytes"]}, "not a list of strings"),
    ],
)
def test_bad_input_is_named(changes, words):
    asked = {"texts": ["a", "b"]} | changes
    with pytest.raises(InvalidInput, match=words):
        find_duplicates(asked.pop("texts"), **asked)


@pytest.mark.parametrize("library", ["datasketch", "rapidfuzz"])
def test_a_missing_library_is_named(monkeypatch, library):
    names = [name for name in sys.modules if name.split(".")[0] == library]
    for name in [*names, library, f"{library}.distance"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"needs {library}.*\[dedup\]"):
        find_duplicates(["a", "b"])


def test_no_texts_have_no_duplicates():
    assert find_duplicates([]).keep.tolist() == []
