"""A recipe as TOML text, so that a report can hand over what its run was made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remnant.studies.recipe_form.toml import toml_key, toml_value


def recipe_text(recipe: Mapping[str, Any]) -> str:
    """Return a recipe as TOML; what is None is left out, since TOML has no such value.

    Example:
        >>> print(recipe_text({"question": "exposure", "plan": {"kind": "insert", "seed": 0}}))
        question = "exposure"
        <BLANKLINE>
        [plan]
        kind = "insert"
        seed = 0
        <BLANKLINE>
    """
    loose = {key: value for key, value in recipe.items() if not isinstance(value, Mapping)}
    sections = {key: value for key, value in recipe.items() if isinstance(value, Mapping)}
    parts = [_fields(loose), *(f"[{toml_key(key)}]\n{_fields(sections[key])}" for key in sections)]
    return "\n".join(part for part in parts if part)


def _fields(fields: Mapping[str, Any]) -> str:
    return "".join(
        f"{toml_key(key)} = {toml_value(value)}\n"
        for key, value in fields.items()
        if value is not None
    )
