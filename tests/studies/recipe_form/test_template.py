"""A commented recipe can be read, has every field, and gives each its default."""

from __future__ import annotations

import dataclasses
import re
import sys

import pytest

from remnant.errors import InvalidInput
from remnant.studies import read_recipe
from remnant.studies.recipe_form.fields import fields_of, section_defaults
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.recipe_form.toml import toml_value
from remnant.studies.registry import RECIPES, recipe_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture
def read(tmp_path):
    def reading(text, **options):
        path = tmp_path / "recipe.toml"
        path.write_text(text, encoding="utf-8")
        return read_recipe(path, **options)

    return reading


def resolved(section, study):
    """A section with what follows from the study's plan, such as an attack's calibration."""
    return section.resolved(study.plan) if hasattr(section, "resolved") else section


@pytest.mark.parametrize("name", RECIPES)
def test_a_new_recipe_is_the_study_with_its_defaults(name, read):
    study, recipe = read(recipe_template(name)), recipe_of(name)
    assert isinstance(study, recipe.study)
    for section, default in section_defaults(recipe).items():
        if default is not dataclasses.MISSING and default is not None:
            default = dataclasses.replace(default, **recipe.example.get(section, {}))
        if default is not dataclasses.MISSING:
            assert getattr(study, section) == resolved(default, study), section
    plan = next(iter(recipe.plans.values()))
    example = recipe.example.get("plan", {})
    for field in fields_of(plan):
        if not field.required and field.name not in example and not field.unset:
            assert getattr(study.plan, field.name) == field.default


@pytest.mark.parametrize("name", RECIPES)
def test_a_new_recipe_has_every_field_with_a_comment(name):
    lines, recipe = recipe_template(name).splitlines(), recipe_of(name)
    for section in ("plan", *recipe.sections):
        (start,) = (n for n, line in enumerate(lines) if line in (f"[{section}]", f"# [{section}]"))
        end = next(n for n, line in enumerate([*lines, ""]) if n > start and not line)
        given = {}
        for n, line in enumerate(lines[start:end], start):
            if field := re.match(r"(?:# )*(\w+) = ", line):
                given[field[1]] = n
        made = recipe.plans.values() if section == "plan" else [recipe.sections[section]]
        wanted = {"kind": None} if section == "plan" else {}
        wanted |= {field.name: None for one in made for field in fields_of(one)}
        assert list(given) == list(wanted)
        for field in set(wanted) - {"kind"}:
            before = given[field] - 1
            assert before not in given.values(), f"{field} has no comment"
            assert lines[before].startswith("# ")


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_commented_out_can_be_switched_on(name, read):
    text, recipe = recipe_template(name), recipe_of(name)
    on = re.sub(
        r"^# (?=\[|training\.clip|plan\.batch|label = |kind = .dropout)",
        "",
        text,
        flags=re.MULTILINE,
    )
    on = re.sub(r"^# (?=\w+ = [\[\d])", "", on, flags=re.MULTILINE)
    if section_defaults(recipe).get("data", 0) is None:  # the user's own files
        on = re.sub(r"^# (?=path = )", "", on, flags=re.MULTILINE)
        on = re.sub(r"^(?=(source|target) = \"train)", "# ", on, flags=re.MULTILINE)
    table = tomllib.loads(on)
    assert table["scale"] == {"large": {"plan": {"batch": 128}}}
    study = read(on, scale=None)
    if recipe.compares:
        assert study.compare[-1].label == "clipped"
        assert study.compare[-1].study.training.clip == 1.0
    if recipe.remedy is not None:
        assert [(one.label, one.settings.rate) for one in study.remedy] == [("dropout 20 %", 0.2)]
    if recipe.varies:
        assert [one.label for one in study.variants] == ["clipped"]
    if recipe.grids:
        assert [cell.values for cell in study.cells()] == [{"batch": 16}, {"batch": 32}]
    if "hidden" in recipe.sections:
        assert study.hidden.noise == (0.1, 0.2, 0.4)
    if section_defaults(recipe).get("data", 0) is None:
        assert study.data.path == recipe.example["data"]["path"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_for_own_files_names_them_and_no_other_data(name, read):
    study = read(recipe_template(name, files="mine/train.jsonl"))
    assert study.data.name == "files"
    assert study.data.path == "mine/train.jsonl"
    table = tomllib.loads(recipe_template(name, files="mine/train.jsonl"))
    assert "name" not in table.get("text", {}) | table.get("questions", {})
    assert "source" not in table.get("pairs", {})


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_what_a_deleted_field_becomes(name, read):
    """Where the study without a section has other values than the section without a field."""
    recipe, text = recipe_of(name), recipe_template(name)
    for section, default in section_defaults(recipe).items():
        if default is None or default is dataclasses.MISSING or section in recipe.example:
            continue
        head, tail = text.split(f"\n[{section}]\n")
        said = head.splitlines()[-1]
        for field in fields_of(recipe.sections[section]):
            kept = f"\n{tail}".replace(f"\n{field.name} = ", f"\n# {field.name} = ", 1)
            study = read(f"{head}\n[{section}]{kept}")
            changed = getattr(getattr(study, section), field.name)
            shown = getattr(resolved(default, study), field.name)
            assert (f" {field.name} " in said and "delete here" in said) == (changed != shown)


def test_lines_are_short_and_no_mark_of_code_is_left():
    for name in RECIPES:
        text = recipe_template(name)
        assert "`" not in text
        assert max(map(len, text.splitlines())) <= 100


def test_an_unknown_question_is_refused():
    with pytest.raises(InvalidInput, match="question='x' is not one of"):
        recipe_template("x")


@pytest.mark.parametrize(
    "value",
    [
        *(1, -2, 0.5, 1e-5, 1e300, True, False, "a", 'quote " and \\ and é', "", [], [1, 4]),
        *(["a", "b"], {}, {"lr": 0.1, "nesterov": True}, {"a": {"b": [1]}}),
    ],
)
def test_values_are_written_as_toml(value):
    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


def test_a_field_that_is_not_set_says_what_holds_and_explains_old_names():
    text = " ".join(recipe_template("forgetting").replace("\n#", "").split())
    assert "Not set: references; checkpoint for INJECT with one or two trials" in text
    assert "Names of version 0.2: logit is checkpoint" in text
    assert "Not set: 0.25." in text
