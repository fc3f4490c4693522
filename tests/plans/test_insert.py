"""INSERT: twins differ in the planted examples and in nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import PlanError
from remnant.plans import InsertPlan

PLANS = st.builds(
    InsertPlan,
    repeats=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    steps=st.integers(1, 30),
    trials=st.integers(1, 3),
    twin=st.booleans(),
    batch=st.integers(1, 9),
    seed=st.integers(0, 99),
    sampling=st.sampled_from(["epoch", "replacement", "fixed"]),
)


def rows_of(plan, examples):
    schedule = plan.schedule(examples=examples)
    batches = [schedule.batch(step) for step in range(plan.steps)]
    assert all(active.all() for _, active in batches)
    return np.stack([rows for rows, _ in batches])


@settings(max_examples=60)
@given(plan=PLANS, examples=st.integers(16, 40))
def test_twins_differ_in_the_planted_examples_alone(plan, examples):
    rows = rows_of(plan, examples)
    assert rows.shape == (plan.steps, plan.members, plan.batch)
    for trial, member in enumerate(plan.members_of("planted")):
        places = plan.places(examples=examples, trial=trial)
        assert len(set(places.tolist())) == plan.copies
        mine = rows[:, member]
        planted = mine >= examples
        copies = mine[planted] - examples - trial * plan.copies
        assert ((copies >= 0) & (copies < plan.copies)).all()
        clean = mine.copy()
        clean[planted] = places[copies]
        assert not np.isin(mine[~planted], places).any()
        if plan.twin:
            np.testing.assert_array_equal(clean, rows[:, plan.members_of("twin")[trial]])


@settings(max_examples=40)
@given(plan=PLANS, examples=st.integers(16, 40))
def test_the_ledger_counts_what_the_schedule_shows(plan, examples):
    rows, ledger = rows_of(plan, examples), plan.ledger(examples=examples)
    assert ledger.uses.sum() == (rows >= examples).sum()
    owners = plan.copy_canaries
    for member, canary, step, uses in zip(
        ledger.member, ledger.canary, ledger.step, ledger.uses, strict=True
    ):
        trial, own = divmod(int(canary), plan.canaries)
        assert member == plan.members_of("planted")[trial]
        first = examples + trial * plan.copies
        shown = rows[step, member]
        copies = shown[shown >= examples] - first
        assert (owners[copies] == own).sum() == uses


def test_an_epoch_shows_every_copy_once():
    plan = InsertPlan(repeats=(1, 2, 5), steps=10, batch=4)
    assert plan.ledger(examples=40).uses.sum() == 8


def test_a_trial_does_not_depend_on_the_number_of_trials():
    few = InsertPlan(repeats=(2, 3), steps=12, trials=1, batch=5)
    many = InsertPlan(repeats=(2, 3), steps=12, trials=3, batch=5)
    np.testing.assert_array_equal(rows_of(few, 20), rows_of(many, 20)[:, :2])
    assert few.seeds == many.seeds[:2]
    assert len(set(many.seeds)) == len(set(many.dropout_seeds)) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"repeats": ()}, "repeats=\\(\\) is not a list"),
        ({"repeats": (0,)}, "at least 1"),
        ({"repeats": (True,)}, "at least 1"),
        ({"repeats": 3}, "repeats=3"),
        ({"steps": 0}, "steps=0"),
        ({"twin": 1}, "twin=1"),
        ({"precision": "half"}, "precision='half'"),
    ],
)
def test_faults(fields, message):
    with pytest.raises(PlanError, match=message):
        InsertPlan(**{"repeats": (1,), "steps": 3, **fields})


def test_more_copies_than_examples():
    with pytest.raises(PlanError, match="adds up to 9 copies, more than the 8 examples"):
        InsertPlan(repeats=(9,), steps=3).schedule(examples=8)
