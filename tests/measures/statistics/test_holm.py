"""Holm's correction: its definition, its guarantees, and scipy-free arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.measures.statistics.holm import holm

PVALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(pvalues=PVALUES, alpha=st.sampled_from([0.01, 0.05, 0.2]))
def test_it_rejects_what_the_step_down_procedure_rejects(pvalues, alpha):
    rejected = set()
    for step, index in enumerate(np.argsort(pvalues, kind="stable")):
        if pvalues[index] * (len(pvalues) - step) > alpha:
            break
        rejected.add(int(index))
    assert set(np.flatnonzero(holm(pvalues) <= alpha).tolist()) == rejected


@given(pvalues=PVALUES)
def test_it_never_lowers_and_keeps_the_order(pvalues):
    found = holm(pvalues)
    assert np.all(found >= np.array(pvalues))
    assert np.all(found <= 1)
    assert np.all(np.diff(found[np.argsort(pvalues, kind="stable")]) >= 0)


@pytest.mark.parametrize("pvalues", [[], [1.1], [-0.1], [np.nan], "x"])
def test_what_is_no_pvalue_is_refused(pvalues):
    with pytest.raises(InvalidInput):
        holm(pvalues)
