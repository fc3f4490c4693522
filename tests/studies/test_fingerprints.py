"""Fingerprints of shipped recipes stay, also where a new field is at its default."""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from remnant.plans import InjectPlan
from remnant.plans.plan import added_later
from remnant.studies import read_recipe, study_from
from remnant.studies.forgetting.recipe import AttackSettings, ForgettingStudy
from remnant.studies.prediction.shadow_pool import pool_key
from remnant.studies.shared.settings import DataSettings, TrainingSettings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PINNED = json.loads((Path(__file__).parent / "fingerprints.json").read_text(encoding="utf-8"))
SHIPPED = sorted(
    [
        *(Path(__file__).parents[2] / "recipes").glob("*.toml"),
        *Path(str(files("remnant.studies") / "recipes")).glob("*.toml"),
    ]
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_recipe_keeps_its_fingerprint(path):
    scales = tomllib.loads(path.read_text(encoding="utf-8")).get("scale", {})
    found = {path.name: read_recipe(path).fingerprint} | {
        f"{path.name}@{scale}": read_recipe(path, scale=scale).fingerprint for scale in scales
    }
    pinned = {
        name: digest for name, digest in PINNED.items() if name.partition("@")[0] == path.name
    }
    assert found == pinned, f"fingerprints.json; a recipe that is new adds {json.dumps(found)}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewerAttack(AttackSettings):
    """The attack of a later version, with one more field."""

    share: float | None = added_later(None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewerPlan(InjectPlan):
    """The plan of a later version, with one more field."""

    warm: int = added_later(0)


def study(*, plan=InjectPlan, attack=AttackSettings, **fields):
    new = {name: fields.pop(name) for name in ("share",) if name in fields}
    made = plan(canaries=10, step=6, watch_steps=6, **fields)
    return ForgettingStudy(plan=made, training=TrainingSettings(), attack=attack(**new))


def test_a_new_field_at_its_default_leaves_the_fingerprint():
    old = study()
    assert study(attack=NewerAttack).fingerprint == old.fingerprint
    assert study(plan=NewerPlan).fingerprint == old.fingerprint
    assert study(plan=NewerPlan).plan.fingerprint == old.plan.fingerprint
    assert study(attack=NewerAttack).to_dict()["attack"]["share"] is None


def test_a_new_field_at_another_value_moves_the_fingerprint():
    old = study()
    assert study(attack=NewerAttack, share=0.2).fingerprint != old.fingerprint
    assert study(plan=NewerPlan, warm=1).fingerprint != old.fingerprint
    assert study(plan=NewerPlan, warm=1).plan.fingerprint != old.plan.fingerprint


def test_every_field_of_own_data_moves_the_fingerprint():
    own = {"name": "files", "path": "a.npz"}
    changes = ({"path": "b.npz"}, {"held_out": "b.npz"}, {"inputs": "x"}, {"labels": "y"})
    made = [DataSettings(**{**own, **change}) for change in ({}, *changes)]
    plan = InjectPlan(canaries=10, step=6, watch_steps=6)
    digests = {ForgettingStudy(plan=plan, data=data).fingerprint for data in made}
    assert len(digests) == len(made)


def test_a_new_field_at_its_default_leaves_a_shadow_pool_the_same():
    old, new = study().plan, study(plan=NewerPlan).plan
    assert pool_key(new, {}) == pool_key(old, {})
    assert pool_key(study(plan=NewerPlan, warm=1).plan, {}) != pool_key(old, {})


@pytest.mark.parametrize(
    ("question", "calibration", "of_0_2"),
    [
        ("text-forgetting", "references", "02a920184f639f3a"),
        ("text-forgetting", "none", "1fa1fa774c799443"),
        ("speech-forgetting", "references", "f1729761eed4f751"),
        ("speech-forgetting", "none", "0508caf41aeae9a7"),
    ],
)
def test_runs_of_0_2_that_stored_no_twins_are_not_gone_on_with(question, calibration, of_0_2):
    plan = {"kind": "inject", "canaries": 8, "step": 10, "watch_steps": 20, "trials": 3}
    recipe = {
        "question": question,
        "plan": {**plan, "fresh_canaries": True},
        "attack": {"calibration": calibration},
        "canaries": {"references": 200},
    }
    assert study_from(recipe).fingerprint != of_0_2
