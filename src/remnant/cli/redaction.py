"""What replaces a secret on the screen, in JSON and in errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remnant.errors import InvalidInput, RemnantError

if TYPE_CHECKING:
    from remnant.canaries import Template

_MOST_DOTS = 16
# Shorter secrets also occur in harmless numbers and words.
_SHORTEST_WATCHED = 4


def hidden(template: Template) -> str:
    """Return what is shown instead of a secret: how many places it has, and of which kind.

    Guarantees:
        * All secrets of a template look the same: only what the template says is shown.

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


@contextmanager
def withheld(secrets: Iterable[str]) -> Iterator[None]:
    """Replace an error whose text contains one of these secrets.

    Remnant's own errors contain none. Other libraries may quote a text that they cannot read.
    Secrets of fewer than four characters are not looked for.

    Raises:
        InvalidInput: In place of an error that contains a secret.
    """
    watched = {secret for secret in secrets if len(secret) >= _SHORTEST_WATCHED}
    try:
        yield
    except BaseException as fault:
        text = _text(fault)
        if any(secret in text for secret in watched):
            raise InvalidInput(
                f"An error of kind {type(fault).__name__} is withheld, because its text holds "
                "a secret.",
                hint="The model or its tokenizer may not fit these canaries.",
            ) from None
        raise


def _text(fault: BaseException) -> str:
    """Return what the terminal would show: one sentence for our errors, otherwise the chain."""
    text = str(fault)
    before = fault.__cause__ or fault.__context__
    if isinstance(fault, RemnantError) or before is None:
        return text
    return f"{text}\n{_text(before)}"
