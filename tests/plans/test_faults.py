"""A bad plan gets one sentence that lists everything wrong with it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from remnant import FeaturePlan, InjectPlan, PoisonPlan, ShadowPlan
from remnant.errors import PlanError

GOOD = {
    InjectPlan: {"canaries": 4, "step": 10, "watch_steps": 5},
    PoisonPlan: {"canaries": 4, "step": 10, "watch_steps": 5},
    ShadowPlan: {"models": 4, "steps": 10},
}
WHOLE = {
    InjectPlan: ["canaries", "repeats", "watch_steps", "trials", "batch", "seed", "controls"],
    ShadowPlan: ["models", "steps", "batch", "seed"],
}
WHOLE[PoisonPlan] = [*WHOLE[InjectPlan], "step", "epoch_steps"]


def faults(plan, **fields):
    with pytest.raises(PlanError) as caught:
        plan(**{**GOOD[plan], **fields})
    assert isinstance(caught.value, ValueError)
    assert caught.value.hint
    assert caught.value.message.endswith(".")
    assert "\n" not in str(caught.value)
    return caught.value.message[:-1].split("; ")


@pytest.mark.parametrize(
    ("plan", "name"), [(plan, name) for plan, names in WHOLE.items() for name in names]
)
def test_numbers_must_be_whole_and_large_enough(plan, name):
    least = 0 if name in ("watch_steps", "seed", "controls") else 1
    words = f"is not a whole number of at least {least}"
    bad = [least - 1, -7, True, 2.0, "3", np.float64(2), np.bool_(True), [2], float("nan")]
    bad += [] if name == "epoch_steps" else [None]
    for value in bad:
        assert faults(plan, **{name: value}) == [f"{name}={value!r} {words}"]
    plan(**{**GOOD[plan], "batch": 64, name: 64 if name == "batch" else least})


@pytest.mark.parametrize(("name", "least"), [("step", 0), ("copies", 1)])
@pytest.mark.parametrize(
    "value", [-1, True, 2.0, "10", [], (), (10, -1), (1, True), [1.0, 2.5], [[1, 2], [3, 4]]]
)
def test_an_injections_steps_and_copies_must_be_whole_numbers(name, least, value):
    words = f"{name}={value!r} is not a whole number (or several) of at least {least}"
    assert faults(InjectPlan, **{name: value}) == [words]
    if isinstance(value, list) or value in (2.0, -1):
        assert faults(InjectPlan, **{name: np.array(value)}) == [words]


def test_poison_has_one_step():
    assert faults(PoisonPlan, step=(3, 4)) == ["step=(3, 4) is not a whole number of at least 1"]


@pytest.mark.parametrize("plan", GOOD)
def test_unknown_words_are_answered_with_the_known(plan):
    known = "epoch, replacement, fixed" + (", poisson" if plan is ShadowPlan else "")
    assert faults(plan, sampling="random", precision="fp8") == [
        f"sampling='random' is not one of {known}",
        "precision='fp8' is not one of float32, tf32, bf16, float64",
    ]
    if plan is not ShadowPlan:
        assert faults(plan, twins="same") == ["twins='same' is not one of shared, fresh"]
        for name in ("aa", "fresh_canaries"):
            for value in (1, 0, "yes", None):
                assert faults(plan, **{name: value}) == [f"{name}={value!r} is not true or false"]


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.5, 1.5, True, "half", None, float("nan")])
def test_a_share_lies_between_none_and_all(value):
    assert faults(ShadowPlan, fraction=value) == [f"fraction={value!r} is not between 0 and 1"]


@pytest.mark.parametrize("steps", [(20, 10), (10, 10), (5, 20, 10)])
def test_steps_come_in_order(steps):
    assert faults(InjectPlan, step=steps) == [f"step={steps} is not in increasing order"]


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ({"canaries": 65}, 65),
        ({"canaries": 65, "copies": 1}, 65),
        ({"canaries": 4, "copies": 17}, 68),
        ({"canaries": 3, "copies": (1, 63)}, 65),
    ],
)
def test_injected_canaries_must_fit_the_batch(fields, rows):
    words = f"canaries={fields['canaries']} take {rows} rows, more than batch=64 holds"
    assert faults(InjectPlan, **fields) == [words]
    InjectPlan(**{**GOOD[InjectPlan], **fields, "batch": rows})


def test_poisoned_canaries_must_fit_the_epoch():
    fields = {"canaries": 9, "repeats": 2, "batch": 4}
    assert faults(PoisonPlan, **fields, epoch_steps=4) == [
        "canaries=9 x repeats=2 do not fit the 16 places of an epoch of 4 steps"
    ]
    PoisonPlan(**{**GOOD[PoisonPlan], **fields}, epoch_steps=5)


def test_a_feature_plans_faults_are_listed_at_once():
    with pytest.raises(PlanError) as caught:
        FeaturePlan(
            **dict.fromkeys(["canaries", "epochs", "batch", "patience"], 0),
            **dict.fromkeys(["seed", "unplanted"], -1),
            seeds=2.0,
            validation=0,
            sampling="x",
            precision="fp8",
        )
    named = [fault.split("=")[0] for fault in caught.value.message.split("; ")]
    assert sorted(named) == sorted(FeaturePlan().to_dict().keys() - {"kind"})


def test_all_faults_are_listed_at_once():
    found = faults(
        InjectPlan,
        **dict.fromkeys(["canaries", "repeats", "trials", "batch", "copies", "step"], -1),
        **dict.fromkeys(["watch_steps", "seed", "controls"], True),
        **dict.fromkeys(["sampling", "twins", "aa", "fresh_canaries", "precision"], "x"),
    )
    names = [re.match("[a-z_]+", fault).group() for fault in found]
    assert sorted(names) == sorted(InjectPlan(**GOOD[InjectPlan]).to_dict().keys() - {"kind"})
    assert faults(InjectPlan, step=(20, 10), canaries=65) == [
        "step=(20, 10) is not in increasing order",
        "canaries=65 take 65 rows, more than batch=64 holds",
    ]
    poison = faults(PoisonPlan, step=0, epoch_steps=0, canaries=0, twins="x")
    assert [fault.split("=")[0] for fault in poison] == ["canaries", "step", "twins", "epoch_steps"]
    assert len(faults(ShadowPlan, models=0, steps=0, batch=0, seed=-1, fraction=2)) == 5
