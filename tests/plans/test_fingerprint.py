"""A plan's fingerprint moves with every field, and with nothing else."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from remnant import FeaturePlan, InjectPlan, PoisonPlan, ShadowPlan
from remnant.plans import InsertPlan
from remnant.plans.plan import fingerprint

TWINS = {
    "canaries": [3, 5],
    "step": [0, 12],
    "repeats": [2, 3],
    "watch_steps": [0, 8],
    "trials": [1, 4],
    "batch": [16, 65],
    "seed": [1, 2**40],
    "sampling": ["replacement"],
    "twins": ["fresh"],
    "aa": [False],
    "controls": [1, 4],
    "fresh_canaries": [False],
    "precision": ["tf32", "bf16", "float64"],
}
PLANS = {
    "inject": (
        InjectPlan(canaries=4, step=10, watch_steps=7),
        {**TWINS, "step": [0, 12, (10, 20), (10, 21)], "copies": [1, 2, 16, (1, 2), (2, 1)]},
    ),
    "poison": (
        PoisonPlan(canaries=4, step=10, watch_steps=7),
        {**TWINS, "step": [1, 12], "epoch_steps": [5, 10], "copies": [1, 2, (1, 2), (2, 1)]},
    ),
    "insert": (
        InsertPlan(repeats=(1, 4), steps=10),
        {
            "repeats": [(1,), (4, 1), (1, 4, 4)],
            "steps": [1, 11],
            "trials": [2],
            "controls": [1, 4],
            "twin": [False],
            "batch": [63],
            "seed": [1],
            "sampling": ["replacement", "poisson"],
            "precision": ["tf32", "bf16", "float64"],
        },
    ),
    "feature": (
        FeaturePlan(),
        {
            "canaries": [1, 30],
            "seeds": [2, 5],
            "unplanted": [0, 9],
            "epochs": [1, 499],
            "batch": [127],
            "patience": [1, 11],
            "validation": [0.2],
            "seed": [1],
            "sampling": ["replacement", "poisson"],
            "precision": ["tf32", "bf16", "float64"],
        },
    ),
    "shadow": (
        ShadowPlan(models=4, steps=10),
        {
            "models": [1, 5],
            "steps": [1, 11],
            "batch": [63],
            "seed": [1],
            "fraction": [0.25, 0.9],
            "sampling": ["replacement", "poisson"],
            "precision": ["tf32", "bf16", "float64"],
        },
    ),
}


@pytest.mark.parametrize("kind", PLANS)
def test_the_fingerprint_moves_with_every_field(kind):
    plan, others = PLANS[kind]
    names = {field.name for field in dataclasses.fields(plan)}
    assert others.keys() == names, "a field that this test does not walk"
    prints = [plan.fingerprint] + [
        dataclasses.replace(plan, **{name: value}).fingerprint
        for name in sorted(names)
        for value in others[name]
    ]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("kind", PLANS)
def test_the_plain_form_holds_every_field_and_makes_the_plan_again(kind):
    plan, others = PLANS[kind]
    last = {name: values[-1] for name, values in others.items()}
    if kind == "poison":
        last["repeats"] = plan.repeats  # copies take its place
    many = dataclasses.replace(plan, **last)
    for one in (plan, many):
        plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        assert plain.pop("kind") == kind
        again = type(plan)(**plain)
        assert again == one
        assert again.fingerprint == one.fingerprint


def test_another_kind_of_plan_has_another_fingerprint():
    fields = {"canaries": 4, "step": 10, "watch_steps": 7}
    inject, poison = InjectPlan(**fields).to_dict(), PoisonPlan(**fields).to_dict()
    del poison["epoch_steps"]
    assert {**inject, "kind": "poison"} == poison
    assert fingerprint(inject) != fingerprint(poison)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"step": (10, 20)}, {"step": [10, 20]}),
        ({"step": (10, 20)}, {"step": np.array([10, 20])}),
        ({"step": 10}, {"step": (10,)}),
        ({"step": 10}, {"step": [np.int32(10)]}),
        ({"step": 10}, {"step": np.array([10])}),
        ({"step": 10, "copies": 2}, {"step": 10, "copies": [2]}),
        ({"step": 10, "copies": (1, 2)}, {"step": 10, "copies": [np.int64(1), np.uint8(2)]}),
        ({"step": 10, "batch": 16}, {"step": np.array(10), "batch": np.int16(16)}),
        ({"step": 10, "seed": 3}, {"step": np.uint8(10), "seed": np.uint64(3)}),
    ],
)
def test_the_same_inject_plan_in_other_clothes_has_the_same_fingerprint(one, other):
    plain, dressed = (InjectPlan(canaries=4, watch_steps=7, **fields) for fields in (one, other))
    assert plain == dressed
    assert hash(plain) == hash(dressed)
    assert plain.fingerprint == dressed.fingerprint
    assert plain.to_dict() == dressed.to_dict()


def test_numpy_numbers_make_the_same_poison_and_shadow_plans():
    poison = PoisonPlan(canaries=4, step=10, watch_steps=7, epoch_steps=5)
    number = np.int64
    again = PoisonPlan(
        canaries=number(4), step=number(10), watch_steps=number(7), epoch_steps=number(5)
    )
    assert poison == again
    assert poison.fingerprint == again.fingerprint
    shadow = ShadowPlan(models=4, steps=10, fraction=0.25)
    assert (
        shadow.fingerprint
        == ShadowPlan(models=number(4), steps=number(10), fraction=np.float64(0.25)).fingerprint
    )


def test_the_fingerprint_is_a_digest_of_the_plain_form_and_stays_what_it_is():
    shared = {"trials": 3, "fresh_canaries": False}  # the defaults of version 0.2
    plan = InjectPlan(
        canaries=32, step=(300, 350), watch_steps=400, copies=(1, 2), seed=7, **shared
    )
    assert plan.fingerprint == fingerprint(plan.to_dict()) == "d937adbe918e6731"
    poison = PoisonPlan(canaries=4, step=20, watch_steps=5, **shared)
    assert poison.fingerprint == "f59ddd0510634c1b"
    assert ShadowPlan(models=4, steps=10).fingerprint == "402b322d7ad37a19"


def test_the_fingerprint_of_plain_data_ignores_their_order_alone():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    prints = {fingerprint(x) for x in ({"a": 1}, {"a": "1"}, {"a": True}, {"a": [1]}, {"b": 1})}
    assert len(prints) == 5
