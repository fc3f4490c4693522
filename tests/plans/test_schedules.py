"""What every schedule keeps: random access, bounds, passes over the data, and a true ledger."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant import InjectPlan, PoisonPlan, ShadowPlan
from remnant.errors import InvalidInput, PlanError
from remnant.plans import ArraySchedule

TWINS = {
    "canaries": st.integers(1, 5),
    "repeats": st.integers(1, 3),
    "watch_steps": st.integers(0, 6),
    "trials": st.integers(1, 3),
    "batch": st.integers(1, 9),
    "seed": st.integers(0, 2**40),
    "sampling": st.sampled_from(["epoch", "replacement"]),
    "twins": st.sampled_from(["shared", "fresh"]),
    "aa": st.booleans(),
    "controls": st.integers(0, 3),
    "fresh_canaries": st.booleans(),
}
EXAMPLES = st.integers(1, 25)


def draw_until_valid(plan_type, draw, fields):
    try:
        return plan_type(**draw(st.fixed_dictionaries(fields)))
    except PlanError:
        assume(False)


@st.composite
def inject_plans(draw):
    steps = st.lists(st.integers(0, 12), min_size=1, max_size=3, unique=True).map(sorted)
    copies = st.none() | st.integers(1, 2) | st.lists(st.integers(1, 3), min_size=1, max_size=5)
    return draw_until_valid(InjectPlan, draw, {**TWINS, "step": steps, "copies": copies})


@st.composite
def poison_plans(draw):
    own = {"step": st.integers(1, 12), "epoch_steps": st.none() | st.integers(1, 8)}
    return draw_until_valid(PoisonPlan, draw, {**TWINS, **own})


@st.composite
def shadow_plans(draw):
    fields = {name: TWINS[name] for name in ("batch", "seed", "sampling")}
    own = {
        "models": st.integers(1, 5),
        "steps": st.integers(1, 12),
        "fraction": st.sampled_from([0.5, 0.5, 0.3, 0.8]),
    }
    return draw_until_valid(ShadowPlan, draw, {**fields, **own})


def schedule_or_assume(plan, examples):
    try:
        return plan.schedule(examples=examples)
    except PlanError:  # this many canaries, or these parts, do not fit so few examples
        assume(False)


def in_sequence(schedule):
    return [schedule.batch(step) for step in range(schedule.steps)]


def stored(plan, examples):
    """Rows of the example store that a schedule may name."""
    if isinstance(plan, ShadowPlan):
        return examples
    return examples + plan.canaries * (plan.trials if plan.fresh_canaries else 1)


@settings(max_examples=150)
@given(plan=inject_plans() | poison_plans() | shadow_plans(), examples=EXAMPLES, order=st.randoms())
def test_batches_asked_in_any_order_equal_those_asked_in_sequence(plan, examples, order):
    schedule = schedule_or_assume(plan, examples)
    expected = in_sequence(schedule)
    asked = [step for step in range(schedule.steps) for _ in range(2)]
    order.shuffle(asked)
    other = plan.schedule(examples=examples)
    for step in asked:
        indices, active = other.batch(np.int64(step))
        np.testing.assert_array_equal(indices, expected[step][0])
        np.testing.assert_array_equal(active, expected[step][1])
        indices[:] = -1  # what a caller does to a batch is nobody else's business
        active[:] = False


@settings(max_examples=150)
@given(plan=inject_plans() | poison_plans() | shadow_plans(), examples=EXAMPLES)
def test_shapes_dtypes_and_bounds(plan, examples):
    schedule = schedule_or_assume(plan, examples)
    assert (schedule.members, schedule.steps, schedule.batch_size) == (
        plan.members,
        plan.steps,
        plan.batch,
    )
    for indices, active in in_sequence(schedule):
        assert indices.dtype == np.int64
        assert indices.shape == (plan.members, plan.batch)
        assert indices.min() >= 0
        assert indices.max() < stored(plan, examples)
        assert active.dtype == bool
        assert active.shape == (plan.members,)


@settings(max_examples=200)
@given(plan=inject_plans() | poison_plans(), examples=EXAMPLES)
def test_the_ledger_equals_a_count_over_the_schedule(plan, examples):
    schedule = schedule_or_assume(plan, examples)
    counted = Counter()
    for step, (indices, active) in enumerate(in_sequence(schedule)):
        for member in np.flatnonzero(active):
            first = examples
            if plan.fresh_canaries:
                first += member // len(plan.arms) * plan.canaries
            for row in indices[member][indices[member] >= examples]:
                counted[step, member, row - first] += 1
    ledger = plan.ledger(examples=examples)
    lines = zip(ledger.step, ledger.member, ledger.canary, strict=True)
    assert dict(zip(lines, ledger.uses, strict=True)) == dict(counted)
    assert len(ledger) == len(counted)
    assert (np.diff(ledger.step) >= 0).all()
    for column in (ledger.step, ledger.member, ledger.canary, ledger.uses):
        assert column.dtype == np.int64


@settings(max_examples=100)
@given(plan=inject_plans())
def test_inject_needs_no_examples_for_its_ledger(plan):
    one, other = plan.ledger(), plan.ledger(examples=99)
    for name in ("step", "member", "canary", "uses"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def passes(rows, examples):
    """Cut a member's rows, batch after batch, into passes over the data."""
    flat = np.concatenate(rows)
    return [flat[first : first + examples] for first in range(0, len(flat), examples)]


