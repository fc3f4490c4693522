import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures import clopper_pearson, controls_needed


@settings(max_examples=100)
@given(n=st.integers(1, 400), share=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_clopper_pearson_agrees_with_scipy(n, share, confidence):
    hits = round(share * n)
    low, high = clopper_pearson(hits, n, confidence=confidence)
    exact = stats.binomtest(hits, n).proportion_ci(confidence, method="exact")
    np.testing.assert_allclose([low, high], [exact.low, exact.high], rtol=1e-9, atol=1e-12)


def test_clopper_pearson_broadcasts_and_takes_effective_sizes():
    low, high = clopper_pearson([0.0, 2.5, 10.0], 10.0)
    assert low.shape == high.shape == (3,)
    assert low[0] == 0.0
    assert high[2] == 1.0
    assert low[1] < 0.25 < high[1]
    assert np.shape(clopper_pearson(1, 5)[0]) == ()


@pytest.mark.parametrize("proportion", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("n", [10, 57])
def test_clopper_pearson_covers(proportion, n):
    hits = np.arange(n + 1)
    low, high = clopper_pearson(hits, n)
    inside = (low <= proportion) & (proportion <= high)
    assert stats.binom.pmf(hits, n, proportion)[inside].sum() >= 0.95


@pytest.mark.parametrize(
    ("hits", "n", "confidence"),
    [(3, 2, 0.95), (-1, 2, 0.95), (0, 0, 0.95), (np.nan, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)],
)
def test_clopper_pearson_refuses(hits, n, confidence):
    with pytest.raises(InvalidInput):
        clopper_pearson(hits, n, confidence=confidence)


@pytest.mark.parametrize(("fpr", "needed"), [(0.01, 299), (0.001, 2995), (0.05, 59), (0.1, 29)])
def test_controls_needed(fpr, needed):
    assert controls_needed(fpr=fpr) == needed
    assert (1 - fpr) ** needed <= 0.05 < (1 - fpr) ** (needed - 1)


def test_the_certified_threshold_holds_in_simulation():
    rng = np.random.default_rng(0)
    controls = rng.uniform(size=(4000, controls_needed(fpr=0.1, confidence=0.9)))
    holds = np.mean(1.0 - controls.max(axis=1) <= 0.1)
    assert holds > stats.binom.ppf(1e-4, 4000, 0.9) / 4000


def test_controls_needed_lists_all_faults():
    with pytest.raises(InvalidInput, match=r"fpr=0 .*; confidence=1"):
        controls_needed(fpr=0, confidence=1)
