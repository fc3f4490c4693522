"""How often two models disagree whether a sample is memorised, against counting pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import flip_rate


def halves(rng, models, n):
    return rng.random((models, n)).argsort(axis=0) < models // 2


def by_pairs(scores, seen, threshold):
    """The definition: for every sample all pairs of models that saw it."""
    apart, both = [], []
    for i in range(scores.shape[1]):
        yes = scores[seen[:, i], i] >= threshold
        apart.append(np.mean([a != b for a, b in combinations(yes, 2)]))
        both.append(np.mean([a and b for a, b in combinations(yes, 2)]))
    once = np.mean([np.mean(scores[seen[:, i], i] >= threshold) for i in range(scores.shape[1])])
    return np.mean(apart), np.mean(both) / once if once else None


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), models=st.integers(6, 10), n=st.integers(1, 12))
def test_it_equals_counting_pairs(seed, models, n):
    rng = np.random.default_rng(seed)
    scores, seen = rng.normal(size=(models, n)) * 3, halves(rng, models, n)
    found = flip_rate(scores=scores, seen=seen, threshold=1.0)
    value, persistence = by_pairs(scores, seen, 1.0)
    assert found.value == pytest.approx(value)
    assert found.low <= found.value <= found.high
    assert found.persistence == (None if persistence is None else pytest.approx(persistence))


@pytest.mark.parametrize(("shared", "n"), [(0.0, 200), (1.0, 200), (0.5, 50)])
def test_the_interval_covers_over_models_and_samples(shared, n):
    """Samples differ in how likely they are memorised; models may share luck over all samples."""
    rng = np.random.default_rng(int(10 * shared) + n)
    models, audits = 32, 300
    knots, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def chance(level, luck):
        return 1 / (1 + np.exp(-(level + luck)))

    # Two models' lucks are independent, the sample's level is common: the true rate, by quadrature.
    levels = -2.0 + 2.0 * knots
    yes = np.array([weights @ chance(level, shared * knots) for level in levels])
    true = float(weights @ (2 * yes * (1 - yes)))
    held = 0
    for _ in range(audits):
        level = -2.0 + 2.0 * rng.normal(size=n)
        luck = shared * rng.normal(size=(models, 1))
        hit = rng.random((models, n)) < chance(level, luck)
        found = flip_rate(scores=np.where(hit, 9.0, 0.0), seen=halves(rng, models, n))
        held += found.low <= true <= found.high
    assert held / audits > 0.92, held / audits


def test_models_that_agree_never_flip_and_chance_flips_half_the_time():
    rng = np.random.default_rng(0)
    seen = halves(rng, 20, 100)
    same = np.broadcast_to(np.where(np.arange(100) < 10, 9.0, 0.0), (20, 100))
    found = flip_rate(scores=same, seen=seen)
    assert found.value == found.low == 0.0
    assert 0.0 < found.high < 0.2
    assert found.persistence == 1.0
    assert found.memorised == pytest.approx(0.1)
    coins = flip_rate(scores=9.0 * rng.integers(0, 2, (20, 100)), seen=seen)
    assert coins.low < 0.5 < coins.high
    assert flip_rate(scores=np.zeros((20, 100)), seen=seen).persistence is None


def test_faults_are_named():
    with pytest.raises(InvalidInput, match=r"confidence=1.* is not between 0 and 1"):
        flip_rate(scores=np.zeros((3, 2)), seen=np.ones((3, 2)), confidence=1.0)
    with pytest.raises(InvalidInput, match="threshold=nan is not a number"):
        flip_rate(scores=np.zeros((3, 2)), seen=np.ones((3, 2)), threshold=float("nan"))
    with pytest.raises(NotEnoughEvidence, match="too few for comparing two models"):
        flip_rate(scores=np.zeros((3, 2)), seen=[[1, 1], [1, 1], [1, 0]])
