"""What takes the place of a secret on the screen, in JSON and in errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remnant.errors import InvalidInput, RemnantError

if TYPE_CHECKING:
    from remnant.canaries import Template

_MOST_DOTS = 16
# Shorter secrets stand in harmless numbers and words too.
_SHORTEST_WATCHED = 4


def hidden(template: Template) -> str:
    """Return what is shown for a secret: how many places it has, and of which kind.

    Guarantees:
        * All secrets of a template look alike: nothing is told that the template does not tell.

    Example:
        >>> from remnant.canaries import Template
        >>> hidden(Template("my pin is {digits:4}"))
        '●●●● (4 digits)'
        >>> hidden(Template("{words:2}", words=["apple", "fig", "kiwi"]))
        '●● (2 words)'
    """
    kinds = [slot.kind for slot in template.slots if slot.kind != "literal"]
    kind = kinds[0] if len(set(kinds)) == 1 else "places"
    named = {"hex": "hex digits", "choice": "choices"}.get(kind, kind)
    if len(kinds) == 1:
        named = named.removesuffix("s")
    return f"{'●' * min(len(kinds), _MOST_DOTS)} ({len(kinds)} {named})"


def shown(secret: str, template: Template, *, reveal: bool) -> str:
    """Return the secret where it may be seen, and ``hidden(template)`` elsewhere.

    Example:
        >>> from remnant.canaries import Template
        >>> pins = Template("my pin is {digits:4}")
        >>> shown("1234", pins, reveal=False), shown("1234", pins, reveal=True)
        ('●●●● (4 digits)', '1234')
    """
    return printable(secret) if reveal else hidden(template)


def printable(text: str) -> str:
    """Return a text as it is, or in quotes and escaped where a line cannot show it as it is.

    Example:
        >>> printable("key {digits:6}"), printable("key {digits:6}\\n")
        ('key {digits:6}', '"key {digits:6}\\\\n"')
    """
    plain = text.isprintable() and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


@contextmanager
def withheld(secrets: Iterable[str]) -> Iterator[None]:
    """Keep these secrets out of any error that passes, whoever raised it.

    Our own errors hold none. This is for the libraries underneath, which may quote a text that
    they cannot read. Secrets of fewer than four characters are not looked for.

    Raises:
        InvalidInput: In place of an error that holds a secret.
    """
    watched = {secret for secret in secrets if len(secret) >= _SHORTEST_WATCHED}
    try:
        yield
    except BaseException as fault:
        told = _told(fault)
        if any(secret in told for secret in watched):
            raise InvalidInput(
                f"An error of kind {type(fault).__name__} is withheld, since its text holds a "
                "secret.",
                hint="The model or its tokenizer may not fit these canaries.",
            ) from None
        raise


def _told(fault: BaseException) -> str:
    """Return what the terminal would show of an error: of ours its sentence, else the chain."""
    told = str(fault)
    before = fault.__cause__ or fault.__context__
    if isinstance(fault, RemnantError) or before is None:
        return told
    return f"{told}\n{_told(before)}"
