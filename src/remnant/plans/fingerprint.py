"""A plan's fingerprint: a digest of its kind and every field, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any


def plan_fields(plan: Any) -> dict[str, Any]:
    """Return the plan as plain data, ``kind`` first, ready for JSON."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan)}
    return {"kind": plan.kind, **{name: _plain(value) for name, value in values.items()}}


def fingerprint(values: Any) -> str:
    """Digest plain data: the same data give the same 16 hexadecimal digits on every machine.

    Example:
        >>> fingerprint({"a": 1}) == fingerprint({"a": 1}) != fingerprint({"a": 2})
        True
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
