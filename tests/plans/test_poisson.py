"""Poisson batches: one coin per row and step, a stream's own, at random access."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import InvalidInput, PlanError
from remnant.plans import FeaturePlan, InjectPlan, InsertPlan, ShadowPlan
from remnant.plans.schedule import EMPTY, JoinedSchedule, Joint, PoissonOrder

POOL, BATCH, STEPS = 20, 6, 400


def inclusion(keys, *, pool=POOL, batch=BATCH, steps=STEPS):
    """Which row is in which batch, bool ``(streams, steps, pool)``."""
    order = PoissonOrder(keys=keys, pool=pool, batch=batch, steps=steps)
    there = np.zeros((len(keys), steps, pool), dtype=bool)
    for step in range(steps):
        for stream, rows in enumerate(order.rows(step)):
            filled = rows[rows != EMPTY]
            assert len(set(filled.tolist())) == len(filled)
            assert (rows[len(filled) :] == EMPTY).all()
            there[stream, step, filled] = True
    return there


def test_each_row_is_in_each_batch_with_one_probability_independently():
    there = inclusion([(5, stream) for stream in range(50)]).reshape(-1, POOL)
    rate, draws = BATCH / POOL, len(there)
    spread = np.sqrt(rate * (1 - rate) / draws)
    assert np.abs(there.mean(0) - rate).max() < 4.5 * spread
    covariance = np.cov(there.T.astype(float))
    between = covariance[~np.eye(POOL, dtype=bool)]
    # A fixed batch size would give a covariance of -rate (1 - rate) / (pool - 1) = -0.011.
    assert np.abs(between).max() < 5 * rate * (1 - rate) / np.sqrt(draws)
    assert abs(between.mean()) < 1e-3
    sizes = there.sum(1)
    variance = POOL * rate * (1 - rate)
    assert abs(sizes.mean() - BATCH) < 4.5 * np.sqrt(variance / draws)
    assert abs(sizes.var() / variance - 1) < 5 * np.sqrt(2 / draws)


def test_steps_and_streams_are_independent():
    there = inclusion([(9, stream) for stream in range(50)]).astype(float) - BATCH / POOL
    variance = BATCH / POOL * (1 - BATCH / POOL)
    for lag in (1, 2, 128):
        products = there[:, lag:] * there[:, :-lag]
        assert abs(products.mean()) < 4.5 * variance / np.sqrt(products.size)
    products = there[1:] * there[:-1]
    assert abs(products.mean()) < 4.5 * variance / np.sqrt(products.size)


def test_a_stream_depends_on_its_own_key_alone():
    keys = [(3, stream) for stream in range(6)]
    together = PoissonOrder(keys=keys, pool=300, batch=9, steps=200)
    alone = PoissonOrder(keys=keys[4:5], pool=300, batch=9, steps=150)
    assert alone.width <= together.width
    for step in (149, 0, 130, 7, 128, 127):
        given, own = together.rows(step)[4], alone.rows(step)[0]
        np.testing.assert_array_equal(given[given != EMPTY], own[own != EMPTY])


def test_the_width_is_that_of_the_largest_batch():
    order = PoissonOrder(keys=[(1,), (2,)], pool=50, batch=5, steps=300)
    largest = max((order.rows(step) != EMPTY).sum(1).max() for step in range(300))
    assert order.width == largest
    assert PoissonOrder(keys=[(1,)], pool=9, batch=9, steps=2).rows(1).tolist() == [
        sorted(PoissonOrder(keys=[(1,)], pool=9, batch=9, steps=2).rows(1)[0].tolist())
    ]


def test_a_batch_cannot_be_larger_than_its_pool():
    plan = InsertPlan(repeats=(1,), steps=3, batch=32, sampling="poisson")
    with pytest.raises(PlanError, match="batch=32 is more than the 31 examples"):
        plan.schedule(examples=31)


def test_twins_of_an_insert_plan_differ_in_the_planted_rows_alone():
    plan = InsertPlan(repeats=(3, 5), steps=60, trials=2, batch=10, sampling="poisson")
    schedule = plan.schedule(examples=40)
    assert schedule.expected_batch == 10
    assert schedule.is_poisson
    planted_uses = 0
    for step in range(60):
        rows, active = schedule.batch(step)
        assert active.all()
        for trial in range(2):
            planted, twin = rows[2 * trial], rows[2 * trial + 1]
            differ = planted != twin
            assert (planted[differ] >= 40).all()
            assert (twin < 40).all()
            np.testing.assert_array_equal(planted == EMPTY, twin == EMPTY)
            planted_uses += differ.sum()
    expected = 2 * 60 * plan.copies / 4
    assert abs(planted_uses - expected) < 4 * np.sqrt(expected)
    assert plan.ledger(examples=40).uses.sum() == planted_uses


def test_a_shadow_member_is_given_rows_that_it_sees_and_the_same_among_others():
    plan = ShadowPlan(models=6, steps=40, batch=7, sampling="poisson")
    seen = plan.seen(examples=41)  # halves of two sizes
    schedule, alone = (plan.schedule(examples=41, members=chosen) for chosen in (None, [3]))
    for step in range(40):
        rows = schedule.batch(step)[0]
        for member, given in enumerate(rows):
            assert seen[member, given[given != EMPTY]].all()
        own = alone.batch(step)[0][0]
        np.testing.assert_array_equal(rows[3][rows[3] != EMPTY], own[own != EMPTY])


def test_a_feature_plan_replaces_rows_and_no_empty_places():
    plan = FeaturePlan(canaries=2, seeds=2, unplanted=1, epochs=20, batch=6, sampling="poisson")
    schedule = plan.schedule(examples=30, places=[4, 9])
    fixed = FeaturePlan(canaries=2, seeds=2, unplanted=1, epochs=20, batch=6)
    assert not fixed.schedule(examples=30, places=[4, 9]).is_poisson
    used = np.zeros(2, dtype=int)
    for step in range(schedule.steps):
        rows = schedule.batch(step)[0]
        assert rows.min() >= EMPTY
        for member, canary in enumerate(plan.planted):
            own = rows[member][rows[member] >= 30]
            assert set(own.tolist()) <= ({30 + canary} if canary >= 0 else set())
            used[canary] += own.size if canary >= 0 else 0
    assert (used > 0).all()


def test_joined_schedules_are_padded_to_the_widest():
    plans = [
        InsertPlan(repeats=(1,), steps=30, batch=8, seed=seed, sampling="poisson")
        for seed in (0, 1)
    ]
    parts = [plan.schedule(examples=50) for plan in plans]
    joined = JoinedSchedule([Joint(parts[0]), Joint(parts[1], shift=1)], examples=50)
    assert joined.batch_size == max(part.batch_size for part in parts)
    assert joined.expected_batch == 8
    assert joined.is_poisson
    for step in range(30):
        rows = joined.batch(step)[0]
        for part, given in zip(parts, (rows[:2], rows[2:]), strict=True):
            own = part.batch(step)[0]
            np.testing.assert_array_equal(
                given == EMPTY,
                np.pad(
                    own == EMPTY, ((0, 0), (0, rows.shape[1] - own.shape[1])), constant_values=True
                ),
            )
    full = InsertPlan(repeats=(1,), steps=30, batch=8).schedule(examples=50)
    with pytest.raises(InvalidInput, match="schedules to join have is_poisson False, True"):
        JoinedSchedule([Joint(parts[0]), Joint(full)], examples=50)


@pytest.mark.parametrize(
    "plan",
    [
        InsertPlan(repeats=(1,), steps=3, trials=2, twin=True),
        FeaturePlan(canaries=2, seeds=2, unplanted=1),
        InjectPlan(canaries=2, step=1, watch_steps=2, trials=2, batch=4),
    ],
    ids=lambda plan: plan.kind,
)
def test_every_member_has_noise_of_its_own(plan):
    """Twins share their start; noise that they shared would make a private model look worse."""
    assert len(plan.noise_seeds) == plan.members == len(set(plan.noise_seeds))
    assert plan.noise_seeds == dataclasses.replace(plan).noise_seeds
