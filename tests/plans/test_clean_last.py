"""Canaries first, then clean steps: the same rows in another order."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.errors import PlanError
from remnant.plans import InsertPlan
from remnant.plans.changed_rows import CleanLast

EXAMPLES = 60


def rows_of(schedule):
    return np.stack([schedule.batch(step)[0] for step in range(schedule.steps)])


@pytest.mark.parametrize("clean", [5, 12, 25])
def test_every_member_is_given_the_same_rows_and_ends_with_clean_ones(clean):
    plan = InsertPlan(repeats=(1, 3), steps=40, trials=3, batch=6, twin=True)
    before = rows_of(plan.schedule(examples=EXAMPLES))
    made = CleanLast(plan.schedule(examples=EXAMPLES), examples=EXAMPLES, clean=clean, seed=0)
    after = rows_of(made)
    assert (before[-clean:] >= EXAMPLES).any()
    assert (after[-clean:] < EXAMPLES).all()
    for member in range(plan.members):
        assert sorted(before[:, member].ravel()) == sorted(after[:, member].ravel())
    twins = plan.members_of("twin")
    np.testing.assert_array_equal(before[:, twins], after[:, twins])


def test_few_rows_move():
    plan = InsertPlan(repeats=(1,), steps=40, trials=2, batch=6)
    before = rows_of(plan.schedule(examples=EXAMPLES))
    after = rows_of(
        CleanLast(plan.schedule(examples=EXAMPLES), examples=EXAMPLES, clean=20, seed=0)
    )
    late = int((before[-20:] >= EXAMPLES).sum())
    assert int((before != after).sum()) == 2 * late


def test_what_does_not_fit_is_refused():
    plan = InsertPlan(repeats=(1,), steps=10, batch=6)
    with pytest.raises(PlanError, match="10 clean steps at the end leave none before"):
        CleanLast(plan.schedule(examples=EXAMPLES), examples=EXAMPLES, clean=10, seed=0)
    crowded = InsertPlan(repeats=(58,), steps=10, batch=6)
    with pytest.raises(PlanError, match="do not fit into"):
        CleanLast(crowded.schedule(examples=EXAMPLES), examples=EXAMPLES, clean=8, seed=0)
