"""The JSON schema takes every shipped recipe and refuses wrong names, types, choices and ranges.

The validator below knows the part of JSON schema, draft 7, that the schema uses.
"""

from __future__ import annotations

import copy
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from remnant.studies.recipe_form.fields import fields_of
from remnant.studies.recipe_form.schema import recipe_schema
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import RECIPES, recipe_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED = sorted(
    [
        *(Path(__file__).parents[3] / "recipes").glob("*.toml"),
        *Path(str(files("remnant.studies") / "recipes")).glob("*.toml"),
    ]
)
SCHEMA = recipe_schema()
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
LIMITS = {
    "minimum": lambda value, limit: value >= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "uniqueItems": lambda value, distinct: not distinct or len(set(value)) == len(value),
    "minItems": lambda value, limit: len(value) >= limit,
}
KNOWN = {
    *LIMITS,
    *("$ref", "type", "enum", "const", "properties", "required", "additionalProperties", "items"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then"),
    *("$schema", "title", "description", "default", "definitions"),
}


def valid(value, schema):
    """Whether a value fits a schema of draft 7."""
    assert schema.keys() <= KNOWN, f"the validator does not know {schema.keys() - KNOWN}"
    if "$ref" in schema:
        assert len(schema) == 1, "draft 7 ignores what is beside a reference"
        return valid(value, SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")])
    if "type" in schema:
        number = isinstance(value, bool) and schema["type"] != "boolean"
        if number or not isinstance(value, TYPES[schema["type"]]):
            return False
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not all(holds(value, schema[name]) for name, holds in LIMITS.items() if name in schema):
        return False
    if isinstance(value, dict) and not all(_members_valid(value, schema)):
        return False
    if isinstance(value, list) and not all(valid(one, schema.get("items", {})) for one in value):
        return False
    if "if" in schema and valid(value, schema["if"]) and not valid(value, schema["then"]):
        return False
    return (
        all(valid(value, one) for one in schema.get("allOf", []))
        and ("anyOf" not in schema or any(valid(value, one) for one in schema["anyOf"]))
        and ("oneOf" not in schema or sum(valid(value, one) for one in schema["oneOf"]) == 1)
        and ("not" not in schema or not valid(value, schema["not"]))
    )


def _members_valid(value, schema):
    known = schema.get("properties", {})
    yield set(schema.get("required", [])) <= value.keys()
    for name, inner in value.items():
        other = schema.get("additionalProperties", True)
        rule = known.get(name, other)
        yield rule if isinstance(rule, bool) else valid(inner, rule)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_recipe_fits(path):
    assert valid(tomllib.loads(path.read_text(encoding="utf-8")), SCHEMA)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_wrong_field_of_a_shipped_recipe_does_not_fit(path):
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for section in [name for name, value in table.items() if isinstance(value, dict)]:
        if section in ("grid", "scale", "variants"):
            continue
        changed = copy.deepcopy(table)
        changed[section]["unheard"] = 1
        assert not valid(changed, SCHEMA), section
    assert not valid({**table, "unheard": 1}, SCHEMA)
    assert not valid({**table, "question": "unheard"}, SCHEMA)
    assert not valid({**table, "plan": {**table["plan"], "kind": "unheard"}}, SCHEMA)
    assert not valid({**table, "plan": {**table["plan"], "batch": "64"}}, SCHEMA)
    assert not valid({**table, "plan": {**table["plan"], "batch": 64.5}}, SCHEMA)
    assert not valid({**table, "plan": {"kind": table["plan"]["kind"], "x": 1}}, SCHEMA)
    assert not valid({name: one for name, one in table.items() if name != "plan"}, SCHEMA)
    scaled = {**table, "scale": {"large": {"training": {"unheard": 1}}}}
    assert not valid(scaled, SCHEMA)
    assert valid({**table, "scale": {"large": {"training": {"clip": 1}}}}, SCHEMA)


@pytest.mark.parametrize("name", RECIPES)
def test_a_field_with_choices_takes_no_other_value(name):
    table, tried = tomllib.loads(recipe_template(name)), 0
    assert valid(table, SCHEMA)
    for section, made in recipe_of(name).sections.items():
        for field in fields_of(made):
            if field.choices and section in table:
                tried += 1
                for choice in field.choices:
                    assert valid({**table, section: {**table[section], field.name: choice}}, SCHEMA)
                other = {**table[section], field.name: "unheard"}
                assert not valid({**table, section: other}, SCHEMA), f"{section}.{field.name}"
    assert tried or name == "text-prediction"


@pytest.mark.parametrize("name", RECIPES)
def test_a_number_outside_its_range_does_not_fit(name):
    recipe = tomllib.loads(recipe_template(name))
    for wrong in ({"batch": 0}, {"seed": -1}):
        assert not valid({**recipe, "plan": {**recipe["plan"], **wrong}}, SCHEMA)


def test_a_recipe_without_a_question_is_the_assumed_one():
    table = tomllib.loads(recipe_template("forgetting"))
    del table["question"]
    assert valid(table, SCHEMA)
    other = tomllib.loads(recipe_template("exposure"))
    del other["question"]
    assert not valid(other, SCHEMA)


def test_variants_have_a_label_and_known_fields():
    table = tomllib.loads(recipe_template("forgetting"))
    assert valid({**table, "compare": [{"label": "a", "plan": {"repeats": 4}}]}, SCHEMA)
    assert valid({**table, "compare": [{"label": "a", "plan": {"kind": "poison"}}]}, SCHEMA)
    assert not valid({**table, "compare": [{"plan": {"repeats": 4}}]}, SCHEMA)
    assert not valid({**table, "compare": [{"label": "a", "plan": {"unheard": 4}}]}, SCHEMA)
    features = tomllib.loads(recipe_template("unique-features"))
    assert valid({**features, "variants": False}, SCHEMA)
    assert valid({**features, "variants": {"a": {"training": {"clip": 1.0}}}}, SCHEMA)
    assert not valid({**features, "variants": {"a": {"training": {"unheard": 1.0}}}}, SCHEMA)
    assert not valid({**features, "compare": []}, SCHEMA), "this question does not compare"


def test_a_section_may_be_false_where_it_is_not_required():
    table = tomllib.loads(recipe_template("translation-exposure"))
    assert valid({**table, "training": False}, SCHEMA)
    assert not valid({**table, "secret": False}, SCHEMA)
    assert not valid({**table, "training": True}, SCHEMA)


def test_the_schema_is_plain_json_with_defaults_and_meanings():
    assert json.loads(json.dumps(SCHEMA, allow_nan=False)) == SCHEMA
    limit = SCHEMA["definitions"]["MeasureSettings"]["properties"]["limit"]
    assert limit["default"] == 10.0
    assert limit["description"].startswith("Bits that the exposure")
    judged = SCHEMA["definitions"]["MeasureSettings"]["properties"]["judged"]
    assert "default" not in judged, "what is not set has no default"
