"""Recipes as TOML: what is read back is the same study."""

from __future__ import annotations

from pathlib import Path

import pytest

from remnant.studies.recipe import read_recipe, tomllib
from remnant.studies.recipe_form.toml import recipe_text

HOME = Path(__file__).parents[2]
SHIPPED = [*HOME.glob("recipes/*.toml"), *HOME.glob("src/remnant/studies/recipes/*.toml")]
# The record of a feature study holds the patch's pixels, which a recipe does not.
RECIPES = [path for path in SHIPPED if not path.stem.endswith("features")]


@pytest.mark.parametrize("path", sorted(RECIPES), ids=lambda path: path.stem)
def test_a_recorded_recipe_reads_back_as_the_same_study(path, tmp_path):
    study = read_recipe(path)
    copied = tmp_path / "copied.toml"
    copied.write_text(recipe_text(study.to_dict()), encoding="utf-8")
    assert read_recipe(copied).to_dict() == study.to_dict()


def test_any_text_and_nesting_survives():
    recipe = {
        "label": 'a "b" \\ \n\x00\x7f\x1f é 😀',
        "odd key": [1.5, 1e-7, True, -3],
        "compare": [{"label": "x", "plan": {"repeats": 4, "none": None}}, {}],
        "plan": {"kind": "inject", "rate": {"a": 1.0}},
        "empty": {},
    }
    read = tomllib.loads(recipe_text(recipe))
    del recipe["compare"][0]["plan"]["none"]
    assert read == recipe
