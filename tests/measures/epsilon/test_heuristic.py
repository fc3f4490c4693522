"""The heuristic epsilon: the paper's figures, an increasing map, and no number for infinity."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import forgetting_curve, heuristic_epsilon


def curve_of(values, *, success="precision", low=None, high=None):
    rng = np.random.default_rng(0)
    shape = (len(values), 3, 40)
    made = forgetting_curve(
        seen_scores=rng.normal(size=shape),
        unseen_scores=rng.normal(size=shape),
        lags=np.arange(len(values)),
        success=success,
        rng=rng,
        draws=20,
    )
    values = np.array(values, dtype=float)
    return dataclasses.replace(
        made,
        value=values,
        low=values if low is None else np.array(low),
        high=values if high is None else np.array(high),
    )


def test_the_papers_own_figure():
    """A precision of 65 % at FPR 10 % is a TPR of 18.6 % and an epsilon of 0.62."""
    assert heuristic_epsilon(curve_of([0.65])).value[0] == pytest.approx(0.619, abs=5e-4)
    tpr = 0.1 * 0.65 / 0.35
    assert tpr == pytest.approx(0.186, abs=5e-4)
    assert heuristic_epsilon(curve_of([tpr], success="tpr")).value[0] == pytest.approx(0.619, 1e-3)


def test_chance_is_zero_and_worse_than_chance_is_shown():
    assert heuristic_epsilon(curve_of([0.5, 0.4])).value == pytest.approx((0.0, np.log(2 / 3)))
    assert heuristic_epsilon(curve_of([0.1], success="tpr")).value == pytest.approx((0.0,))


def test_what_is_infinite_or_undefined_is_no_number():
    found = heuristic_epsilon(curve_of([1.0, 0.7], low=[0.9, 0.0], high=[1.0, 0.9]))
    assert found.value[0] is None
    assert found.high[0] is None
    assert found.low == (pytest.approx(np.log(9)), None)
    assert heuristic_epsilon(curve_of([0.0], success="tpr")).value == (None,)
    assert heuristic_epsilon(curve_of([1.0], success="tpr")).value == (pytest.approx(np.log(10)),)


def test_the_ends_keep_their_order_on_a_real_curve():
    rng = np.random.default_rng(1)
    curve = forgetting_curve(
        seen_scores=0.8 + rng.normal(size=(4, 5, 60)),
        unseen_scores=rng.normal(size=(4, 5, 60)),
        lags=range(4),
        rng=rng,
    )
    found = heuristic_epsilon(curve)
    for low, value, high in zip(found.low, found.value, found.high, strict=True):
        assert low <= value <= high


@pytest.mark.parametrize("success", ["auc", "accuracy"])
def test_a_rate_without_tpr_and_fpr_is_refused(success):
    with pytest.raises(InvalidInput, match=f"a curve of {success} has no TPR"):
        heuristic_epsilon(curve_of([0.6], success=success))
