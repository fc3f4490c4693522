"""Sentences are made of a text's words, the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.data.speech.synthesis import (
    commonest_words,
    drawn_sentences,
    passages,
    spoken_words,
)
from remnant.errors import InvalidInput


def test_words_that_can_be_spoken():
    assert spoken_words("Def __init__(self, x2): it's 3 READ-only") == [
        *("def", "self", "read", "only")
    ]
    assert commonest_words(["b", "a", "c", "c"]) == ["c", "a", "b"]


def test_drawn_sentences_are_uniform_over_the_words():
    rng = np.random.default_rng(0)
    made = drawn_sentences(["a", "b", "c"], count=3000, words=2, rng=rng)
    assert {len(text.split()) for text in made} == {2}
    counts = [sum(text.split().count(word) for text in made) for word in "abc"]
    assert max(abs(count - 2000) for count in counts) < 150
    again = drawn_sentences(["a", "b", "c"], count=3000, words=2, rng=np.random.default_rng(0))
    assert again == made
    with pytest.raises(InvalidInput, match="1 words are too few"):
        drawn_sentences(["a"], count=1, words=1, rng=rng)


def test_passages_do_not_overlap():
    words = [f"w{n}" for n in range(20)]
    made = passages(words, count=6, words=3, rng=np.random.default_rng(0))
    said = [word for text in made for word in text.split()]
    assert len(said) == len(set(said)) == 18
    assert all(text in " ".join(words) for text in made)
    with pytest.raises(InvalidInput, match=r"7 passages of 3 words were asked for, .* has 6"):
        passages(words, count=7, words=3, rng=np.random.default_rng(0))
