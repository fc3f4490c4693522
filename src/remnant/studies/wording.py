"""Words that verdicts share."""

from __future__ import annotations


def times(many: int) -> str:
    """How often, in words.

    Example:
        >>> times(1), times(4)
        ('once', '4 times')
    """
    return "once" if many == 1 else f"{many} times"
