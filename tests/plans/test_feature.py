"""FEATURE: a stamped image in the place of one example, and nothing else changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant import FeaturePlan
from remnant.errors import PlanError
from remnant.plans.plan import FEATURE_ORDER
from remnant.plans.schedule import generator

PLAN = FeaturePlan(canaries=2, seeds=3, unplanted=2, epochs=4, batch=5, seed=7)


def by_hand(plan, examples, places):
    """Each member's rows, from its seed's permutations and one replacement."""
    steps = plan.epochs * max(1, round(examples / plan.batch))
    rows = np.empty((steps, plan.members, plan.batch), dtype=np.int64)
    members = [(s, c) for s in range(plan.seeds) for c in [*range(plan.canaries), None]]
    members += [(plan.seeds + extra, None) for extra in range(plan.unplanted)]
    for member, (stream, canary) in enumerate(members):
        walked, epoch = [], 0
        while len(walked) < steps * plan.batch:
            key = generator(plan.seed, FEATURE_ORDER, stream, epoch)
            walked += key.permutation(examples).tolist()
            epoch += 1
        for step in range(steps):
            for place in range(plan.batch):
                row = walked[step * plan.batch + place]
                planted = canary is not None and row == places[canary]
                rows[step, member, place] = examples + canary if planted else row
    return rows


@settings(max_examples=40)
@given(
    canaries=st.integers(1, 3),
    seeds=st.integers(2, 3),
    unplanted=st.integers(0, 2),
    epochs=st.integers(1, 3),
    batch=st.integers(1, 9),
    seed=st.integers(0, 2**40),
    examples=st.integers(3, 20),
    data=st.data(),
)
def test_rows_are_those_of_the_definition(
    canaries, seeds, unplanted, epochs, batch, seed, examples, data
):
    plan = FeaturePlan(
        canaries=canaries, seeds=seeds, unplanted=unplanted, epochs=epochs, batch=batch, seed=seed
    )
    places = data.draw(st.permutations(range(examples)))[:canaries]
    schedule = plan.schedule(examples=examples, places=places)
    expected = by_hand(plan, examples, places)
    assert (schedule.members, schedule.batch_size) == (plan.members, batch)
    assert schedule.steps == len(expected)
    for step in range(schedule.steps):
        rows, active = schedule.batch(step)
        assert active.all()
        np.testing.assert_array_equal(rows, expected[step])
    chosen = data.draw(st.lists(st.integers(0, plan.members - 1), min_size=1, max_size=4))
    some = plan.schedule(examples=examples, places=places, members=chosen)
    last = schedule.steps - 1
    np.testing.assert_array_equal(some.batch(last)[0], schedule.batch(last)[0][chosen])


def test_who_is_who():
    assert PLAN.members == 11
    assert PLAN.planted.tolist() == [0, 1, -1, 0, 1, -1, 0, 1, -1, -1, -1]
    assert PLAN.streams.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4]
    assert PLAN.grid.tolist() == [[0, 1], [3, 4], [6, 7]]
    assert PLAN.twins.tolist() == [2, 5, 8]
    assert PLAN.bare.tolist() == [2, 5, 8, 9, 10]
    for found in (PLAN.starts, PLAN.dropout_seeds):
        by_stream = {stream: set() for stream in range(5)}
        for stream, seed in zip(PLAN.streams.tolist(), found, strict=True):
            by_stream[stream].add(seed)
        assert all(len(seeds) == 1 for seeds in by_stream.values())
        assert len(set().union(*by_stream.values())) == 5
    assert not set(PLAN.starts) & set(PLAN.dropout_seeds)


def test_members_of_a_seed_differ_in_the_canary_alone():
    schedule = PLAN.schedule(examples=20, places=[3, 17])
    rows = np.stack([schedule.batch(step)[0] for step in range(schedule.steps)])
    for seed in range(3):
        twin = rows[:, PLAN.twins[seed]]
        assert twin.max() < 20
        for canary, place in enumerate((3, 17)):
            own = rows[:, PLAN.grid[seed, canary]]
            np.testing.assert_array_equal(own == 20 + canary, twin == place)
            np.testing.assert_array_equal(own[own < 20], twin[twin != place])
    assert (rows[:, 9] != rows[:, 10]).any()


def test_a_seed_depends_on_nothing_that_comes_after_it():
    more = dataclasses.replace(PLAN, seeds=5, unplanted=0)
    one, other = (plan.schedule(examples=20, places=[3, 17]) for plan in (PLAN, more))
    np.testing.assert_array_equal(one.batch(9)[0][:9], other.batch(9)[0][:9])
    assert PLAN.starts[:9] == more.starts[:9]
    assert PLAN.dropout_seeds[:9] == more.dropout_seeds[:9]
    assert not set(PLAN.starts) & set(dataclasses.replace(PLAN, seed=8).starts)


def test_the_ledger_says_when_canaries_are_used():
    ledger = PLAN.ledger(examples=20, places=[3, 17])
    rows = by_hand(PLAN, 20, [3, 17])
    assert len(ledger) == ledger.uses.sum() == (rows >= 20).sum() == 4 * 6
    for member, canary, step in zip(ledger.member, ledger.canary, ledger.step, strict=True):
        assert PLAN.planted[member] == canary
        assert 20 + canary in rows[step, member]


@pytest.mark.parametrize(("examples", "kept"), [(100, 90), (14, 13), (2, 1)])
def test_some_examples_are_for_stopping_only(examples, kept):
    assert PLAN.trained(examples) == kept
    assert PLAN.epoch(kept) == max(1, round(kept / 5))


def test_nothing_to_train_on_is_refused():
    with pytest.raises(PlanError, match=r"validation=0.1 of examples=1 leaves none"):
        PLAN.trained(1)


@pytest.mark.parametrize("places", [[1], [1, 1], [1, 20], [-1, 3], [0.0, 1.0], [[1, 2]], [1, 2, 3]])
def test_canaries_are_different_examples(places):
    with pytest.raises(PlanError, match="are not 2 different ones of 20 examples"):
        PLAN.schedule(examples=20, places=places)


@pytest.mark.parametrize("members", [[], [11], [-1]])
def test_members_are_the_plans_own(members):
    with pytest.raises(PlanError, match="are not some of 11 models"):
        PLAN.schedule(examples=20, places=[0, 1], members=members)


def test_one_seed_is_refused():
    with pytest.raises(PlanError, match="seeds=1 is not a whole number of at least 2"):
        FeaturePlan(seeds=1)


@pytest.mark.parametrize("value", [0, 1, 1.5, True, "half", None, float("nan")])
def test_validation_is_a_share(value):
    with pytest.raises(PlanError, match="is not between 0 and 1"):
        FeaturePlan(validation=value)