@pytest.mark.parametrize(
    ("examples", "batch"), [(20, 5), (20, 7), (7, 20), (3, 20), (1, 4), (10, 10), (11, 1)]
)
def test_every_row_is_used_once_before_any_is_used_twice(examples, batch):
    plans = [
        InjectPlan(canaries=1, step=(4, 9), repeats=2, watch_steps=30, trials=2, batch=batch),
        PoisonPlan(canaries=1, step=4, watch_steps=30, trials=2, batch=batch),
    ]
    for plan in plans:
        batches = in_sequence(plan.schedule(examples=examples))
        arms = ["twin"] if plan.kind == "poison" else ["twin", "planted"]
        for member in np.concatenate([plan.members_of(arm) for arm in arms]):
            clean = [
                indices[member]
                for step, (indices, _) in enumerate(batches)
                if plan.kind == "poison" or step not in plan.injected_steps
            ]
            whole = passes(clean, examples)
            for used in whole[:-1]:
                assert sorted(used) == list(range(examples))
            assert len(set(whole[-1])) == len(whole[-1])
            if examples > 6:
                assert any((used != whole[0]).any() for used in whole[1:-1]), "never reshuffled"


@pytest.mark.parametrize("examples", [20, 21])
@pytest.mark.parametrize("batch", [4, 7, 30])
def test_a_shadow_model_uses_each_row_it_sees_once_a_pass(examples, batch):
    plan = ShadowPlan(models=4, steps=30, batch=batch)
    batches = in_sequence(plan.schedule(examples=examples))
    for member, seen in enumerate(plan.seen(examples=examples)):
        pool = np.flatnonzero(seen)
        for used in passes([indices[member] for indices, _ in batches], len(pool))[:-1]:
            np.testing.assert_array_equal(np.sort(used), pool)


def test_an_aa_member_walks_whole_passes_from_the_first_it_begins_alone():
    plan = InjectPlan(canaries=1, step=7, watch_steps=60, trials=1, batch=5)
    batches = in_sequence(plan.schedule(examples=20))
    clean = [indices[2] for step, (indices, _) in enumerate(batches) if step != 7]
    for number, used in enumerate(passes(clean, 20)[:-1]):
        if number != 1:  # it leaves its trunk in the middle of the second
            assert sorted(used) == list(range(20))


