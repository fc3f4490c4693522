"""A recipe, and plain values, as TOML writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: Any) -> str:
    """Return a field's value as it is written in a recipe.

    A table leaves out what is None, since TOML has no such value.

    Example:
        >>> toml_value({"lr": 0.1, "nesterov": True, "a b": None})
        '{ lr = 0.1, nesterov = true }'
        >>> toml_value((1, 4))
        '[1, 4]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A text of JSON is one of TOML, but for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = ", ".join(
            f"{toml_key(name)} = {toml_value(inner)}"
            for name, inner in value.items()
            if inner is not None
        )
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def toml_key(key: str) -> str:
    """Return a key as it is, or in quotes where TOML needs them.

    Example:
        >>> toml_key("batch"), toml_key("10 repeats")
        ('batch', '"10 repeats"')
    """
    return key if _BARE.fullmatch(key) else toml_value(key)


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
