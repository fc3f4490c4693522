"""Variants and scales of a recipe, and the populations they are trained in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import PlanError
from remnant.plans import PoisonPlan
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study, study_from
from remnant.studies.forgetting.recipe import runs_of
from remnant.studies.forgetting.run import grids
from remnant.studies.shared.variants import difference, with_changes

RECIPE = """
question = "forgetting"
label = "once"
title = "Side by side"

[plan]
kind = "inject"
canaries = 12
step = 8
watch_steps = 12
trials = 2
batch = 16
twins = "fresh"

[data]
name = "digits"
examples = 120

[model]
name = "logistic"

[training]
options = { lr = 0.1, momentum = 0.0 }

[attack]
success = "auc"
lags = [0, 3, 12]

[[compare]]
label = "often"
plan.repeats = 3

[[compare]]
label = "late"
plan.step = 14

[[compare]]
label = "quick"
training.options = { lr = 0.3, momentum = 0.9 }

[[compare]]
label = "odd"
canaries.kind = "odd"

[[compare]]
label = "poisoned"
plan.kind = "poison"
plan.step = 12
plan.epoch_steps = 4

[[compare]]
label = "uncalibrated"
attack.calibration = "none"

[[compare]]
label = "wide"
model = { name = "mlp1" }

[scale.paper]
plan.trials = 3
compare = []
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "varied.toml"
    path.write_text(RECIPE)
    return path


def test_a_variant_is_the_study_with_some_fields_replaced(recipe):
    study = read_recipe(recipe)
    made = {variant.label: variant.study for variant in study.compare}
    assert made["often"] == dataclasses.replace(
        study, plan=dataclasses.replace(study.plan, repeats=3), compare=(), **DEFAULT_WORDS
    )
    assert isinstance(made["poisoned"].plan, PoisonPlan)
    assert made["poisoned"].plan.canaries == 12
    assert made["quick"].training.options == {"lr": 0.3, "momentum": 0.9}
    assert study_from(study.to_dict()) == study
    assert study_from(study.to_dict()).fingerprint == study.fingerprint


DEFAULT_WORDS = {"label": "as planned", "title": "The same study, varied"}


def test_a_scale_replaces_fields_and_an_unknown_one_is_named(recipe, tmp_path):
    study = read_recipe(recipe, scale="paper")
    assert (study.plan.trials, study.compare) == (3, ())
    with pytest.raises(PlanError, match=r"no scale 'lunar'.*It has: paper"):
        read_recipe(recipe, scale="lunar")
    broken = tmp_path / "broken.toml"
    broken.write_text(RECIPE.replace("plan.trials = 3", "plan.trails = 3"))
    with pytest.raises(PlanError, match=r"^scale\.paper: unknown field plan\.trails"):
        read_recipe(broken)
    broken.write_text(RECIPE + "\n[[compare]]\nlabel = 'x'\nplan.repeats = 0\n")
    with pytest.raises(PlanError, match=r"compare 'x'.*repeats=0"):
        read_recipe(broken)


EXPOSURE = """
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 4]
controls = 2
steps = 3
[secret]
template = "the {digits:1}"
[measure]
limit = 2.0
"""


@pytest.mark.parametrize(
    ("scale", "fault"),
    [
        ("plan.controls = 50", "The plan needs 52 secrets, and the template has 10"),
        ("plan.controls = 'x'", "controls='x'"),
        ("plan.contrls = 50", r"unknown field plan\.contrls"),
        ("secret.template = 'the {digits'", r"secret\.template is"),
    ],
)
@pytest.mark.parametrize("asked", [None, "small", "paper"])
def test_a_fault_of_a_scale_names_it(scale, fault, asked, tmp_path):
    path = tmp_path / "scaled.toml"
    path.write_text(f"{EXPOSURE}[scale.small]\nplan.steps = 2\n[scale.paper]\n{scale}\n")
    with pytest.raises(PlanError, match=rf"^scale\.paper: .*{fault}"):
        read_recipe(path, scale=asked)
    path.write_text(EXPOSURE.replace("{digits:1}", "{digits") + "[scale.small]\nplan.steps = 2\n")
    with pytest.raises(PlanError, match=r"^secret\.template is"):
        read_recipe(path, scale="small")


@pytest.mark.parametrize(
    ("table", "hints"),
    [
        (
            {"plan": {"kind": "insert"}, "text": {}, "secret": {}},
            [
                'No question is named, so "forgetting" was assumed; name another at the top, such '
                'as question = "exposure"; there are: forgetting, one-run, ',
                "A recipe has: question, label, ",
            ],
        ),
        (
            {"question": "exposure", "plan": {"kind": "insert"}, "measure": {"limits": 3.0}},
            ["[measure] has: method, references, max_nodes, top, limit, judged, share."],
        ),
        (
            {"question": "exposure", "plan": {"kind": "insert", "step": 3}},
            ["[plan] has: repeats, steps, "],
        ),
    ],
)
def test_faults_say_what_there_is(table, hints):
    with pytest.raises(PlanError) as caught:
        study_from(table)
    assert all(hint in caught.value.hint for hint in hints)
    assert ("No question" in caught.value.hint) is ("question" not in table)
    assert ("A recipe has" in caught.value.hint) is ("text" in table)


def test_what_can_be_trained_together_is(recipe):
    parts = read_recipe(recipe).parts()
    assert runs_of(parts)["variant6"] == "primary", "another calibration is no other training"
    runs = {name: parts[name] for name in dict.fromkeys(runs_of(parts).values())}
    assert [list(one) for one in grids(runs)] == [
        ["primary", "variant1", "variant2", "variant3", "variant4", "variant5"],
        ["variant7"],
    ]


def test_a_variant_in_a_grid_has_the_signals_that_it_has_alone(recipe, tmp_path):
    """Whatever stands beside it: the same canaries, starts and batches, to rounding."""
    study = read_recipe(recipe)
    run_study(study, tmp_path / "all", Execution())
    together = Record.open(tmp_path / "all")
    for name, part in study.parts().items():
        if name == "variant6":
            assert "variant6.signals" not in together.array_names()
            continue
        run_study(part, tmp_path / name, Execution())
        alone = Record.open(tmp_path / name).array("primary.signals")
        np.testing.assert_allclose(
            together.array(f"{name}.signals"), alone, rtol=1e-4, atol=1e-4, err_msg=name
        )
    found = together.results()
    labels = ["once", "often", "late", "quick", "odd", "poisoned", "uncalibrated", "wide"]
    assert [one["label"] for one in found["compare"]["series"]] == labels
    assert [one["label"] for one in found["compare"]["differences"]] == labels[1:]
    assert found["curve_variant3"]["label"] == "quick"


def test_changes_and_differences_undo_each_other():
    table = {"plan": {"step": 1, "batch": 8}, "training": {"options": {"lr": 1}}}
    changes = {"plan": {"step": 2}, "training": {"options": {"lr": 1, "momentum": 2}}}
    assert difference(table, with_changes(table, changes)) == changes
    assert difference(table, table) == {}
