"""INSERT in epochs, and text that is not shuffled."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import PlanError
from remnant.plans import InsertPlan
from remnant.plans.insert import InsertEpochsPlan
from remnant.plans.schedule import Order


@given(epochs=st.integers(1, 9), examples=st.integers(1, 400), batch=st.integers(1, 64))
def test_epochs_end_with_the_step_that_completes_them(epochs, examples, batch):
    plan = InsertEpochsPlan(repeats=(1,), epochs=epochs, batch=batch)
    steps = plan.of(examples=examples).steps
    assert (steps - 1) * batch < epochs * examples <= steps * batch


def test_steps_make_the_plain_plan():
    given = {"repeats": (1, 4), "trials": 2, "controls": 3, "batch": 8, "seed": 5, "twin": True}
    made = InsertEpochsPlan(steps=20, **given)
    assert made.of(examples=100) == made.of(examples=999) == InsertPlan(steps=20, **given)
    assert made.members == 4
    assert made.canaries == 2


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 3, "epochs": None},
        {"epochs": 5},
        {"epochs": 2.5},
        {"repeats": (2,)},
        {"trials": 2},
        {"controls": 1},
        {"twin": True},
        {"batch": 63},
        {"seed": 1},
        {"sampling": "fixed"},
        {"precision": "float64"},
    ],
)
def test_the_fingerprint_moves_with_every_field(change):
    plan = InsertEpochsPlan(repeats=(1,), epochs=4)
    assert dataclasses.replace(plan, **change).fingerprint != plan.fingerprint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "give either steps or epochs"),
        ({"steps": 1, "epochs": 1}, "give either steps or epochs"),
        ({"epochs": 0}, "epochs=0 is not a number above 0"),
        ({"epochs": math.inf}, "epochs=inf"),
        ({"epochs": True}, "epochs=True"),
        ({"epochs": "3"}, "epochs='3'"),
        ({"steps": 0}, "steps=0 is not a whole number of at least 1"),
        ({"steps": 2.5}, "steps=2.5 is not a whole number"),
        ({"epochs": 1, "batch": 0}, "batch=0"),
        ({"epochs": 1, "sampling": "sorted"}, "sampling='sorted'"),
    ],
)
def test_a_faulty_plan(fields, message):
    with pytest.raises(PlanError, match=message):
        InsertEpochsPlan(repeats=(1,), **fields)


@given(pool=st.integers(1, 30), batch=st.integers(1, 40), step=st.integers(0, 9))
def test_a_fixed_order_walks_through_the_pool_as_it_stands(pool, batch, step):
    order = Order(keys=[(0,), (1,)], pool=pool, batch=batch, sampling="fixed")
    expected = np.arange(step * batch, (step + 1) * batch) % pool
    np.testing.assert_array_equal(order.rows(step), [expected, expected])


def test_unshuffled_canaries_are_met_in_the_same_steps_by_all_trials():
    plan = InsertPlan(repeats=(1, 2), steps=20, trials=3, batch=4, sampling="fixed")
    ledger = plan.ledger(examples=40)
    for canary in range(6):
        assert sorted(set(ledger.step[ledger.canary == canary])) == [0, 10]