def test_draws_with_replacement_are_uniform_independent_and_repeat():
    plan = InjectPlan(
        canaries=1, step=0, watch_steps=500, trials=1, batch=40, sampling="replacement"
    )
    schedule = plan.schedule(examples=50)
    drawn = np.stack([schedule.batch(step)[0][1] for step in range(1, 501)])
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=50)).pvalue > 1e-4
    pairs = drawn[:, :-1] % 5 * 5 + drawn[:, 1:] % 5
    assert stats.chisquare(np.bincount(pairs.ravel(), minlength=25)).pvalue > 1e-4
    distinct = np.array([len(set(row)) for row in drawn])
    expected = 50 * (1 - (1 - 1 / 50) ** 40)  # 27.7 of 40: shuffled epochs would have 40
    assert abs(distinct.mean() - expected) < 5 * distinct.std() / np.sqrt(len(drawn))
    assert len({row.tobytes() for row in drawn}) == len(drawn)  # also across blocks of steps


def test_passes_are_uniform_permutations():
    plan = InjectPlan(canaries=1, step=0, watch_steps=2000, trials=1, batch=4)
    schedule = plan.schedule(examples=4)
    drawn = np.stack([schedule.batch(step)[0][1] for step in range(1, 2001)])
    numbers = drawn @ np.array([64, 16, 4, 1])
    counts = np.unique(numbers, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("step", [-1, 17, 10**9])
@pytest.mark.parametrize(
    "plan",
    [
        InjectPlan(canaries=1, step=9, watch_steps=7, batch=4),
        PoisonPlan(canaries=1, step=10, watch_steps=7, batch=4),
        ShadowPlan(models=2, steps=17, batch=4),
    ],
)
def test_a_step_outside_the_schedule_is_refused(plan, step):
    with pytest.raises(InvalidInput, match=rf"step={step} is outside the schedule of 17 .*0 to 16"):
        plan.schedule(examples=12).batch(step)


@pytest.mark.parametrize("examples", [0, -3])
@pytest.mark.parametrize(
    "plan",
    [
        InjectPlan(canaries=1, step=9, watch_steps=7),
        PoisonPlan(canaries=1, step=10, watch_steps=7),
        PoisonPlan(canaries=1, step=10, watch_steps=7, epoch_steps=5),
        ShadowPlan(models=2, steps=17),
    ],
)
def test_nothing_to_train_on_is_refused(plan, examples):
    with pytest.raises((InvalidInput, PlanError), match=f"examples={examples} leaves nothing"):
        plan.schedule(examples=examples)


def test_a_schedule_given_as_arrays_says_what_they_say():
    indices = np.arange(24, dtype=np.int32).reshape(4, 3, 2)
    active = np.arange(12).reshape(4, 3) % 2 == 0
    schedule = ArraySchedule(indices, active=active)
    assert (schedule.steps, schedule.members, schedule.batch_size) == (4, 3, 2)
    assert schedule.trunks == ()
    for step in (2, 0, 3, 1):
        rows, on = schedule.batch(step)
        assert rows.dtype == np.int64
        np.testing.assert_array_equal(rows, indices[step])
        np.testing.assert_array_equal(on, active[step])
    assert ArraySchedule(indices).batch(1)[1].tolist() == [True] * 3
    with pytest.raises(InvalidInput, match="step=4 is outside"):
        schedule.batch(4)


@pytest.mark.parametrize(
    ("indices", "active", "words"),
    [
        (np.zeros((4, 3), int), None, [r"indices has shape \(4, 3\), not \(steps, members, "]),
        (np.zeros((4, 0, 2), int), None, [r"indices has shape \(4, 0, 2\)"]),
        (np.zeros((4, 3, 2)), None, ["indices has dtype float64, not an integer one"]),
        (np.zeros((4, 3, 2), bool), None, ["indices has dtype bool"]),
        (np.zeros((4, 3, 2), int), np.ones((3, 4), bool), [r"active has shape \(3, 4\), not "]),
        (np.zeros((4, 3, 2), int), np.ones((4, 3)), ["active has dtype float64, not bool"]),
        (
            np.zeros((4, 3)),
            np.ones(4),
            ["indices has shape", "indices has dtype", "active has shape", "active has dtype"],
        ),
    ],
)
def test_arrays_that_are_no_schedule_are_refused_with_all_their_faults(indices, active, words):
    with pytest.raises(InvalidInput, match=".*; ".join(words)):
        ArraySchedule(indices, active=active)
