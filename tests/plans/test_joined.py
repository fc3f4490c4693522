"""Joined schedules give every member what its own schedule gives it."""

from __future__ import annotations

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.errors import InvalidInput
from remnant.plans.schedule import JoinedSchedule, Joint

EXAMPLES = 50
EARLY = InjectPlan(canaries=4, step=5, watch_steps=20, trials=2, batch=8, twins="fresh")
LATE = InjectPlan(canaries=4, step=12, repeats=2, watch_steps=12, trials=2, batch=8, aa=False)
POISON = PoisonPlan(canaries=4, step=10, watch_steps=16, trials=2, batch=8)


def joined(**starts):
    plans = {"early": EARLY, "late": LATE, "poison": POISON}
    joints = [
        Joint(plan.schedule(examples=EXAMPLES), shift=4 * number, start=starts.get(name))
        for number, (name, plan) in enumerate(plans.items())
    ]
    return JoinedSchedule(joints, examples=EXAMPLES), list(plans.values())


def test_every_member_is_given_its_own_batches_with_its_own_canaries():
    schedule, plans = joined()
    assert (schedule.members, schedule.steps, schedule.batch_size) == (6 + 4 + 6, 26, 8)
    for step in range(schedule.steps):
        indices, active = schedule.batch(step)
        for number, plan in enumerate(plans):
            own, awake = plan.schedule(examples=EXAMPLES).batch(step)
            here = schedule.members_of(number)
            expected = np.where(own >= EXAMPLES, own + 4 * number, own)
            np.testing.assert_array_equal(indices[here], expected)
            np.testing.assert_array_equal(active[here], awake)


def test_trunks_say_the_truth():
    """Up to each trunk's end a member's batches are its parent's; those with one start share."""
    schedule, _ = joined(early="same", late="same")
    assert [trunk.steps for trunk in schedule.trunks] == [5, 12]
    first, second = (trunk.parents.tolist() for trunk in schedule.trunks)
    assert first == [0, 0, 0, 3, 3, 3, 0, 0, 3, 3, 10, 11, 12, 13, 14, 15]
    assert second == [0, 1, 2, 3, 4, 5, 6, 6, 8, 8, 10, 11, 12, 13, 14, 15]
    for trunk in schedule.trunks:
        for step in range(trunk.steps):
            indices, active = schedule.batch(step)
            parted = trunk.parents[np.arange(16)]
            np.testing.assert_array_equal(indices, indices[parted])
            np.testing.assert_array_equal(active, active[parted])


def test_without_a_common_start_plans_share_nothing_with_each_other():
    schedule, _ = joined()
    assert schedule.trunks[0].parents.tolist() == [0, 0, 0, 3, 3, 3, 6, 6, 8, 8, *range(10, 16)]


def test_schedules_that_do_not_fit_are_refused():
    longer = InjectPlan(canaries=4, step=5, watch_steps=30, trials=2, batch=4)
    joints = [Joint(plan.schedule(examples=EXAMPLES)) for plan in (EARLY, longer)]
    with pytest.raises(InvalidInput, match=r"batch_size 4, 8.*steps 26, 36"):
        JoinedSchedule(joints, examples=EXAMPLES)
    with pytest.raises(InvalidInput, match="no schedule"):
        JoinedSchedule([], examples=EXAMPLES)


def in_step():
    """The same moment of planting, once and three times in a row: twins are the same members."""
    once = InjectPlan(canaries=4, step=5, watch_steps=10, trials=2, batch=8, twins="fresh")
    often = InjectPlan(
        canaries=4, step=5, repeats=3, watch_steps=10, trials=2, batch=8, twins="fresh"
    )
    names = tuple(
        None if arm == "planted" else (arm, trial) for trial in range(2) for arm in once.arms
    )
    joints = [
        Joint(once.schedule(examples=EXAMPLES), start="s", pauses=((5, 2),), same=names),
        Joint(often.schedule(examples=EXAMPLES), shift=4, start="s", same=names),
    ]
    return JoinedSchedule(joints, examples=EXAMPLES), joints


def test_a_schedule_that_waits_does_nothing_and_then_goes_on():
    schedule, joints = in_step()
    assert schedule.steps == joints[0].steps == joints[1].steps == 18
    own = joints[0].schedule
    taken = []
    for step in range(schedule.steps):
        indices, active = schedule.batch(step)
        here = joints[0].own_step(step)
        if here is None:
            assert not active[:6].any()
            continue
        taken.append(here)
        assert joints[0].joined_step(here + 1) == step + 1
        expected, awake = own.batch(here)
        np.testing.assert_array_equal(indices[:6], expected)
        np.testing.assert_array_equal(active[:6], awake)
    assert taken == list(range(16))


def test_members_of_one_name_have_the_same_batches_to_the_end():
    schedule, _ = in_step()
    assert [trunk.steps for trunk in schedule.trunks] == [5, 18]
    assert schedule.trunks[0].parents.tolist() == [0, 0, 0, 3, 3, 3] * 2
    parents = schedule.trunks[1].parents
    assert parents.tolist() == [0, 1, 2, 3, 4, 5, 6, 1, 2, 9, 4, 5]
    for step in range(schedule.steps):
        indices, active = schedule.batch(step)
        np.testing.assert_array_equal(active, active[parents])
        np.testing.assert_array_equal(indices[active], indices[parents][active])
