"""Texts of others within a line: names of files, templates, revealed secrets."""

from __future__ import annotations

import json
import re

from remnant.report.numerals import SPACE

# What HTML forbids, and characters that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BREAK = re.compile(r"\s*[^\S ]\s*")  # blanks around anything but a space
PLAIN = str.maketrans({SPACE: " ", "\N{NO-BREAK SPACE}": " ", "\N{NON-BREAKING HYPHEN}": "-"})
"""Characters that a terminal may not show, and what stands for them."""


def visible(text: str) -> str:
    """A text with codes for control characters."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_one_line(text: str) -> str:
    """A text without breaks, with plain spaces; blanks within it are kept, as it may be a name."""
    return _BREAK.sub(" ", text.translate(PLAIN))


def printable(text: str) -> str:
    """A text as it is, or in quotes and escaped where a line cannot show it as it is.

    Example:
        >>> printable("key 12"), printable("key 12\\n")
        ('key 12', '"key 12\\\\n"')
    """
    plain = text.isprintable() and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
