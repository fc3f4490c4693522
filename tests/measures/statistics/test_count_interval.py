import numpy as np
import pytest
from scipy import special

from remnant.measures import clopper_pearson
from remnant.measures.statistics.intervals import LARGE, MANY, count_ends


@pytest.mark.parametrize("n", [1, 7, 601, 5000, 10**7])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999, 1 - 1e-13])
def test_ends_agree_with_clopper_pearson(n, confidence):
    counts = np.unique(np.linspace(0, n, 700).round().astype(np.int64))
    counts = np.append(counts, [n, 0, n // 2, n // 2])
    low, high = count_ends(counts, n, confidence)
    expected = clopper_pearson(counts, n, confidence=confidence)
    np.testing.assert_allclose(low, expected[0], rtol=1e-9)
    np.testing.assert_allclose(high, expected[1], rtol=1e-9)


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_ends_leave_a_tail_of_the_stated_weight(n):
    """1000 of 10⁹ is where SciPy's inverse goes astray."""
    counts = np.array([LARGE, 999, 1000, 1001, 12_345])
    low, high = count_ends(counts, n, 0.95)
    np.testing.assert_allclose(special.betainc(counts, n - counts + 1, low), 0.025, rtol=1e-7)
    np.testing.assert_allclose(special.betaincc(counts + 1, n - counts, high), 0.025, rtol=1e-7)


@pytest.mark.parametrize("n", [1500, 10**6, 10**9])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("spacing", [np.linspace, np.geomspace])
def test_interpolated_ends_are_those_worked_out_one_by_one(n, confidence, spacing):
    counts = np.unique(spacing(LARGE, n - LARGE, 400).round().astype(np.int64))
    assert len(counts) > MANY
    ends = count_ends(counts, n, confidence)
    few = [count_ends(counts[at : at + 50], n, confidence) for at in range(0, len(counts), 50)]
    for end, expected in zip(ends, zip(*few, strict=True), strict=True):
        np.testing.assert_allclose(end, np.concatenate(expected), rtol=1e-9)
    misses = [1.0 - end for end in ends]
    for end, expected in zip(misses, zip(*few, strict=True), strict=True):
        np.testing.assert_allclose(end, 1.0 - np.concatenate(expected), rtol=1e-9, atol=1e-15)
