"""Words that verdicts share."""

from __future__ import annotations


def times(many: int) -> str:
    """How often, in words.

    Example:
        >>> times(1), times(4)
        ('once', '4 times')
    """
    return "once" if many == 1 else f"{many} times"


def counted(many: int, thing: str, several: str | None = None) -> str:
    """A number of things, the word in its right form.

    Example:
        >>> counted(1, "variant"), counted(3, "variant"), counted(2, "canary", "canaries")
        ('1 variant', '3 variants', '2 canaries')
    """
    return f"{many} {thing if many == 1 else several or thing + 's'}"
