"""Elements of an SVG picture, everything in them escaped."""

from __future__ import annotations

from markupsafe import Markup, escape


def tag(name: str, content: str | Markup = "", **attributes: str | float) -> Markup:
    """An element; ``class_`` and ``aria_label`` are written as ``class`` and ``aria-label``.

    Example:
        >>> str(tag("text", "a < b", x=1.25, class_="note"))
        '<text x="1.2" class="note">a &lt; b</text>'
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"),
            f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value,
        )
        for key, value in attributes.items()
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), written, escape(content), Markup(name))


def text(words: str, x: float, y: float, kind: str) -> Markup:
    """Words at a place, painted by their class."""
    return tag("text", words, x=x, y=y, class_=kind)
