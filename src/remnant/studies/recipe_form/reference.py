"""The reference of all fields of all recipes as Markdown, a page of the site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any

from remnant.studies.recipe_form.fields import (
    RecipeField,
    fields_of,
    section_defaults,
    summary_of,
    type_words,
)
from remnant.studies.recipe_form.toml import toml_value
from remnant.studies.registry import ASSUMED, QUESTIONS, RECIPES, recipe_of

_INTRODUCTION = f"""# Recipes: all fields

A recipe is a TOML file that asks one question. `remnant recipe new QUESTION` writes one with every
field, `remnant recipe list` and `copy` find the shipped ones, `remnant recipe schema` prints a JSON
schema for editors, and `remnant run` runs a recipe.

- `question` is assumed to be `"{ASSUMED}"` where it is missing.
- A field that is missing has its default. An unknown field is an error.
- A section that is `false` is left out, as if it were missing.
- `[scale.NAME]` has fields that replace those of the recipe with `remnant run --scale NAME`.
- A value that is a table or a list, such as `training.options`, is replaced as a whole.

This page is made from the code.
"""
_COMPARES = (
    "`label` is what the study itself is called, `title` the title of the comparison. Each "
    "`[[compare]]` is a variant: a `label` and the fields in which it differs."
)
_VARIES = (
    "Each `[variants.NAME]` is a variant: the fields in which it differs. `variants = false` "
    "leaves them out."
)
_REMEDIES = (
    "`label` is what the training as planned is called, `title` the title of the comparison. Each "
    "`[[remedy]]` has a `label`, a `kind`, the fields of that kind, and the fields of the recipe "
    "that it changes."
)
_GRIDS = (
    "`[grid]` has fields with lists of their values: every combination is a variant, the first is "
    "the study itself. `[grid.along.FIELD]` has fields that change together with another, "
    "`[grid.named]` has names for values."
)


def recipe_reference() -> str:
    """Return the page."""
    described: dict[type[Any], str] = {}
    parts = [_INTRODUCTION]
    for name in RECIPES:
        parts.append("\n".join(_question(name, described)))
    return "\n".join(parts)


def _question(name: str, described: dict[type[Any], str]) -> Iterator[str]:
    recipe, defaults = recipe_of(name), section_defaults(recipe_of(name))
    yield f"## {name}\n"
    yield f"{QUESTIONS[name].title}\n"
    for text, applies in (
        (_COMPARES, recipe.compares),
        (_VARIES, recipe.varies),
        (_GRIDS, recipe.grids),
        (_REMEDIES, recipe.remedy is not None),
    ):
        if applies:
            yield f"{text}\n"
    for kind, made in recipe.plans.items():
        yield f'### [plan], kind = "{kind}"\n'
        yield from _section("plan", made, "", name, described)
    if recipe.remedy is not None:
        yield "### [[remedy]]\n"
        yield from _section("remedy", recipe.remedy, "", name, described)
    for section, made in recipe.sections.items():
        yield f"### [{section}]\n"
        note = _note(made, defaults[section])
        yield from _section(section, made, f"{note}{_marked(summary_of(made))}", name, described)


def _section(
    section: str, made: type[Any], words: str, name: str, described: dict[type[Any], str]
) -> Iterator[str]:
    """Yield the table of a section's fields, or where it is."""
    if words:
        yield f"{words}\n"
    first = described.setdefault(made, name)
    if first != name:
        yield f"The fields are those of `[{section}]` in [{first}](#{first}).\n"
        return
    yield from ("| field | type | default | meaning |", "|---|---|---|---|")
    yield from map(_row, fields_of(made))
    yield ""


def _note(made: type[Any], default: Any) -> str:
    """Say what holds where a recipe does not have the section."""
    if default is MISSING:
        return "Required. "
    if default is None:
        return "Off where it is missing. "
    other = [
        f"`{field.name} = {toml_value(getattr(default, field.name))}`"
        for field in fields_of(made)
        if getattr(default, field.name) != field.default
    ]
    return f"Where the section is missing: {', '.join(other)}. " if other else ""


def _row(field: RecipeField) -> str:
    types = ", ".join(f'`"{choice}"`' for choice in field.choices) or type_words(field.type)
    default = "required" if field.required else "not set"
    if not field.required and not field.unset:
        default = f"`{toml_value(field.default)}`"
    meaning = _marked(field.meaning).replace("|", "\\|")
    return f"| `{field.name}` | {types} | {default} | {meaning} |"


def _marked(text: str) -> str:
    """Return a text of a docstring with Markdown's marks of code."""
    return text.replace("``", "`")
