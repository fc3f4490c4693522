"""Plans whose seed gives secrets back: records of them are their owner's, and show no seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OWNER_ONLY = 0o600


def gives_secrets(plan: Mapping[str, Any]) -> bool:
    """Whether the canaries of a plan can be drawn or dealt again from what the record holds.

    Example:
        >>> gives_secrets({"plan": {"seed": 3}, "secret": {"template": "pin {digits:4}"}})
        True
        >>> gives_secrets({"plan": {"seed": 3}, "data": {"name": "digits"}})
        False
    """
    inner = plan.get("plan")
    own = isinstance(inner, Mapping) and bool({"template", "texts", "images"} & inner.keys())
    return own or "secret" in plan


def without_seeds(value: Any) -> Any:
    """A plan without its seeds, at any depth, for whoever may not draw its secrets again."""
    if isinstance(value, Mapping):
        return {name: without_seeds(inner) for name, inner in value.items() if name != "seed"}
    return [without_seeds(inner) for inner in value] if isinstance(value, list) else value
