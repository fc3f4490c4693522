"""Pearson's correlation and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.statistics.rank_agreement import linear_agreement


@settings(max_examples=50)
@given(seed=st.integers(0, 999), n=st.integers(10, 60), scale=st.sampled_from([1e-13, 1.0, 1e8]))
def test_it_is_pearsons_whatever_the_units(seed, n, scale):
    rng = np.random.default_rng(seed)
    one = rng.lognormal(size=n)
    other = one * rng.normal() + rng.normal(size=n)
    found = linear_agreement(first=one * scale, second=3.0 - other)
    assert found.value == pytest.approx(-stats.pearsonr(one, other).statistic)
    assert found.low <= found.value <= found.high
    assert found.n == n
    again = linear_agreement(first=3.0 - other, second=one)
    assert [found.low, found.high] == pytest.approx([again.low, again.high])


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize(("law", "slope"), [("normal", 0.0), ("normal", 1.0), ("skewed", 0.0)])
def test_coverage(law, slope, n):
    """Of unrelated scores of either law, and of related ones that are not skewed."""
    rng, draws = np.random.default_rng(0), 600
    truth = slope / np.sqrt(1.0 + slope**2)
    hits = 0
    for _ in range(draws):
        one = rng.normal(size=n) if law == "normal" else rng.lognormal(size=n)
        found = linear_agreement(first=one, second=slope * one + rng.normal(size=n))
        hits += found.low <= truth <= found.high
    assert hits >= stats.binom.ppf(0.002, draws, 0.95)


def test_what_cannot_be_said_is_refused():
    line = np.arange(10.0)
    with pytest.raises(NotEnoughEvidence, match="9 samples are too few"):
        linear_agreement(first=line[:9], second=line[:9])
    with pytest.raises(InvalidInput, match="second is the same for all samples"):
        linear_agreement(first=line, second=np.ones(10))
    with pytest.raises(InvalidInput, match="first has 10 entries and second 11"):
        linear_agreement(first=line, second=np.arange(11.0))
