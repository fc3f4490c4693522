"""The recipes that come with the package."""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import dataclass
from importlib.resources import files

from remnant.errors import InvalidInput
from remnant.studies.registry import ASSUMED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENDING = ".toml"


@dataclass(frozen=True, slots=True)
class ShippedRecipe:
    """A recipe of the package.

    Attributes:
        name: Of its file, without the ending.
        question: What it asks.
        about: The first sentence of its comment.
        text: The whole file.
    """

    name: str
    question: str
    about: str
    text: str


def shipped_recipes() -> tuple[ShippedRecipe, ...]:
    """Return the recipes of the package, by name."""
    folder = files("remnant.studies") / "recipes"
    recipes = (file for file in folder.iterdir() if file.name.endswith(_ENDING))
    return tuple(
        _shipped(file.name.removesuffix(_ENDING), file.read_text(encoding="utf-8"))
        for file in sorted(recipes, key=lambda file: file.name)
    )


def shipped_recipe(name: str) -> ShippedRecipe:
    """Return a recipe of the package by its name, with or without ``.toml``.

    Raises:
        InvalidInput: There is none of this name.
    """
    known = {recipe.name: recipe for recipe in shipped_recipes()}
    recipe = known.get(name.removesuffix(_ENDING))
    if recipe is None:
        raise InvalidInput(f"name={name!r} is not one of {', '.join(known)}.")
    return recipe


def _shipped(name: str, text: str) -> ShippedRecipe:
    comment = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    said = " ".join(line.removeprefix("#").strip() for line in comment)
    about = re.split(r"(?<=[.!?])\s", said, maxsplit=1)[0]
    return ShippedRecipe(name, tomllib.loads(text).get("question", ASSUMED), about, text)
