"""The page of all recipes, which the site generates, has every field."""

from __future__ import annotations

from remnant.studies.recipe_form.fields import fields_of
from remnant.studies.recipe_form.reference import recipe_reference
from remnant.studies.registry import QUESTIONS, RECIPES, recipe_of


def test_every_field_is_on_the_page_with_its_default():
    page = recipe_reference()
    for name in RECIPES:
        recipe = recipe_of(name)
        assert f"\n## {name}\n\n{QUESTIONS[name].title}\n" in page
        for section in (*recipe.plans.values(), *recipe.sections.values()):
            for field in fields_of(section):
                assert f"| `{field.name}` | " in page
    assert "| `limit` | number | `10.0` | Bits that the exposure of a judged canary" in page
    assert "| `repeats` | list of whole numbers | required | Copies of each canary" in page
    assert "| `judged` | whole number | not set |" in page


def test_a_section_of_several_questions_is_described_once():
    page = recipe_reference()
    assert page.count("| `optimizer` |") == 1
    assert 'Where the section is missing: `optimizer = "adam"`, `options = { lr = 0.002 }`.' in page
    assert "Off where it is missing. " in page
    assert "Required. The sentence and its translation" in page
