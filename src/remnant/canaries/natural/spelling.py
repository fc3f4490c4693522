"""The same secret in another spelling: letters and digits alone, without case and marks."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

ANYWHERE = 4  # letters and digits; what has fewer counts where it stands alone only
_SIGNS = re.compile(r"[\W_]+")
_ESCAPED = re.compile(
    r"(?:%|\\x|\\u00)([0-7][0-9A-Fa-f])|&#x0{0,5}([0-9A-Fa-f]{1,2});|&#0{0,5}([0-9]{1,3});",
    re.IGNORECASE,
)


@cache
def _numerals() -> dict[int, str]:
    """The decimal digits of all scripts but ASCII, each with the ASCII digit of its value."""
    decimals = (chr(code) for code in range(128, sys.maxunicode + 1))
    return {ord(c): str(unicodedata.decimal(c)) for c in decimals if c.isdecimal()}


def ascii_digits(text: str) -> str:
    """Return a text with the decimal digits of every script as ASCII ones, each at its place.

    Example:
        >>> ascii_digits("\u0665\u0663\u0666-\uff19\uff10")
        '536-90'
    """
    return text if text.isascii() else text.translate(_numerals())


def bare(text: str) -> str:
    """Return the letters and digits of a text, in small letters and without marks.

    Digits of other scripts are ASCII ones.

    Guarantees:
        * Joined over the characters of a text it is the text's own.

    Example:
        >>> bare("(650) 253-0147"), bare("DE89 3704"), bare("J.M\u00fcller")
        ('6502530147', 'de893704', 'jmuller')
    """
    if text.isascii():
        return _SIGNS.sub("", text).lower()
    parts = ascii_digits(unicodedata.normalize("NFKD", text)).casefold()
    return "".join(character for character in parts if character.isalnum())


def bare_with_places(text: str) -> tuple[str, list[int]]:
    """Return ``bare(text)``, and for each of its characters the place in the text."""
    kept, places = [], []
    for at, character in enumerate(text):
        letters = _bare_character(character)
        kept.append(letters)
        places += [at] * len(letters)
    return "".join(kept), places


def unescaped_with_places(text: str) -> tuple[str, list[int]] | None:
    """Return a text without escapes of characters in ASCII, and where each character begins.

    Escapes are those of URLs (``%40``), of JSON and programs (``\\u0040``, ``\\x40``) and of HTML
    (``&#64;``, ``&#x40;``). The last place is the end of the text.

    Returns:
        None for a text without such escapes.

    Example:
        >>> unescaped_with_places("a%40b")
        ('a@b', [0, 1, 4, 5])
    """
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for escape in _ESCAPED.finditer(text):
        hexadecimal = escape[1] or escape[2]
        code = int(hexadecimal, 16) if hexadecimal else int(escape[3])
        if code < 128:
            parts += [text[done : escape.start()], chr(code)]
            places += range(done, escape.start() + 1)
            done = escape.end()
    if not done:
        return None
    places += range(done, len(text) + 1)
    return "".join([*parts, text[done:]]), places


@lru_cache(maxsize=4096)
def _bare_character(character: str) -> str:
    return bare(character)


def spans_of(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a secret stands in a text, however it is spelt there: first and behind the last.

    Args:
        wanted: As ``bare`` gives it. One of fewer than ``ANYWHERE`` characters stands in harmless
            words too, and counts only where no letter or digit is next to it.
        text: Where to look.

    Example:
        >>> list(spans_of("6502530147", "at 650-253-0147 or 16502530147"))
        [(3, 15), (20, 30)]
        >>> list(spans_of("jo", "jobs of jo"))
        [(8, 10)]
    """
    if not wanted or wanted not in bare(text):
        return
    whole, places = bare_with_places(text)
    at = whole.find(wanted)
    while at >= 0:
        first, end = places[at], places[at + len(wanted) - 1] + 1
        if len(wanted) >= ANYWHERE or stands_alone(text, first, end):
            yield first, end
        at = whole.find(wanted, at + 1)


def since_last(wanted: str, text: str) -> int:
    """Return where a text goes on after the last place at which a secret stands; 0 without one.

    Example:
        >>> since_last("6502530147", "(650) 253-0147, or ")
        14
    """
    return max((end for _, end in spans_of(wanted, text)), default=0)


def stands_alone(text: str, first: int, end: int) -> bool:
    """Whether no letter or digit is next to a part of a text."""
    around = text[max(0, first - 1) : first] + text[end : end + 1]
    return not any(character.isalnum() for character in around)
