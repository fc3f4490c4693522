"""Every field of every shipped recipe with values that it should not have."""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from remnant.errors import PlanError, RemnantError
from remnant.plans import PoisonPlan
from remnant.studies import Execution, estimate_study, read_recipe
from remnant.studies.recipe import study_from

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED = sorted(
    [
        *(Path(__file__).parents[2] / "recipes").glob("*.toml"),
        *Path(str(files("remnant.studies") / "recipes")).glob("*.toml"),
    ]
)
BAD = [
    *({}, [], [0], ["x"], [[]], {"a": {"b": 1}}),
    *(math.inf, math.nan, -1, 0, 2**70, 1e308, "", "x", True),
]


def tables(value, path=()):
    """Yield the path of every section and field that a recipe gives."""
    for key, inner in value.items():
        yield (*path, key)
        if isinstance(inner, dict):
            yield from tables(inner, (*path, key))


def fields_of(table):
    """Yield the path of every field, given or not."""
    given = list(tables(table))
    yield from given
    study = study_from(table)
    for section in dataclasses.fields(study):
        value = getattr(study, section.name)
        if dataclasses.is_dataclass(value) and section.name in table:
            for field in dataclasses.fields(value):
                if (section.name, field.name) not in given:
                    yield section.name, field.name


def with_value(table, path, value):
    changed = copy.deepcopy(table)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def fault_of(table):
    """Return what is said of a recipe, or None where it is taken."""
    try:
        assert len(study_from(table).fingerprint) == 16
    except RemnantError as fault:
        return str(fault)
    return None


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda path: path.name)
def test_a_bad_value_is_refused_by_name_or_taken(recipe):
    table = tomllib.loads(recipe.read_text(encoding="utf-8"))
    table.pop("scale", None)
    refused = 0
    for path in fields_of(table):
        for value in BAD:
            said = fault_of(with_value(table, path, value))
            if said is not None:
                refused += 1
                # Of a value that is sound by itself, the message names what it contradicts.
                named = any(part in said for part in path) or path[0] == "plan"
                assert named, f"{'.'.join(path)}={value!r}: {said}"
    assert refused > 100


TINY = """
[plan]
kind = "{kind}"
canaries = 16
step = {step}
watch_steps = 12
trials = 2
batch = 32
[data]
name = "digits"
examples = 200
[attack]
limit = 0.9
"""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[training]\noptimizer = {}", "training.optimizer={} is not the name of an optimizer"),
        ("[training]\noptimizer = 'x'", "training.options: optimizer='x' is not one of sgd, adam"),
        (
            "[training]\noptimizer = 'dp-sgd'\nclip = 1.0",
            "training.options: dp-sgd needs noise, the noise multiplier",
        ),
        (
            "[training]\noptimizer = 'dp-sgd'\noptions = {noise = 1.0}",
            "dp-sgd needs clip, the largest gradient norm of one example",
        ),
        (
            "[training]\noptions = {noise = 1.0}",
            "noise is an option of dp-sgd, dp-rmsprop, dp-adam, not of sgd",
        ),
        ("[training]\nclip = inf", "training.clip=inf is not a finite number"),
        ("[training]\noptions = {lr = nan}", "training.options.lr=nan is not a finite number"),
        ("[training]\noptions = {lr = 'x'}", "lr='x'"),
        ("[model]\noptions = {width = 1e308}", "model.options.width=1e+308 is not a number of at"),
        ("[model]\noptions = {width = true}", "model.options.width=True is not a number of at"),
        ("[model]\nname = [0]", "model.name=[0] is not one of logistic"),
        ("[model]\nname = {}", "model.name={} is not one of logistic"),
        ("[canaries]\njudges = 1979-05-27", "canaries.judges=1979-05-27 is a date"),
        ("canaries = 0", "unknown field attack.canaries"),
        ("[hidden]\nnoise = [inf]", "hidden.noise[0]=inf is not a finite number"),
    ],
)
def test_a_fault_names_its_field(tmp_path, more, words):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY.format(kind="inject", step=8) + more)
    with pytest.raises(PlanError) as refused:
        read_recipe(recipe)
    assert words in str(refused.value)


MANY = """
question = "forgetting"
label = 3
unheard = 1
[plan]
kind = "inject"
canaries = 0
step = 8
watch_steps = -1
trials = 2
[data]
name = "unheard"
seed = -1
[canaries]
kinds = "odd"
[model]
options = { width = true }
[training]
optimizer = "unheard"
[attack]
fpr = nan
limit = 7
[hidden]
draws = 0
"""


