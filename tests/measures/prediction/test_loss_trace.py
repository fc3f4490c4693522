import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import loss_trace_iqr, stopping_point

LOSS = st.floats(0.01, 10.0)


@settings(max_examples=80)
@given(losses=arrays.arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=LOSS),
       drop=st.sampled_from([0.2, 0.5, 0.95]))  # fmt: skip
def test_the_first_moment_at_which_the_median_has_dropped(losses, drop):
    found = stopping_point(losses=losses, drop=drop)
    medians = [float(np.median(row)) for row in losses]
    expected = next(
        (t for t, m in enumerate(medians) if m <= (1 - drop) * medians[0] + 1e-12), None
    )
    assert found.index == expected
    gaps = [abs(1 - m / medians[0] - drop) for m in medians]
    assert gaps[found.closest] == pytest.approx(min(gaps))
    again = stopping_point(losses=medians, drop=drop)
    assert (again.index, again.closest) == (found.index, found.closest)
    np.testing.assert_allclose(again.dropped, found.dropped)
    if found.index is not None:
        assert stopping_point(losses=losses[: found.index + 1], drop=drop).index == found.index


def test_a_loss_that_never_drops_so_far_has_no_index():
    found = stopping_point(losses=[2.0, 0.5, 0.126])
    assert found.index is None
    assert found.closest == 2
    assert found.dropped[2] == pytest.approx(0.937)
    assert stopping_point(losses=[1.0, 0.05]).index == 1, "95 % counts, whatever rounding says"


@settings(max_examples=60)
@given(losses=arrays.arrays(float, st.tuples(st.integers(4, 9), st.integers(1, 5)), elements=LOSS))
def test_the_range_is_scipys(losses):
    np.testing.assert_allclose(loss_trace_iqr(losses), stats.iqr(losses, axis=0), atol=1e-12)
    np.testing.assert_allclose(
        loss_trace_iqr(losses[::-1] + 3.0), loss_trace_iqr(losses), atol=1e-12
    )


def test_faults():
    with pytest.raises(InvalidInput, match=r"drop=1\.5 .*; losses holds negative"):
        stopping_point(losses=[1.0, -1.0], drop=1.5)
    with pytest.raises(InvalidInput, match="at the start is 0"):
        stopping_point(losses=[0.0, 0.0])
    with pytest.raises(InvalidInput, match="not \\(moments, n\\)"):
        stopping_point(losses=np.ones((2, 2, 2)))
    for wrong in ([[np.nan]], [1.0], "losses"):
        with pytest.raises(InvalidInput):
            loss_trace_iqr(wrong)
    with pytest.raises(NotEnoughEvidence, match=r"3 epoch\(s\)"):
        loss_trace_iqr(np.ones((3, 2)))
