"""Studies name the optional libraries that they lack, all at once and before any is run."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import pytest

from remnant.errors import MissingExtra, install_hint
from remnant.studies import read_recipe
from remnant.studies.required_extras import check_extras, needs_of

SHIPPED = Path(str(files("remnant.studies") / "recipes"))


def libraries_of(recipe):
    return {need.package for need in needs_of(read_recipe(recipe))}


def test_the_recipes_of_digits_need_scikit_learn():
    digits = sorted(SHIPPED.glob("digits-*.toml"))
    assert digits
    for recipe in digits:
        assert libraries_of(recipe) == {"scikit-learn"}, recipe.name


def test_text_of_the_standard_library_needs_nothing():
    assert libraries_of(SHIPPED / "stdlib-secret.toml") == set()


def test_deduplication_needs_its_libraries(tmp_path):
    text = (SHIPPED / "stdlib-secret.toml").read_text()
    recipe = tmp_path / "r.toml"
    recipe.write_text(text.replace("[text]", "[text]\ndeduplicate = true"))
    assert libraries_of(recipe) == {"datasketch", "rapidfuzz"}


@pytest.mark.parametrize(("path", "needed"), [("mine.npz", set()), ("pictures", {"Pillow"})])
def test_a_folder_of_images_needs_pillow(tmp_path, path, needed):
    text = (SHIPPED / "digits-inject.toml").read_text()
    recipe = tmp_path / "r.toml"
    recipe.write_text(text.replace('name = "digits"', f'name = "files"\npath = "{path}"'))
    assert libraries_of(recipe) == needed


def test_own_text_in_a_folder_needs_nothing(tmp_path):
    recipe = tmp_path / "r.toml"
    text = (SHIPPED / "stdlib-secret.toml").read_text().replace('name = "standard-library"', "")
    recipe.write_text(text + '[data]\npath = "texts"\n')
    assert libraries_of(recipe) == set()


def test_all_that_is_missing_is_named_in_one_sentence(monkeypatch):
    studies = [read_recipe(SHIPPED / "digits-inject.toml")]
    check_extras(studies)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra) as fault:
        check_extras(studies)
    assert str(fault.value) == (
        "The digits need scikit-learn, which is not installed. "
        "Run pip install -e '.[data]' in your clone of Remnant."
    )


def test_outside_of_a_clone_the_hint_names_the_libraries(monkeypatch, tmp_path):
    monkeypatch.setattr("remnant.errors.__file__", str(tmp_path / "a" / "b" / "errors.py"))
    monkeypatch.setattr(
        "importlib.metadata.requires",
        lambda name: [
            "numpy>=2.0",
            "pillow>=10.0; extra == 'data'",
            'transformers>=5.0; extra == "hf"',
            'remnant[hf]; extra == "peft"',
            'peft>=0.21; extra == "peft"',
        ],
    )
    assert install_hint("data") == "Run pip install 'pillow>=10.0' (the extra data)."
    assert install_hint("peft", "hf") == (
        "Run pip install 'transformers>=5.0' 'peft>=0.21' (the extras peft,hf)."
    )
