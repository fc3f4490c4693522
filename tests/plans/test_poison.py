"""POISON: each canary so many times an epoch until the step, and nothing else changed."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from remnant import PoisonPlan
from remnant.errors import PlanError

EXAMPLES = 50
PLAN = PoisonPlan(canaries=3, step=21, watch_steps=9, trials=2, batch=8, repeats=2)
EPOCH = 7  # steps: 50 rows in batches of 8


def in_sequence(plan, examples=EXAMPLES):
    schedule = plan.schedule(examples=examples)
    batches = [schedule.batch(step) for step in range(schedule.steps)]
    assert all(active.all() for _, active in batches)
    return np.stack([rows for rows, _ in batches])


def variant(**changes):
    return dataclasses.replace(PLAN, **changes)


@pytest.mark.parametrize("sampling", ["epoch", "replacement"])
@pytest.mark.parametrize(
    ("changes", "epoch"),
    [
        ({}, EPOCH),
        ({"repeats": 1}, EPOCH),
        ({"epoch_steps": 3}, 3),
        ({"epoch_steps": 21, "repeats": 9}, 21),
        ({"fresh_canaries": True}, EPOCH),
    ],
)
def test_each_canary_is_used_so_many_times_in_every_epoch_and_never_after(changes, epoch, sampling):
    plan = variant(sampling=sampling, **changes)
    rows = in_sequence(plan)
    for trial, member in enumerate(plan.members_of("planted")):
        for first in range(0, 21, epoch):
            used = rows[first : first + epoch, member]
            expected = dict.fromkeys(plan.canary_rows(EXAMPLES, trial).tolist(), plan.repeats)
            assert Counter(used[used >= EXAMPLES].tolist()) == expected
    assert rows[21:].max() < EXAMPLES
    others = np.setdiff1d(np.arange(plan.members), plan.members_of("planted"))
    assert rows[:, others].max() < EXAMPLES


def test_a_canary_left_over_in_a_broken_epoch_is_not_made_up_for():
    whole, broken = variant(step=28), variant(step=24)
    np.testing.assert_array_equal(in_sequence(broken)[:24], in_sequence(whole)[:24])
    assert in_sequence(broken)[24:].max() < EXAMPLES
    assert broken.ledger(examples=EXAMPLES).uses.sum() < whole.ledger(examples=EXAMPLES).uses.sum()


@pytest.mark.parametrize("sampling", ["epoch", "replacement"])
def test_shared_twins_differ_in_exactly_the_canaries_places(sampling):
    plan = variant(sampling=sampling)
    rows = in_sequence(plan)
    planted, twin = rows[:, plan.members_of("planted")], rows[:, plan.members_of("twin")]
    np.testing.assert_array_equal(planted != twin, planted >= EXAMPLES)
    assert (planted >= EXAMPLES).sum() == 2 * 3 * 3 * 2  # trials, epochs, canaries, repeats


def test_fresh_and_aa_members_have_an_order_of_their_own_from_the_first_step():
    shared, fresh = in_sequence(PLAN), in_sequence(variant(twins="fresh"))
    for planted in PLAN.members_of("planted"):
        for rows, other in [(shared, 2), (fresh, 1), (fresh, 2)]:
            assert (rows[:, planted] != rows[:, planted + other]).any(axis=1).all()
    np.testing.assert_array_equal(shared[:, [2, 5]], fresh[:, [2, 5]])
    assert PLAN.checkpoint_step == 0
    assert PLAN.schedule(examples=EXAMPLES).trunks == ()


def test_trials_and_epochs_have_places_of_their_own():
    places = in_sequence(PLAN)[:21, PLAN.members_of("planted")] >= EXAMPLES
    patterns = {p.tobytes() for p in places.reshape(3, EPOCH, 2, 8).swapaxes(1, 2).reshape(6, -1)}
    assert len(patterns) == 6


def test_places_are_uniform_over_the_epoch():
    plan = PoisonPlan(canaries=2, step=4000, watch_steps=0, trials=1, batch=5, epoch_steps=4)
    rows = in_sequence(plan, examples=30)[:, 0].reshape(1000, 20)
    for canary in (30, 31):
        counts = (rows == canary).sum(axis=0)
        assert counts.sum() == 1000
        assert stats.chisquare(counts).pvalue > 1e-4


def test_every_place_of_an_epoch_can_be_taken():
    plan = PoisonPlan(
        canaries=4, step=6, watch_steps=2, trials=1, batch=6, repeats=3, epoch_steps=2
    )
    rows = in_sequence(plan, examples=12)
    assert rows[:6, 0].min() == 12
    assert rows[6:, 0].max() < 12


def test_a_ledger_needs_to_know_how_long_an_epoch_is():
    with pytest.raises(PlanError, match="length of an epoch") as caught:
        PLAN.ledger()
    assert caught.value.hint == "Call ledger(examples=n), or give the plan epoch_steps."
    named, counted = variant(epoch_steps=EPOCH).ledger(), PLAN.ledger(examples=EXAMPLES)
    np.testing.assert_array_equal(named.step, counted.step)
    assert named.uses.sum() == 2 * 3 * 3 * 2
    assert set(counted.member) == {0, 3}
    assert counted.step.max() < 21


def test_steps_are_counted_to_removal_and_on():
    assert (PLAN.planted_until, PLAN.steps, PLAN.members) == (21, 30, 6)


def test_canaries_that_do_not_fit_the_epoch_of_these_examples_are_refused():
    plan = PoisonPlan(canaries=9, step=5, watch_steps=5, batch=8, repeats=2)
    words = "canaries=9 x repeats=2 do not fit the 16 places of an epoch of 2 steps"
    for ask in (plan.schedule, plan.ledger):
        with pytest.raises(PlanError, match=words):
            ask(examples=16)
        ask(examples=17)


def test_planted_for_less_than_an_epoch_each_canary_is_still_used():
    plan = PoisonPlan(canaries=6, step=3, watch_steps=4, trials=2, batch=4)
    ledger = plan.ledger(examples=100)
    for member in plan.members_of("planted"):
        assert sorted(ledger.canary[ledger.member == member]) == list(range(6))
    assert ledger.step.max() < 3


def test_copies_are_dealt_to_the_canaries_in_turn():
    plan = variant(repeats=1, canaries=4, copies=[1, 3])
    assert plan.copies_of.tolist() == [1, 3, 1, 3]
    rows = in_sequence(plan)
    for trial, member in enumerate(plan.members_of("planted")):
        stored = plan.canary_rows(EXAMPLES, trial).tolist()
        for first in range(0, 21, EPOCH):
            used = rows[first : first + EPOCH, member]
            found = Counter(used[used >= EXAMPLES].tolist())
            assert found == dict(zip(stored, [1, 3, 1, 3], strict=True))
    assert plan.ledger(examples=EXAMPLES).uses.sum() == 2 * 3 * 8
    same = variant(repeats=1, copies=2)
    np.testing.assert_array_equal(in_sequence(same), in_sequence(PLAN))
    with pytest.raises(PlanError, match="copies=3 and repeats=2 both say how often"):
        variant(copies=3)
    with pytest.raises(PlanError, match=r"copies=\(1, 99\) do not fit the 56 places"):
        variant(repeats=1, copies=(1, 99)).schedule(examples=EXAMPLES)
