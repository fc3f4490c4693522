"""The recipes that come with the package, and those of a folder: what each is about."""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from remnant.errors import InvalidInput
from remnant.studies.registry import ASSUMED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENDING = ".toml"
# Data that every machine has; any other is read from the folder of --data.
_AT_HAND = ("digits", "framed-digits", "standard-library", "synthetic", "files")


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


@dataclass(frozen=True, slots=True)
class LocalRecipe:
    """A recipe in a folder of the user's.

    Attributes:
        path: Of its file.
        question: What it asks; None if the file cannot be read as TOML.
        about: The first sentence of its comment, or why the file cannot be read.
        command: What runs it; None if the file cannot be read.
    """

    path: Path
    question: str | None
    about: str
    command: str | None


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


def local_recipes(folder: Path) -> tuple[LocalRecipe, ...]:
    """Return the recipes of a folder, by name; none if there is no such folder.

    The command is the one in the comment that the recipe begins with. Without one it is
    ``remnant run PATH``, with ``--data DATA`` where the recipe names data that has to be fetched.
    """
    if not folder.is_dir():
        return ()
    return tuple(
        _local(path) for path in sorted(folder.glob(f"*{_ENDING}"), key=lambda path: path.stem)
    )


def _local(path: Path) -> LocalRecipe:
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (OSError, ValueError) as fault:
        said = fault.strerror if isinstance(fault, OSError) else "it is not TOML"
        return LocalRecipe(path, None, f"Cannot be read: {said}.", None)
    command = f"remnant run {path.as_posix()}"
    own = re.search(rf"^#\s*({re.escape(command)} [\w ./:=-]+)$", _opening(text), re.MULTILINE)
    if own is not None:
        command = own[1]
    elif _needs_data(table):
        command += " --data DATA"
    return LocalRecipe(path, str(table.get("question", ASSUMED)), _about(text), command)


def _needs_data(table: dict[str, Any]) -> bool:
    """Whether the recipe reads a data set that is not on every machine."""
    sections = [table[name] for name in ("data", "text", "questions") if name in table]
    named = [section.get("name") for section in sections if isinstance(section, dict)]
    return "pairs" in table or any(name and name not in _AT_HAND for name in named)


def _shipped(name: str, text: str) -> ShippedRecipe:
    return ShippedRecipe(name, tomllib.loads(text).get("question", ASSUMED), _about(text), text)


def _about(text: str) -> str:
    """The first sentence of the comment that a recipe begins with."""
    said = " ".join(line.removeprefix("#").strip() for line in _opening(text).splitlines())
    return re.split(r"(?<=[^.][.!?])\s", said, maxsplit=1)[0]


def _opening(text: str) -> str:
    """The comment that a recipe begins with."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return "\n".join(lines)
