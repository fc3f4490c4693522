"""What a terminal shows: no control character of a file's name or a text reaches it."""

from __future__ import annotations

import click


def show(text: str, *, err: bool = False) -> None:
    """Print lines of text; characters that steer a terminal are shown as their codes."""
    click.echo(safe(text, lines=True), err=err)


def safe(text: str, *, lines: bool = False) -> str:
    """Return a text with its control characters escaped.

    Args:
        text: Any text.
        lines: Whether line breaks stay as they are.

    Example:
        >>> safe("a\\x1b[31m.txt"), safe("a\\nb"), safe("a\\nb", lines=True)
        ('a\\\\x1b[31m.txt', 'a\\\\nb', 'a\\nb')
    """
    kept = {" ", "\n"} if lines else {" "}
    return "".join(
        one
        if one in kept or one.isprintable() or (one.isspace() and one not in _BREAKS)
        # A lone surrogate stands for a byte of a name that is not UTF-8.
        else one.encode("unicode_escape", "surrogatepass").decode()
        for one in text
    )


_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")
