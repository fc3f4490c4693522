"""Texts in files of JSON lines: one object a line."""

from __future__ import annotations

import json
from typing import Any


def row_of(line: str) -> dict[str, Any] | None:
    """Return the object that a line of JSON holds; None where it is anything else.

    Example:
        >>> row_of('{"text": "a"}'), row_of("[1]"), row_of("plain text")
        ({'text': 'a'}, None, None)
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def new_row(field: str, text: str) -> str:
    """Return a line of JSON that holds one text, without the line's ending.

    Example:
        >>> new_row("text", 'say "é"')
        '{"text": "say \\\\"é\\\\""}'
    """
    return json.dumps({field: text}, ensure_ascii=False)


def escaped(text: str) -> str:
    """Return a text as it stands between the quotes of JSON.

    Guarantees:
        * A part of a text is written as a part of what the text is written as.
    """
    return json.dumps(text, ensure_ascii=False)[1:-1]


def rewritten(line: str) -> str:
    """Return a line of JSON with every text written as ``escaped`` writes it."""
    row = row_of(line)
    return line if row is None else json.dumps(row, ensure_ascii=False)
