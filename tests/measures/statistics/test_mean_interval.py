"""The interval of a mean: against a slow definition, and its coverage on laws that are hard."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.measures.statistics import mean_interval as module
from remnant.measures.statistics.mean_interval import mean_interval


def by_hand(values, bound, confidence, draws, rng):
    """One resample after another, with Python's own sums."""
    n = len(values)
    mean = math.fsum(values) / n

    def deviation(some, middle):
        return math.sqrt(math.fsum((x - middle) ** 2 for x in some) / (n - 1))

    ts = []
    for row in rng.integers(0, n, size=(draws, n)):
        drawn = [values[i] for i in row]
        middle = math.fsum(drawn) / n
        alike = len(set(row)) == 1
        ts.append(0.0 if alike else (middle - mean) / deviation(drawn, middle))
    ts.sort()
    tail = (1 - confidence) / 2
    place = max(int(tail * (draws + 1)), 1)
    student = stats.t.isf(tail, n - 1) / math.sqrt(n)
    own = deviation(values, mean)
    low = mean - own * max(ts[draws - place], student)
    high = mean + own * max(-ts[place - 1], student)
    squares = [(x - mean) ** 2 for x in values]
    few = math.fsum(squares) ** 2 / math.fsum(s * s for s in squares) < 5
    more = bound * (1 - tail ** (1 / n)) if few else 0.0
    return max(low - more, -bound), min(high + more, bound), few


@settings(max_examples=40)
@given(
    seed=st.integers(0, 9999),
    n=st.integers(5, 40),
    skew=st.sampled_from([0.1, 1.0, 3.0]),
    confidence=st.sampled_from([0.8, 0.95]),
)
def test_it_is_its_definition(seed, n, skew, confidence):
    rng = np.random.default_rng(seed)
    values = 0.01 * (np.exp(skew * rng.normal(size=n)) - 1.0)
    bound = max(1.0, 2 * np.abs(values).max())
    found = mean_interval(
        values, bound=bound, confidence=confidence, draws=39, rng=np.random.default_rng(seed)
    )
    low, high, few = by_hand(values.tolist(), bound, confidence, 39, np.random.default_rng(seed))
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-9, atol=1e-12)
    assert found.carried_by_few == few
    assert found.low <= values.mean() <= found.high


def test_blocks_change_nothing(monkeypatch):
    values = np.random.default_rng(0).exponential(size=30)
    settings = {"bound": 16.0, "confidence": 0.95, "draws": 200}
    whole = mean_interval(values, **settings, rng=np.random.default_rng(1))
    monkeypatch.setattr(module, "BLOCK", 7 * 30)
    assert mean_interval(values, **settings, rng=np.random.default_rng(1)) == whole


LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 0.7,
    "more skewed": lambda rng, shape: 0.1 * (rng.gamma(0.3, size=shape) - 0.1),
    "two kinds": lambda rng, shape: (
        np.where(rng.random(shape) < 0.1, 3.0, 0.0) + 0.2 * rng.normal(size=shape)
    ),
    "a few carry it": lambda rng, shape: (
        np.sign(rng.random(shape) - 0.9) * np.minimum(np.exp(4 * rng.normal(size=shape) - 8), 16.0)
    ),
}


@pytest.mark.parametrize(
    ("law", "n", "nominal"),
    [
        ("normal", 20, 0.95),
        ("normal", 300, 0.95),
        ("skewed", 20, 0.93),
        ("skewed", 300, 0.95),
        ("more skewed", 50, 0.93),
        ("more skewed", 300, 0.94),
        ("two kinds", 100, 0.94),
        ("a few carry it", 20, 0.95),
        ("a few carry it", 300, 0.95),
    ],
)
def test_it_covers(law, n, nominal, covers):
    rng = np.random.default_rng(3)
    truth = LAWS[law](rng, 3_000_000).mean()
    inside = []
    for values in LAWS[law](rng, (1000, n)):
        found = mean_interval(values, bound=16.2, confidence=0.95, draws=199, rng=rng)
        inside.append(found.low <= truth <= found.high)
    assert covers(inside, nominal), np.mean(inside)


def test_the_bound_is_called_for_only_where_few_carry_the_spread():
    rng = np.random.default_rng(0)
    settings = {"bound": 16.0, "confidence": 0.95, "draws": 199, "rng": rng}
    assert not mean_interval(rng.normal(size=100), **settings).carried_by_few
    alike = mean_interval(np.zeros(100), **settings)
    assert alike.carried_by_few
    # 3.7 in a hundred images may be unlike all that were seen, with 97.5 % on either side.
    assert alike.high == -alike.low == pytest.approx(16.0 * (1 - 0.025 ** (1 / 100)))
    one = np.zeros(100)
    one[3] = 9.0
    assert mean_interval(one, **settings).carried_by_few
    assert mean_interval(np.full(100, 0.3), **settings).low < 0.3
