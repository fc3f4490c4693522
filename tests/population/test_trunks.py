"""Plans joined in one population: each member is what its own plan alone would make it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InjectPlan, PoisonPlan, Population
from remnant.plans.schedule import JoinedSchedule, Joint
from remnant.population import Checkpoint
from remnant.population.training import stretches

EARLY = InjectPlan(
    canaries=4,
    step=6,
    watch_steps=15,
    trials=2,
    batch=8,
    twins="fresh",
    fresh_canaries=False,
)
LATE = dataclasses.replace(EARLY, step=12, repeats=2, watch_steps=8)
POISON = PoisonPlan(canaries=4, step=10, watch_steps=12, trials=2, batch=8, fresh_canaries=False)
PLANS = (EARLY, LATE, POISON)
RATES = (0.1, 0.1, 0.05)


def make():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 5)
    )


def train(toy, *, checkpoint=None, on_step=None, precision=None):
    joints = [Joint(plan.schedule(examples=56)) for plan in PLANS]
    starts = ("inject", "inject", None)
    schedule = JoinedSchedule(
        [Joint(j.schedule, start=start) for j, start in zip(joints, starts, strict=True)],
        examples=56,
    )
    population = Population(
        make,
        seeds=[seed for plan in PLANS for seed in plan.seeds],
        dropout_seeds=[seed for plan in PLANS for seed in plan.dropout_seeds],
        precision=precision,
    )
    fit = population.fit(
        *toy,
        schedule,
        lr=[r for r, plan in zip(RATES, PLANS, strict=True) for _ in range(plan.members)],
        momentum=0.9,
        probes={"logits": lambda p: p.logits(toy[0][:3])},
        probe_steps=[0, 4, 6, 9, 12, 13, 22],
        checkpoint=checkpoint,
        on_step=on_step,
    )
    return population, fit.probes["logits"], schedule


def test_a_joined_member_is_what_its_own_plan_makes_it(toy):
    population, _, schedule = train(toy, precision="float64")
    for number, (plan, rate) in enumerate(zip(PLANS, RATES, strict=True)):
        alone = Population(
            make, seeds=plan.seeds, dropout_seeds=plan.dropout_seeds, precision="float64"
        )
        alone.fit(*toy, plan.schedule(examples=56), lr=rate, momentum=0.9)
        for own, joined in enumerate(schedule.members_of(number)):
            expected, found = alone.state_dict(own), population.state_dict(int(joined))
            for name, tensor in expected.items():
                torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-9)


def test_rows_are_shared_only_until_members_part(toy):
    population, probes, schedule = train(toy)
    parts = stretches(schedule.trunks, population._state, together=True)
    assert [part.start for part in parts] == [0, 6, 12]
    at_branch = probes[2][:12].reshape(2, 2, 3, 3, 5)  # plan, trial, arm
    np.testing.assert_array_equal(at_branch[0], at_branch[1])
    later = probes[4][:12].reshape(2, 2, 3, 3, 5)
    assert (later[0, :, 0] != later[0, :, 1]).any()
    np.testing.assert_array_equal(later[1, :, 0], later[1, :, 1])


class Killed(BaseException):
    pass


@pytest.mark.parametrize("killed_at", [3, 6, 8, 12, 13, 19])
def test_a_killed_joined_training_goes_on_to_the_same_bits(killed_at, toy, tmp_path):
    def kill(step):
        if step == killed_at:
            raise Killed

    whole, probes, _ = train(toy)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", seconds=0, key="toy")
    with pytest.raises(Killed):
        train(toy, checkpoint=checkpoint, on_step=kill)
    resumed, again, _ = train(toy, checkpoint=checkpoint)
    np.testing.assert_array_equal(probes, again)
    for member in range(len(whole)):
        for name, tensor in whole.state_dict(member).items():
            assert torch.equal(tensor, resumed.state_dict(member)[name])
