"""INJECT: who is active when, on what, and who shares what with whom."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from remnant import InjectPlan

EXAMPLES = 50
PLAN = InjectPlan(canaries=3, step=10, watch_steps=15, trials=2, batch=8, fresh_canaries=False)


def in_sequence(plan, examples=EXAMPLES):
    schedule = plan.schedule(examples=examples)
    batches = [schedule.batch(step) for step in range(schedule.steps)]
    return np.stack([rows for rows, _ in batches]), np.stack([active for _, active in batches])


def variant(**changes):
    return dataclasses.replace(PLAN, **changes)


@pytest.mark.parametrize(
    ("changes", "injected"),
    [
        ({}, [10]),
        ({"step": 0}, [0]),
        ({"repeats": 3}, [10, 11, 12]),
        ({"step": (10, 20)}, [10, 21]),
        ({"step": (0, 1, 4), "repeats": 2}, [0, 1, 3, 4, 8, 9]),
        ({"aa": False}, [10]),
    ],
)
def test_exactly_the_planted_members_are_active_at_exactly_the_injected_steps(changes, injected):
    plan = variant(**changes)
    _, active = in_sequence(plan)
    assert plan.injected_steps == injected
    assert plan.checkpoint_step == injected[0]
    assert plan.planted_until == injected[-1] + 1
    assert plan.steps == len(active) == injected[-1] + 1 + 15
    expected = np.ones_like(active)
    expected[injected] = False
    expected[np.ix_(injected, plan.members_of("planted"))] = True
    np.testing.assert_array_equal(active, expected)


def test_a_members_number_says_its_trial_and_its_arm():
    assert PLAN.members == 6
    assert PLAN.arms == ("planted", "twin", "aa")
    assert [PLAN.members_of(arm).tolist() for arm in PLAN.arms] == [[0, 3], [1, 4], [2, 5]]
    alone = variant(aa=False)
    assert alone.members == 4
    assert [alone.members_of(arm).tolist() for arm in alone.arms] == [[0, 2], [1, 3]]


def test_the_injected_batch_is_the_canaries_tiled():
    plan = variant(repeats=2, step=(4, 10))
    rows, _ = in_sequence(plan)
    for step in plan.injected_steps:
        for member in plan.members_of("planted"):
            assert rows[step, member].tolist() == [50, 51, 52, 50, 51, 52, 50, 51]
    elsewhere = np.delete(rows, plan.injected_steps, axis=0)
    assert elsewhere.max() < EXAMPLES


@pytest.mark.parametrize(
    ("copies", "counts"),
    [(1, [1, 1, 1]), (2, [2, 2, 2]), ((1, 2, 4), [1, 2, 4]), ((3, 1), [3, 1, 3])],
)
def test_copies_stand_in_the_batch_and_clean_rows_fill_the_rest(copies, counts):
    plan = variant(copies=copies, repeats=3)
    rows, _ = in_sequence(plan)
    fills = []
    for step in plan.injected_steps:
        for member in plan.members_of("planted"):
            batch = rows[step, member]
            held = Counter(batch[batch >= EXAMPLES].tolist())
            assert held == {EXAMPLES + canary: count for canary, count in enumerate(counts)}
            fills.append(batch[batch < EXAMPLES])
    assert all(len(fill) == 8 - sum(counts) for fill in fills)
    if sum(counts) < 7:
        distinct = {fill.tobytes() for fill in fills}
        assert len(distinct) == len(fills), "two trials or two updates have the same filling"
    ledger = plan.ledger()
    np.testing.assert_array_equal(ledger.uses, np.tile(counts, 3 * plan.trials))


def test_the_filling_is_uniform_over_the_clean_rows():
    plan = InjectPlan(canaries=1, copies=1, step=0, repeats=400, watch_steps=0, trials=1, batch=26)
    rows, _ = in_sequence(plan, examples=10)
    counts = np.bincount(rows[:, 0, 1:].ravel(), minlength=10)
    assert len(counts) == 10
    assert (np.abs(counts - 1000) < 5 * np.sqrt(900)).all()


def test_shared_twins_meet_the_same_clean_batches_throughout():
    plan = variant(step=(4, 10), repeats=2)
    rows, _ = in_sequence(plan)
    clean = np.delete(rows, plan.injected_steps, axis=0)
    np.testing.assert_array_equal(
        clean[:, plan.members_of("planted")], clean[:, plan.members_of("twin")]
    )


def test_planting_changes_nothing_of_the_clean_batches():
    early, late = (
        np.delete(in_sequence(variant(step=step, watch_steps=30 - step))[0], step, axis=0)
        for step in (3, 20)
    )
    np.testing.assert_array_equal(early[:, [0, 1, 3, 4]], late[:, [0, 1, 3, 4]])


@pytest.mark.parametrize("sampling", ["epoch", "replacement"])
@pytest.mark.parametrize("twins", ["shared", "fresh"])
def test_who_shares_batches_and_until_when(twins, sampling):
    plan = variant(step=(4, 10), twins=twins, sampling=sampling)
    rows, _ = in_sequence(plan)
    first = plan.checkpoint_step
    clean = np.array([s for s in range(first, plan.steps) if s not in plan.injected_steps])
    for planted in plan.members_of("planted"):
        before, after = rows[:first, planted : planted + 3], rows[clean, planted : planted + 3]
        np.testing.assert_array_equal(before, np.repeat(before[:, :1], 3, axis=1))
        differs = {
            pair: (after[:, pair[0]] != after[:, pair[1]]).any(axis=1)
            for pair in [(0, 1), (0, 2), (1, 2)]
        }
        assert differs[0, 2].all()
        assert differs[1, 2].all()
        assert differs[0, 1].all() if twins == "fresh" else not differs[0, 1].any()


@pytest.mark.parametrize("twins", ["shared", "fresh"])
@pytest.mark.parametrize("step", [0, 1, 10, (4, 10)])
def test_the_trunk_says_the_truth(step, twins):
    plan = variant(step=step, twins=twins)
    schedule = plan.schedule(examples=EXAMPLES)
    rows, active = in_sequence(plan)
    assert schedule.trunks[0].steps == plan.checkpoint_step
    assert schedule.trunks[0].parents.tolist() == [0, 0, 0, 3, 3, 3]
    shared = slice(0, schedule.trunks[0].steps)
    np.testing.assert_array_equal(rows[shared], rows[shared, schedule.trunks[0].parents])
    assert active[shared].all()
    seeds = np.array(plan.seeds)
    np.testing.assert_array_equal(seeds, seeds[schedule.trunks[0].parents])


def test_fresh_canaries_have_rows_of_their_own():
    plan = variant(fresh_canaries=True, trials=3, copies=2)
    rows, _ = in_sequence(plan)
    for trial, member in enumerate(plan.members_of("planted")):
        batch = rows[10, member]
        expected = EXAMPLES + 3 * trial + np.arange(3)
        np.testing.assert_array_equal(plan.canary_rows(EXAMPLES, trial), expected)
        assert Counter(batch[batch >= EXAMPLES].tolist()) == dict.fromkeys(expected.tolist(), 2)


@pytest.mark.parametrize("sampling", ["epoch", "replacement"])
def test_trials_differ_from_each_other_and_not_from_themselves(sampling):
    plan = variant(trials=3, sampling=sampling)
    rows, _ = in_sequence(plan)
    for arm in plan.arms:
        own = rows[:10, plan.members_of(arm)]
        for one, other in [(0, 1), (0, 2), (1, 2)]:
            assert (own[:, one] != own[:, other]).any(axis=1).all()
    assert len(set(plan.seeds)) == 3
    fewer, _ = in_sequence(variant(trials=1, sampling=sampling))
    np.testing.assert_array_equal(fewer, rows[:, :3])
    assert variant(trials=1).seeds == plan.seeds[:3]


def test_another_seed_is_another_start_and_another_order():
    one, other = PLAN, variant(seed=1)
    assert not set(one.seeds) & set(other.seeds)
    assert not set(one.dropout_seeds) & set(other.dropout_seeds)
    clean = np.arange(one.steps) != 10
    assert (in_sequence(one)[0] != in_sequence(other)[0])[clean].any(axis=2).all()


@pytest.mark.parametrize(
    ("twins", "groups"), [("shared", [0, 0, 1, 2, 2, 3]), ("fresh", [0, 1, 2, 3, 4, 5])]
)
def test_dropout_is_shared_by_those_who_share_their_order(twins, groups):
    seeds = variant(twins=twins).dropout_seeds
    assert [[a == b for a in seeds] for b in seeds] == [[a == b for a in groups] for b in groups]
    assert not set(seeds) & set(PLAN.seeds)


def test_the_numbers_stay_what_they_are():
    """Records are resumed by the plan's fingerprint, so the rows behind it may never change."""
    rows, _ = in_sequence(variant(step=2, watch_steps=1, trials=1, batch=6, copies=1, seed=11))
    assert rows[:, 0].tolist() == [
        [0, 3, 7, 20, 33, 38],
        [23, 31, 25, 16, 1, 29],
        [50, 51, 52, 24, 45, 2],
        [48, 21, 36, 2, 42, 12],
    ]
    assert rows[3, 2].tolist() == [20, 5, 0, 39, 10, 27]
    drawn, _ = in_sequence(
        variant(step=0, watch_steps=1, trials=1, batch=6, sampling="replacement", seed=11)
    )
    assert drawn[1, 0].tolist() == [10, 40, 5, 45, 48, 16]
    assert PLAN.seeds[::3] == [29069723, 2009758698]
