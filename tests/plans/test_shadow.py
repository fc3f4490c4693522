"""SHADOW: complementary halves that no other member has a say in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant import ShadowPlan
from remnant.errors import PlanError

PLAN = ShadowPlan(models=6, steps=12, batch=7, seed=3)


def in_sequence(plan, examples):
    schedule = plan.schedule(examples=examples)
    return np.stack([schedule.batch(step)[0] for step in range(schedule.steps)])


@settings(max_examples=60)
@given(models=st.integers(1, 9), examples=st.integers(2, 30), seed=st.integers(0, 2**40))
def test_pairs_complete_each_other(models, examples, seed):
    seen = ShadowPlan(models=models, steps=1, seed=seed).seen(examples=examples)
    assert seen.shape == (models, examples)
    assert seen.dtype == bool
    for first in range(0, models - 1, 2):
        np.testing.assert_array_equal(seen[first], ~seen[first + 1])
    assert set(seen.sum(axis=1)) <= {examples // 2, -(-examples // 2)}
    even = seen[: models // 2 * 2]
    assert (even.sum(axis=0) == len(even) // 2).all()


def test_halves_are_random_and_pairs_unlike():
    seen = ShadowPlan(models=400, steps=1).seen(examples=30)
    firsts = seen[::2]
    assert len({row.tobytes() for row in firsts}) == 200
    shares = firsts.sum(axis=0)
    assert stats.chisquare(shares).pvalue > 1e-4
    together = (firsts.T.astype(float) @ firsts / 200)[~np.eye(30, dtype=bool)]
    assert np.abs(together - 15 * 14 / (30 * 29)).max() < 5 * np.sqrt(0.25 / 200)


@pytest.mark.parametrize("examples", [20, 21])
@pytest.mark.parametrize("fraction", [0.5, 0.3])
def test_a_member_depends_on_its_own_number_and_the_seed_alone(examples, fraction):
    few = dataclasses.replace(PLAN, models=3, fraction=fraction)
    many = dataclasses.replace(PLAN, models=8, fraction=fraction)
    np.testing.assert_array_equal(few.seen(examples=examples), many.seen(examples=examples)[:3])
    assert few.seeds == many.seeds[:3]
    np.testing.assert_array_equal(in_sequence(few, examples), in_sequence(many, examples)[:, :3])
    other = dataclasses.replace(few, seed=4)
    assert (few.seen(examples=examples) != other.seen(examples=examples)).any(axis=1).all()
    assert not set(few.seeds) & set(other.seeds)


@pytest.mark.parametrize("sampling", ["epoch", "replacement"])
@pytest.mark.parametrize("fraction", [0.5, 0.9])
@pytest.mark.parametrize("examples", [20, 21])
def test_members_meet_only_what_they_see_and_all_of_it(examples, fraction, sampling):
    plan = dataclasses.replace(PLAN, fraction=fraction, sampling=sampling, steps=40)
    rows, seen = in_sequence(plan, examples), plan.seen(examples=examples)
    for member in range(plan.members):
        np.testing.assert_array_equal(np.unique(rows[:, member]), np.flatnonzero(seen[member]))


def test_members_have_starts_and_orders_of_their_own():
    assert len(set(PLAN.seeds)) == PLAN.members == 6
    rows = in_sequence(PLAN, 200)
    assert len({rows[:, member].tobytes() for member in range(6)}) == 6


def test_the_unequal_halves_of_an_odd_number_are_walked_independently():
    plan = ShadowPlan(models=4, steps=1, batch=3000, sampling="replacement")
    rows, seen = in_sequence(plan, 401)[0], plan.seen(examples=401)
    places = [np.searchsorted(np.flatnonzero(seen[m]), rows[m]) for m in range(4)]
    related = np.corrcoef(places) - np.eye(4)
    assert np.abs(related).max() < 5 / np.sqrt(3000)


def test_other_shares_are_independent_parts():
    plan = ShadowPlan(models=300, steps=1, fraction=0.3)
    seen = plan.seen(examples=40)
    assert (seen.sum(axis=1) == 12).all()
    counts = seen.sum(axis=0)
    assert abs(counts - 90).max() < 5 * np.sqrt(300 * 0.3 * 0.7)
    overlap = (seen[::2] & seen[1::2]).sum(axis=1)
    assert abs(overlap.mean() - 12 * 12 / 40) < 5 * overlap.std() / np.sqrt(150)


@pytest.mark.parametrize(("fraction", "examples"), [(0.5, 1), (0.1, 4), (0.9, 4)])
def test_a_share_that_leaves_nobody_seen_or_unseen_is_refused(fraction, examples):
    plan = ShadowPlan(models=2, steps=1, fraction=fraction)
    with pytest.raises(PlanError, match=f"fraction={fraction} of examples={examples} leaves"):
        plan.seen(examples=examples)


def test_nothing_is_planted():
    assert len(PLAN.ledger()) == len(PLAN.ledger(examples=9)) == 0


@pytest.mark.parametrize("chosen", [[3, 4, 5, 6], [0, 2, 4, 6]])
@pytest.mark.parametrize(("examples", "fraction"), [(30, 0.5), (31, 0.5), (30, 0.8)])
def test_some_members_are_what_they_are_among_all(examples, fraction, chosen):
    """Topping up from 3 to 7 models gives the models that 7 at once would have had."""
    plan = ShadowPlan(models=7, steps=9, batch=4, fraction=fraction)
    np.testing.assert_array_equal(
        plan.seen(examples=examples, members=chosen), plan.seen(examples=examples)[chosen]
    )
    whole, part = plan.schedule(examples=examples), plan.schedule(examples=examples, members=chosen)
    assert part.members == 4
    for step in range(9):
        np.testing.assert_array_equal(part.batch(step)[0], whole.batch(step)[0][chosen])
    with pytest.raises(PlanError, match=r"members=\[7\] are not some of 7 models"):
        plan.schedule(examples=examples, members=[7])
