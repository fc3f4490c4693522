"""Coins: each example is held out with probability 1/2, whatever happens to the others."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.canaries import deal_texts
from remnant.canaries.dealing import tails
from remnant.errors import InvalidInput


def test_coins_are_fair_and_independent():
    texts = [f"note number {number} of mine" for number in range(100, 140)]
    trials = 600
    planted = np.zeros((trials, len(texts)))
    for seed in range(trials):
        dealt = deal_texts(texts, controls=tails(len(texts), seed=seed), repeats=(1,), seed=seed)
        chosen = {canary.text for canary in dealt.canaries}
        planted[seed] = [text in chosen for text in texts]
    error = 0.5 / np.sqrt(trials)
    assert np.abs(planted.mean(0) - 0.5).max() < 4.5 * error
    correlations = np.corrcoef(planted.T)[np.triu_indices(len(texts), 1)]
    # Independent, not only exchangeable: a fixed number of controls would make the mean -1/39.
    assert abs(correlations.mean()) < 4 / np.sqrt(trials * len(correlations)) + 0.004
    counts = planted.sum(1)
    assert abs(counts.var() / (len(texts) / 4) - 1) < 4 * np.sqrt(2 / trials)


def test_the_same_seed_gives_the_same_coins_and_faults_are_named():
    assert tails(1000, seed=3) == tails(1000, seed=3)
    assert len({tails(1000, seed=seed) for seed in range(10)}) > 3
    assert tails(0, seed=0) == 0
    with pytest.raises(InvalidInput, match="seed=-1"):
        tails(5, seed=-1)
