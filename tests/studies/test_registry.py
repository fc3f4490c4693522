"""The registry: every question has its code, studies find their question, nothing loads early."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import pytest

from remnant.errors import InvalidInput
from remnant.studies import Study, read_recipe
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import QUESTIONS, RECIPES, load, recipe_of
from remnant.studies.shared.study import Recipe

ROOMS = Path(__file__).parents[2] / "src" / "remnant" / "studies"


@pytest.mark.parametrize("name", RECIPES)
def test_a_question_has_its_recipe_run_and_estimate(name):
    question, recipe = QUESTIONS[name], recipe_of(name)
    assert isinstance(recipe, Recipe)
    assert question.title.endswith("?")
    assert name == recipe.study.QUESTION
    assert callable(load(f"{question.run}:prepare"))
    assert callable(load(f"{question.run}:estimate"))
    room = question.recipe.split(":")[0].rpartition(".")[0]
    assert find_spec(room) is not None
    for reference in (question.run, question.result, question.page):
        assert reference.startswith(f"{room}."), "all of a question's code is in its room"


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_its_result_and_page(name):
    question = QUESTIONS[name]
    assert load(question.result).VERSION >= 1
    assert callable(load(question.page))
    assert isinstance(load(question.heading), str)
    assert bool(question.recipe) == bool(question.run)
    assert question.recipe or not question.repeatable


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_names_the_fields_of_its_study(name):
    recipe = recipe_of(name)
    known = {field.name for field in dataclasses.fields(recipe.study)}
    assert {"plan", *recipe.sections} <= known
    assert set(recipe.top) - {"question"} <= known
    assert all(plan.kind == kind for kind, plan in recipe.plans.items())


@pytest.mark.parametrize("name", RECIPES)
def test_a_study_knows_its_question(name, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_template(name), encoding="utf-8")
    study = read_recipe(path)
    assert isinstance(study, Study)
    assert (study.QUESTION, study.to_dict()["question"]) == (name, name)
    assert study == recipe_of(name).study(**vars(study)), "the name of the question is no field"


def test_an_unknown_question_is_refused_with_the_known_ones():
    with pytest.raises(
        InvalidInput, match="question='exposures' is not one of forgetting, one-run"
    ):
        recipe_of("exposures")
