"""The JSON schema of all recipes, for editors that complete and check TOML files."""

from __future__ import annotations

from dataclasses import MISSING
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from remnant.plans.bounds import bound_of
from remnant.plans.plan import plain_value
from remnant.studies.recipe_form.fields import (
    RecipeField,
    fields_of,
    section_defaults,
    summary_of,
)
from remnant.studies.registry import ASSUMED, QUESTIONS, RECIPES, recipe_of
from remnant.studies.shared.study import Recipe

# Draft 7, the newest that the usual TOML plugins of editors know.
DIALECT = "http://json-schema.org/draft-07/schema#"
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}

Schema = dict[str, Any]


def recipe_schema() -> Schema:
    """Return the JSON schema of recipes of every question.

    A recipe without ``question`` is one of the question that is assumed then. The schema checks
    names, types, choices and ranges; ``read_recipe`` also checks contradictions.
    """
    cases: list[Schema] = [
        {
            "if": {"properties": {"question": {"const": name}}, "required": ["question"]},
            "then": _reference(name),
        }
        for name in RECIPES
    ]
    cases.append({"if": {"not": {"required": ["question"]}}, "then": _reference(ASSUMED)})
    question = {
        "enum": list(RECIPES),
        "default": ASSUMED,
        "description": "The question that the study asks.",
    }
    return {
        "$schema": DIALECT,
        "title": "Recipe of Remnant",
        "type": "object",
        "properties": {"question": question},
        "allOf": cases,
        "definitions": _definitions(),
    }


def _definitions() -> Schema:
    """Return the schema of every question, of every section and plan, and of every change."""
    made: Schema = {}
    for name in RECIPES:
        recipe = recipe_of(name)
        made[name] = _question_schema(name, recipe)
        made[_changes_name(name)] = _changes_schema(name, recipe)
        for section in (*recipe.plans.values(), *recipe.sections.values()):
            made[section.__name__] = _section_schema(section)
        if recipe.remedy is not None:
            made[_remedy_name(name)] = _remedy_schema(name, recipe, recipe.remedy)
    return made


def _question_schema(name: str, recipe: Recipe) -> Schema:
    """Return the schema of a whole recipe."""
    defaults = section_defaults(recipe)
    kinds = [_complete(made, "kind") for made in recipe.plans.values()]
    top: Schema = {"question": {"const": name}}
    top["plan"] = kinds[0] if len(kinds) == 1 else {"oneOf": kinds}
    for section, made in recipe.sections.items():
        needed = defaults[section] is MISSING
        top[section] = _complete(made) if needed else _or_false(_complete(made))
    top |= _variant_schemas(name, recipe)
    top["scale"] = {
        "description": "Fields that replace those of the recipe with --scale NAME.",
        "type": "object",
        "additionalProperties": _reference(_changes_name(name)),
    }
    return {
        "title": QUESTIONS[name].title,
        "type": "object",
        "properties": top,
        "required": [
            "plan",
            *(section for section, default in defaults.items() if default is MISSING),
        ],
        "additionalProperties": False,
    }


def _changes_schema(name: str, recipe: Recipe) -> Schema:
    """Return the schema of a variant or scale: any field, none of them required."""
    plans = [_reference(made.__name__) for made in recipe.plans.values()]
    top: Schema = {"plan": plans[0] if len(plans) == 1 else {"anyOf": plans}}
    top |= {
        section: _or_false(_reference(made.__name__)) for section, made in recipe.sections.items()
    }
    top |= _variant_schemas(name, recipe)
    return {"type": "object", "properties": top, "additionalProperties": False}


def _variant_schemas(name: str, recipe: Recipe) -> Schema:
    """Return the properties by which a study has variants."""
    changes = _reference(_changes_name(name))
    made: Schema = {}
    if recipe.compares:
        made["label"] = {"type": "string", "description": "What the study or variant is called."}
        made["title"] = {"type": "string", "description": "Title of the comparison."}
        made["compare"] = {
            "description": "Variants: a label and the fields in which each differs.",
            "type": "array",
            "items": {"allOf": [changes], "required": ["label"]},
        }
    if recipe.remedy is not None:
        made["label"] = {"type": "string", "description": "What the training as planned is called."}
        made["title"] = {"type": "string", "description": "Title of the comparison."}
        made["remedy"] = {
            "description": "Remedies: a label, a kind, its fields, and recipe fields it changes.",
            "type": "array",
            "items": _reference(_remedy_name(name)),
        }
    if recipe.varies:
        made["variants"] = {
            "description": "Variants by name: the fields in which each differs.",
            **_or_false({"type": "object", "additionalProperties": changes}),
        }
    if recipe.grids:
        made["grid"] = {
            "description": "Lists of values of some fields: every combination is a variant.",
            "type": "object",
        }
    return made


def _remedy_schema(name: str, recipe: Recipe, made: type[Any]) -> Schema:
    """Return the schema of a remedy: its own fields, and any field of the recipe."""
    changes = _changes_schema(name, recipe)["properties"]
    sections = {part: changes[part] for part in ("plan", *recipe.sections)}
    label = {"type": "string", "description": "What the remedy is called."}
    return {
        "description": summary_of(made),
        "type": "object",
        "properties": {"label": label}
        | {field.name: _field_schema(field) for field in fields_of(made)}
        | sections,
        "required": ["label", *(field.name for field in fields_of(made) if field.required)],
        "additionalProperties": False,
    }


def _section_schema(made: type[Any]) -> Schema:
    """Return the schema of a section or plan, no field of which is required."""
    kind = getattr(made, "kind", None)
    own = {} if not isinstance(kind, str) else {"kind": {"const": kind}}
    return {
        "description": summary_of(made),
        "type": "object",
        "properties": own | {field.name: _field_schema(field) for field in fields_of(made)},
        "additionalProperties": False,
    }


def _complete(made: type[Any], *also: str) -> Schema:
    """Return the schema of a section that has all required fields."""
    required = [*also, *(field.name for field in fields_of(made) if field.required)]
    section = _reference(made.__name__)
    return {"allOf": [section], "required": required} if required else section


def _field_schema(field: RecipeField) -> Schema:
    schema = _type_schema(field.type)
    if not field.required and not field.unset:
        schema["default"] = plain_value(field.default)
    return schema | ({"description": field.plain_meaning} if field.meaning else {})


def _type_schema(annotation: Any) -> Schema:
    if get_origin(annotation) is Annotated:
        bound = bound_of(annotation)
        limits = {} if bound is None else dict(bound.schema)
        return limits if "enum" in limits else _type_schema(get_args(annotation)[0]) | limits
    if get_origin(annotation) in (Union, UnionType):
        return {"anyOf": [_type_schema(part) for part in get_args(annotation)]}
    if get_origin(annotation) is tuple:
        return {"type": "array", "items": _type_schema(get_args(annotation)[0])}
    return {"type": "object" if get_origin(annotation) is dict else _TYPES[annotation]}


def _or_false(schema: Schema) -> Schema:
    """Return the schema of what may also be left out with ``false``."""
    return {"anyOf": [schema, {"const": False}]}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _changes_name(name: str) -> str:
    return f"{name}-changes"


def _remedy_name(name: str) -> str:
    return f"{name}-remedy"
