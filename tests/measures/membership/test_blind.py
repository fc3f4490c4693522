"""The blind baseline: void where two sets differ in themselves, and seldom where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.errors import NotEnoughEvidence
from remnant.measures.membership.blind import blind_baseline

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("n", "r", "st", "m")]


def sentences(count, rng, words=WORDS):
    weights = 1.0 / np.arange(1, len(words) + 1)
    lengths = rng.integers(8, 30, size=count)
    return [" ".join(rng.choice(words, size=n, p=weights / weights.sum())) for n in lengths]


def test_texts_of_one_source_are_seldom_void():
    """At 2 % nominal, 5 or more of 60 audits have a probability of 1 %."""
    rng = np.random.default_rng(5)
    baselines = [blind_baseline(sentences(40, rng), sentences(40, rng), rng=rng) for _ in range(60)]
    assert sum(baseline.void for baseline in baselines) <= 4
    values = np.array([baseline.value for baseline in baselines])
    assert abs(values.mean() - 0.5) < 0.03
    covered = [baseline.low <= 0.5 <= baseline.high for baseline in baselines]
    assert np.mean(covered) >= 0.95 - 2 * 0.03


@pytest.mark.parametrize("shift", ["words", "length", "digits", "one word"])
def test_two_sets_that_differ_make_an_audit_void(shift):
    rng = np.random.default_rng(2)
    seen, unseen = sentences(150, rng), sentences(150, rng)
    if shift == "words":
        unseen = sentences(150, rng, words=WORDS[::-1])
    elif shift == "length":
        unseen = [text[: len(text) // 2] for text in unseen]
    elif shift == "digits":
        unseen = [f"{text} {rng.integers(10**6)}" for text in unseen]
    else:
        unseen = [f"{text} december" for text in unseen]
    baseline = blind_baseline(seen, unseen, rng=rng)
    assert baseline.void
    assert baseline.value > 0.8


def test_which_side_is_which_does_not_matter_to_its_size():
    rng = np.random.default_rng(3)
    seen = sentences(60, rng)
    unseen = [f"{text} november" for text in sentences(60, rng)]
    forward = blind_baseline(seen, unseen, rng=np.random.default_rng(0))
    back = blind_baseline(unseen, seen, rng=np.random.default_rng(0))
    assert forward.void
    assert back.void


def test_sets_that_were_matched_are_void_too():
    """Every seen text has an unseen neighbour: a classifier is wrong more often than chance."""
    rng = np.random.default_rng(4)
    pairs = sentences(120, rng)
    baseline = blind_baseline(
        [f"{text} ." for text in pairs], [f"{text} ." for text in pairs[::-1]], rng=rng
    )
    assert baseline.value < 0.5
    assert baseline.high_bound < 0.5
    assert baseline.void


def test_odd_texts_are_read():
    odd = ["", " ", "\n\n", "\ud800", "é" * 9000, "a\x00b", "1234", "...", "日本語", "x"]
    baseline = blind_baseline(odd, list(reversed(odd)), rng=np.random.default_rng(0))
    assert 0.0 <= baseline.low <= baseline.value <= baseline.high <= 1.0


def test_too_few_texts_are_refused():
    with pytest.raises(NotEnoughEvidence, match="at least 10 of each"):
        blind_baseline(["a"] * 9, ["b"] * 50, rng=np.random.default_rng(0))
