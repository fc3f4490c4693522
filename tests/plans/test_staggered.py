"""STAGGERED: the assignment is random and even, the uses are as promised, nothing else moves."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, PlanError
from remnant.plans import StaggeredPlan

PLAN = StaggeredPlan(
    canaries=90, never=30, starts=[20, 60], window=15, repeats=[1, 3], per_batch=9, batch=16
)
EXAMPLES = 100


def in_sequence(plan):
    schedule = plan.schedule(examples=EXAMPLES)
    return np.stack([schedule.batch(step)[0][0] for step in range(schedule.steps)])


def test_cohorts_are_even_and_never_is_part_of_canaries():
    cells = Counter(zip(PLAN.cohort_of.tolist(), PLAN.repeats_of.tolist(), strict=True))
    assert cells == {(-1, 0): 30, (0, 1): 15, (0, 3): 15, (1, 1): 15, (1, 3): 15}


def test_the_batches_hold_each_canary_as_often_as_said_and_no_batch_holds_one_twice():
    rows = in_sequence(PLAN)
    used = Counter((rows[rows >= EXAMPLES] - EXAMPLES).tolist())
    assert [used[c] for c in range(90)] == PLAN.repeats_of.tolist()
    for step, batch in enumerate(rows):
        canaries = batch[batch >= EXAMPLES]
        assert len(set(canaries)) == len(canaries) <= 9
        assert sorted(canaries - EXAMPLES) == PLAN.planted(step).tolist()


def test_first_and_last_seen_are_those_of_the_batches_and_inside_the_window():
    rows = in_sequence(PLAN)
    for canary in range(90):
        steps = np.flatnonzero((rows == EXAMPLES + canary).any(axis=1))
        if PLAN.cohort_of[canary] == -1:
            assert steps.size == 0
            assert PLAN.last_seen[canary] == PLAN.first_seen[canary] == -1
        else:
            start = PLAN.starts[PLAN.cohort_of[canary]]
            assert start <= steps[0] == PLAN.first_seen[canary]
            assert start + PLAN.window > steps[-1] == PLAN.last_seen[canary]


def test_the_ledger_is_what_the_batches_hold():
    ledger = PLAN.ledger()
    assert len(ledger) == PLAN.repeats_of.sum()
    for step, canary in zip(ledger.step, ledger.canary, strict=True):
        assert canary in PLAN.planted(step)
    assert set(ledger.uses) == {1}


def test_clean_rows_are_those_of_a_run_without_canaries():
    fewer = dataclasses.replace(PLAN, canaries=34, never=30)
    ours, theirs = in_sequence(PLAN), in_sequence(fewer)
    both = (ours < EXAMPLES) & (theirs < EXAMPLES)
    np.testing.assert_array_equal(ours[both], theirs[both])
    assert both.mean() > 0.8


def test_every_canary_is_as_likely_as_any_other_to_be_never_planted():
    never = np.zeros(90)
    for seed in range(400):
        never += dataclasses.replace(PLAN, seed=seed).cohort_of == -1
    assert stats.chisquare(never).pvalue > 1e-4


def test_steps_in_any_order_are_the_same():
    schedule, again = PLAN.schedule(examples=EXAMPLES), PLAN.schedule(examples=EXAMPLES)
    there = [schedule.batch(step)[0] for step in range(90)]
    back = [again.batch(step)[0] for step in reversed(range(90))]
    np.testing.assert_array_equal(there, back[::-1])


def test_the_fingerprint_moves_with_every_field():
    variants = [
        {"canaries": 91},
        {"never": 31},
        {"starts": (21, 60)},
        {"window": 16},
        {"repeats": (1, 2)},
        {"per_batch": 10},
        {"steps": 91},
        {"batch": 17},
        {"seed": 1},
        {"sampling": "replacement"},
        {"precision": "float64"},
    ]
    prints = {dataclasses.replace(PLAN, **change).fingerprint for change in variants}
    assert len(prints | {PLAN.fingerprint}) == len(variants) + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 74}, "after the last of steps=74"),
        ({"never": 0}, "never=0 is not a whole number of at least 1"),
        ({"never": 87}, "leaves 3 for 4 cohorts"),
        ({"starts": (60, 20)}, "increasing order"),
        ({"starts": (20, 30)}, "window=15 apart"),
        ({"starts": ()}, "starts="),
        ({"starts": (2.5,)}, "starts="),
        ({"repeats": (0,)}, "repeats="),
        ({"repeats": (16,)}, "different batches"),
        ({"per_batch": 17}, "more than batch=16"),
        ({"per_batch": 3}, "used 60 times, and window=15 x per_batch=3 has room for 45"),
    ],
)
def test_plans_that_contradict_themselves_say_so(change, words):
    with pytest.raises(PlanError, match=words):
        dataclasses.replace(PLAN, **change)


def test_an_empty_store_is_refused():
    with pytest.raises(InvalidInput, match="examples=0"):
        PLAN.schedule(examples=0)
