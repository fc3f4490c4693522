import numpy as np
import pytest
from scipy import special

from remnant.measures import clopper_pearson
from remnant.measures.count_interval import LARGE, count_ends


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