def test_all_faults_of_a_recipe_are_listed_at_once_with_their_fields(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(MANY)
    with pytest.raises(PlanError) as refused:
        read_recipe(recipe)
    assert refused.value.faults == (
        "attack.fpr=nan is not a finite number",
        "unknown section or field 'unheard'",
        "label=3 is not a text",
        "plan.canaries=0 is not a whole number of at least 1",
        "plan.watch_steps=-1 is not a whole number of at least 0",
        "data.name='unheard' is not one of digits, framed-digits, mnist, fashion-mnist, cifar10, "
        "files, tensors",
        "data.seed=-1 is not a whole number of at least 0",
        "unknown field canaries.kinds",
        "model.options.width=True is not a number of at most 1e+09",
        "training.options: optimizer='unheard' is not one of sgd, adam, adamw, rmsprop, adagrad, "
        "adadelta, dp-sgd, dp-rmsprop, dp-adam",
        "hidden.draws=0 is not a whole number of at least 1",
    )
    assert refused.value.message == "; ".join(refused.value.faults) + "."
    assert "[canaries] has: kind, judges, judge_steps, share." in refused.value.hint
    assert refused.value.hint.count("Fix the recipe.") == 1


def test_faults_of_all_scales_and_of_all_variants_are_listed_at_once(tmp_path):
    recipe = tmp_path / "recipe.toml"
    sound = TINY.format(kind="inject", step=8)
    recipe.write_text(f"{sound}[scale.a]\nplan.trials = 0\n[scale.b]\nmodel.name = 'unheard'\n")
    with pytest.raises(PlanError) as refused:
        read_recipe(recipe)
    words = "plan.trials=0 is not a whole number of at least 1"
    assert f"scale.a: {words}; scale.b: model.name='unheard'" in str(refused.value)
    recipe.write_text(
        f"{sound}[[compare]]\nlabel = 'a'\nplan.trials = 0\n"
        "[[compare]]\nlabel = 'b'\nplan.kind = 'poison'\nplan.unheard = 2\n"
    )
    with pytest.raises(PlanError) as refused:
        read_recipe(recipe)
    assert f"compare 'a': {words}; compare 'b': unknown field plan.unheard" in str(refused.value)


def test_a_misspelt_field_of_a_remedy_names_the_fields_of_remedies():
    (shipped,) = (path for path in SHIPPED if path.name == "stdlib-defences.toml")
    table = tomllib.loads(shipped.read_text())
    table.pop("scale", None)
    table["remedy"] = [{"label": "a", "kind": "dropout", "rate": 0.2, "strenght": 1}]
    with pytest.raises(PlanError) as refused:
        study_from(table)
    assert refused.value.faults == (
        "remedy 'a': unknown field 'strenght' (did you mean 'strength'?)",
    )
    assert refused.value.hint.startswith("A remedy has: label, kind, strength, rate, clip, noise")
    assert "question" not in refused.value.hint
    table["remedy"] = [{"label": "a", "kind": "training", "training": {"clip": 1.0}}]
    assert study_from(table).remedy[0].study.training.clip == 1.0


def test_a_section_with_a_field_of_its_own_name_is_named_once(tmp_path):
    recipe = tmp_path / "recipe.toml"
    (shipped,) = (path for path in SHIPPED if path.name == "translation-secret.toml")
    recipe.write_text(shipped.read_text().replace("[pairs]", "[pairs]\nseed = -1"))
    with pytest.raises(PlanError, match=r"^pairs\.seed=-1 is not a whole number"):
        read_recipe(recipe)


def test_a_template_that_is_a_table_is_named(tmp_path):
    (shipped,) = (path for path in SHIPPED if path.name == "stdlib-secret.toml")
    table = tomllib.loads(shipped.read_text(encoding="utf-8"))
    table.pop("scale", None)
    with pytest.raises(PlanError, match=r"secret\.template=\{'a': 1\} is not a text"):
        study_from(with_value(table, ("secret", "template"), {"a": 1}))


def test_a_section_that_is_no_section_is_named():
    (shipped,) = (path for path in SHIPPED if path.name == "translation-secret.toml")
    table = tomllib.loads(shipped.read_text(encoding="utf-8"))
    table.pop("scale", None)
    for value in ([], 0, "", [0]):
        with pytest.raises(PlanError, match=r"\[pairs\] is not a section"):
            study_from(with_value(table, ("pairs",), value))
    with pytest.raises(PlanError, match=r"neither \[data\] nor pairs.source names"):
        study_from(with_value(table, ("pairs",), False))


def test_the_estimate_of_poison_does_not_grow_with_the_step(tmp_path, monkeypatch):
    drawn, places = [], PoisonPlan._places

    def counted(plan, *arguments):
        drawn.append(arguments)
        return places(plan, *arguments)

    monkeypatch.setattr(PoisonPlan, "_places", counted)
    counts = []
    for step in (40, 4000, 10**9):
        recipe = tmp_path / f"{step}.toml"
        recipe.write_text(TINY.format(kind="poison", step=step))
        drawn.clear()
        found = estimate_study(read_recipe(recipe), Execution())
        counts.append(len(drawn))
        assert found["steps"] == step + 12
    assert counts[0] == counts[1] == counts[2]


def test_a_fault_is_listed_once():
    with pytest.raises(PlanError) as caught:
        study_from(
            {
                "question": "exposure",
                "plan": {"kind": "insert", "repeats": [1], "steps": 10},
                "model": {"name": "x"},
            }
        )
    assert str(caught.value).count("model.name='x'") == 1
