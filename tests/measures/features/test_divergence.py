import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures import kl_divergences

ROWS = st.lists(
    st.lists(st.sampled_from([0.0, 1e-12, 1e-6, 0.01, 0.3, 1.0]), min_size=3, max_size=3).filter(
        sum
    ),
    min_size=2,
    max_size=6,
)


def shares(rows):
    array = np.array(rows)
    return array / array.sum(axis=1, keepdims=True)


@settings(max_examples=80)
@given(rows=ROWS, floor=st.sampled_from([1e-7, 1e-4]))
def test_it_is_the_sum_with_a_floor_in_the_logs(rows, floor):
    p = shares(rows)
    q = p[::-1]
    wanted = [
        math.fsum(a * (math.log(max(a, floor)) - math.log(max(b, floor))) for a, b in pair)
        for pair in np.stack([p, q], axis=2).tolist()
    ]
    found = kl_divergences(p, q, floor=floor)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert np.all(found <= -math.log(floor) + 1e-9)
    np.testing.assert_array_equal(kl_divergences(p, p), 0.0)


def test_it_is_scipys_entropy_above_the_floor_and_near_the_papers_clipping_below():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(10), 50), rng.dirichlet(np.ones(10), 50)
    np.testing.assert_allclose(
        kl_divergences(p, q, floor=1e-300), stats.entropy(p, q, axis=1), rtol=1e-9
    )
    sharp, other = rng.dirichlet(np.full(10, 0.01), 50), rng.dirichlet(np.full(10, 0.01), 50)
    a, b = np.clip(sharp, 1e-7, 1), np.clip(other, 1e-7, 1)
    np.testing.assert_allclose(
        kl_divergences(sharp, other), (a * np.log(a / b)).sum(axis=1), atol=10 * 1e-7 * 17
    )


def test_faults():
    with pytest.raises(InvalidInput, match=r"clean has shape \(2,\), stamped \(3,\)"):
        kl_divergences([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(InvalidInput, match="not all between 0 and 1"):
        kl_divergences([0.5, 0.5], [-0.5, 1.5])
    with pytest.raises(InvalidInput, match="clean holds 1 value"):
        kl_divergences([np.nan, 0.5], [0.5, 0.5])
