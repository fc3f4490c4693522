"""A commented recipe: every field of a question with its default and its meaning."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import Any

from remnant.data.own_files import FILES
from remnant.studies.recipe_form.fields import (
    RecipeField,
    fields_of,
    section_defaults,
    summary_of,
    type_words,
)
from remnant.studies.recipe_form.toml import toml_value
from remnant.studies.registry import QUESTIONS, recipe_of
from remnant.studies.shared.study import Recipe

_WIDTH = 98
# What names the data where [data] does not.
_NAMED = {"text": ("name", "seed"), "pairs": ("source", "target"), "questions": ("name",)}


def recipe_template(name: str, *, files: str | None = None) -> str:
    """Return a commented recipe of a question, as TOML that ``read_recipe`` takes.

    Fields that are not set by default, sections that are off, and variants are commented out.

    Args:
        name: The question.
        files: The path of the user's own data; by default the recipe has the question's own.

    Raises:
        InvalidInput: There is no such question.
    """
    recipe = recipe_of(name)
    lines = [
        f"# {QUESTIONS[name].title}",
        "#",
        "# Every field is here, with its default or with an example where it has none. What is not",
        "# set by default is commented out. A field that you delete has its default.",
        f'question = "{name}"',
        *_names(recipe),
        "",
        "# Who sees what, and when.",
        "[plan]",
        *_plan(recipe),
    ]
    for section, default in section_defaults(recipe).items():
        lines += ["", *_section(recipe, section, default, files)]
    return "\n".join([*lines, "", *_variants(recipe)]) + "\n"


def _names(recipe: Recipe) -> Iterator[str]:
    """Yield what the study and the comparison with its variants are called."""
    if recipe.compares or recipe.remedy is not None:
        known = {field.name: field.default for field in dataclasses.fields(recipe.study)}
        yield "# What the study itself is called, and the title of the comparison."
        yield f"label = {toml_value(known['label'])}"
        yield f"title = {toml_value(known['title'])}"


def _plan(recipe: Recipe) -> Iterator[str]:
    """Yield the fields of the first kind of plan, then those that only others have."""
    (kind, made), *others = recipe.plans.items()
    if others:
        yield f"# One of: {', '.join(recipe.plans)}."
    yield f'kind = "{kind}"'
    example = recipe.example.get("plan", {})
    shared = {field.name for _, other in others for field in fields_of(other)}
    own = fields_of(made)
    for field in own:
        only = f'Only for kind = "{kind}". ' if others and field.name not in shared else ""
        yield from _field(field, example.get(field.name, field.default), only)
    known = {field.name for field in own}
    for other, plan in others:
        for field in fields_of(plan):
            if field.name not in known:
                yield from _field(field, None, f'Only for kind = "{other}". ')


def _section(recipe: Recipe, section: str, default: Any, files: str | None) -> Iterator[str]:
    made = recipe.sections[section]
    values = {**_values(default), **recipe.example.get(section, {})}
    if files is not None and section == "data":
        values |= {"name": FILES, "path": files}
    lines = [*_comment(summary_of(made).replace("``", "")), *_deleted(made, default)]
    lines.append(f"[{section}]")
    for field in fields_of(made):
        if files is None or field.name not in _NAMED.get(section, ()):
            lines += _field(field, values.get(field.name, field.default))
    if default is None and (files is None or section != "data"):
        yield f"# Off unless [{section}] is in the recipe."
        lines = [f"# {line}" for line in lines]
    yield from lines


def _deleted(made: type[Any], default: Any) -> Iterator[str]:
    """Yield what a deleted field becomes, where that is not the value that the recipe shows."""
    if default is None or default is dataclasses.MISSING:
        return
    other = [
        f"{field.name} {'not set' if field.unset else toml_value(field.default)}"
        for field in fields_of(made)
        if not field.required and getattr(default, field.name) != field.default
    ]
    if other:
        yield f"# Defaults of fields that you delete here: {', '.join(other)}."


def _values(default: Any) -> dict[str, Any]:
    """Return the fields of a section that the study has when the recipe does not have it."""
    if default is None or default is dataclasses.MISSING:
        return {}
    return {field.name: getattr(default, field.name) for field in dataclasses.fields(default)}


def _field(field: RecipeField, value: Any, before: str = "") -> Iterator[str]:
    said = all(choice in field.short_meaning for choice in field.choices)
    choices = "" if said else f" One of: {', '.join(field.choices)}."
    needed = " Required." if field.required else ""
    yield from _comment(f"{before}{field.short_meaning}{choices}{needed}")
    if value is None:
        yield f"# {field.name} = <{type_words(field.type)}>"
    else:
        yield f"{field.name} = {toml_value(value)}"


def _variants(recipe: Recipe) -> Iterator[str]:
    """Yield commented examples of what may follow the sections."""
    if recipe.compares:
        yield "# A variant: a label and the fields in which it differs. There may be several."
        yield from ("# [[compare]]", '# label = "clipped"', "# training.clip = 1.0", "")
    if recipe.remedy is not None:
        yield "# A remedy: a label, a kind, the fields of that kind, and fields above that it"
        yield "# changes. There may be several."
        yield from (
            "[[remedy]]",
            'label = "dropout 20 %"',
            'kind = "dropout"',
            "rate = 0.2",
        )
        yield ""
        yield "# The fields of all kinds of remedy:"
        for field in fields_of(recipe.remedy):
            yield from (f"# {line}" for line in _field(field, None))
        yield ""
    if recipe.varies:
        yield "# A variant: its name and the fields in which it differs. There may be several."
        yield from ("# [variants.clipped]", "# training.clip = 1.0", "")
    if recipe.grids:
        yield "# Every combination of these values is a variant; the first is the study itself."
        yield from ("# [grid]", "# plan.batch = [16, 32]", "")
    yield "# Fields that replace those above with: remnant run --scale large"
    yield from ("# [scale.large]", "# plan.batch = 128")


def _comment(text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]
