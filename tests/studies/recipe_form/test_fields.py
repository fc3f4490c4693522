"""Fields are read off dataclasses: type, default, choices, and the meaning in the docstring."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from typing import Annotated, Any

import pytest

from remnant.errors import RemnantError
from remnant.plans.bounds import one_of
from remnant.studies.recipe_form.fields import (
    fields_of,
    section_defaults,
    summary_of,
    type_words,
)
from remnant.studies.registry import RECIPES, recipe_of


@dataclass(frozen=True, kw_only=True)
class Lower:
    """Not this line.

    Attributes:
        width: Of the lower one.
        depth: How deep it is, told over
            two lines. Not set: as deep as can be.

    Example:
        >>> Lower
    """

    width: int
    depth: int | None = None


@dataclass(frozen=True, kw_only=True)
class Upper(Lower):
    """The upper one.

    Attributes:
        width, height: In pixels. More words.
        level: One of ``a`` and ``b``.
    """

    height: float = 2.0
    level: Annotated[str, one_of(("a", "b"))] = "a"
    steps: int | tuple[int, ...] = (1, 2)
    options: dict[str, Any] = field(default_factory=lambda: {"lr": 0.1})


def test_fields_have_type_default_choices_and_meaning():
    found = {one.name: one for one in fields_of(Upper)}
    assert list(found) == ["width", "depth", "height", "level", "steps", "options"]
    assert found["width"].required
    assert found["width"].default is MISSING
    assert found["depth"].unset
    assert found["depth"].type is int
    assert found["level"].choices == ("a", "b")
    assert found["steps"].default == (1, 2)
    assert found["options"].default == {"lr": 0.1}
    assert found["options"].meaning == ""


def test_the_meaning_is_the_subclass_s_own_word_first():
    found = {one.name: one for one in fields_of(Upper)}
    assert found["width"].meaning == found["height"].meaning == "In pixels. More words."
    assert found["width"].short_meaning == "In pixels."
    assert found["depth"].meaning == (
        "How deep it is, told over two lines. Not set: as deep as can be."
    )
    assert found["depth"].short_meaning == found["depth"].meaning, "what holds unset is kept"
    assert found["level"].plain_meaning == "One of a and b."
    assert summary_of(Upper) == "The upper one."


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "whole number"),
        (float, "number"),
        (str, "text"),
        (bool, "true or false"),
        (tuple[str, ...], "list of texts"),
        (dict[str, Any], "table"),
        (int | tuple[float, ...], "whole number or list of numbers"),
    ],
)
def test_types_in_words(annotation, words):
    assert type_words(annotation) == words


@pytest.mark.parametrize("name", RECIPES)
def test_every_field_of_every_recipe_says_what_it_means(name):
    recipe = recipe_of(name)
    for section in (*recipe.plans.values(), *recipe.sections.values()):
        assert summary_of(section).endswith("."), section
        for known in fields_of(section):
            assert known.meaning.endswith("."), f"{section.__name__}.{known.name}"
            assert type_words(known.type)


@pytest.mark.parametrize("name", RECIPES)
def test_named_choices_are_those_that_the_class_takes(name):
    recipe = recipe_of(name)
    for section in recipe.sections.values():
        needed = {one.name: "a {digits:3}" for one in fields_of(section) if one.required}
        for known in fields_of(section):
            if known.choices:
                assert known.unset or known.default in known.choices
                with pytest.raises(RemnantError, match=f"{known.name}='other' is not one of"):
                    section(**needed, **{known.name: "other"})


def test_what_a_section_is_where_it_is_missing():
    found = section_defaults(recipe_of("translation-exposure"))
    assert found["secret"] is MISSING
    assert found["pairs"].source is None
    assert found["data"] is None
    assert found["training"].optimizer == "adam"
    assert section_defaults(recipe_of("forgetting"))["hidden"] is None
