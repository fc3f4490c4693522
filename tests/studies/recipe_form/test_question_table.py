"""The table of questions times tasks: every cell has a recipe or a reason, as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from remnant.errors import InvalidInput
from remnant.studies import read_recipe
from remnant.studies.recipe_form.question_table import (
    COLUMNS,
    EMPTY,
    OWN,
    ROWS,
    question_table,
    recipes_in,
    with_table,
)
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import QUESTIONS, RECIPES, task_of
from remnant.tasks.task import Task

ONE_RUNS = [name for name, question in QUESTIONS.items() if question.asks == "one-run"]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "which-measure.md"


def test_the_page_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: make reference"
    assert question_table() in page


@pytest.mark.parametrize("task", COLUMNS)
@pytest.mark.parametrize("asks", ROWS)
def test_a_cell_has_a_recipe_or_a_reason(asks, task):
    assert bool(recipes_in(asks, task)) != ((asks, task) in EMPTY)


def test_every_recipe_has_a_cell_and_nothing_else_has():
    filled = [name for asks in ROWS for task in COLUMNS for name in recipes_in(asks, task)]
    assert set(filled) == set(RECIPES), "asks is one of ROWS and task one of COLUMNS"
    assert sorted(filled) == sorted([*RECIPES, *(n for n in RECIPES if QUESTIONS[n].own)])
    assert set(EMPTY) <= {(asks, task) for asks in ROWS for task in COLUMNS}
    for name in QUESTIONS.keys() - set(RECIPES):
        question = QUESTIONS[name]
        assert (question.asks, question.task, question.own) == ("", "", False)


@pytest.mark.parametrize("name", RECIPES)
def test_a_network_of_ones_own_is_taken_where_the_table_says_so(name, tmp_path):
    path = tmp_path / "recipe.toml"
    before, head, model = recipe_template(name).partition("[model]\n")
    assert ("# maker = <text>" in model) == QUESTIONS[name].own
    if QUESTIONS[name].own:
        model = model.replace("# maker = <text>", 'maker = "mine:net"', 1)
        model = model.replace('name = "mlp1"', 'name = "own"')
        model = model.replace("options = {}", 'options.hidden = "body"')
        path.write_text(before + head + model, encoding="utf-8")
        assert read_recipe(path).model.maker == "mine:net"


@pytest.mark.parametrize("name", ONE_RUNS)
def test_a_room_over_tasks_finds_its_task(name, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_template(name), encoding="utf-8")
    task = task_of(read_recipe(path))
    assert isinstance(task, Task)
    assert type(task).__module__ == f"remnant.tasks.{QUESTIONS[name].task}"


def test_a_page_without_marks_is_refused():
    with pytest.raises(InvalidInput, match="The page has no <!-- The code writes this table"):
        with_table("# A page\n")


def test_the_table_is_markdown():
    head, rule, *rows = question_table().splitlines()
    assert head.startswith("| question | images")
    assert {line.count("|") for line in (head, rule, *rows)} == {len(COLUMNS) + 2}
    assert "[`one-run`](../reference/recipes.md#one-run) with `model.maker`" in question_table()
    assert OWN in COLUMNS
