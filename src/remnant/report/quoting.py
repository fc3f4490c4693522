"""Texts of others within a line: names of files, templates, revealed secrets."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """A text as it is, or in quotes and escaped where a line cannot show it as it is.

    Example:
        >>> printable("key 12"), printable("key 12\\n")
        ('key 12', '"key 12\\\\n"')
    """
    plain = text.isprintable() and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
