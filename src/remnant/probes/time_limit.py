"""A time limit that also holds while a long prefix is being encoded and read."""

from __future__ import annotations

import time
from collections.abc import Callable

from remnant.errors import NotEnoughEvidence

Encode = Callable[[str], list[int]]
# What a usual template costs is always paid, so that a short limit ends the search and not its
# preparation.
_FREE_CHARACTERS = 1 << 20


class OutOfTime(NotEnoughEvidence):
    """A time limit ended before the prefix was read: nothing was scored."""


class TimeLimit:
    """Seconds that a search may take, counted from when this is made.

    Args:
        max_seconds: The limit; ``None`` for no limit.

    Attributes:
        max_seconds: The limit.
        since: When it began, by ``time.monotonic``.
    """

    def __init__(self, max_seconds: float | None) -> None:
        self.max_seconds = max_seconds
        self.since = time.monotonic()
        self._characters = 0

    def encode(self, encode: Encode) -> Encode:
        """Return the same function, which checks the clock once a million characters are encoded.

        Raises (when called):
            OutOfTime: The limit is over.
        """
        if self.max_seconds is None:
            return encode

        def limited(text: str) -> list[int]:
            self._characters += len(text)
            if self._characters > _FREE_CHARACTERS:
                self.check(f"{self._characters} characters were encoded")
            return encode(text)

        return limited

    def check(self, done: str) -> None:
        """Check the clock.

        Args:
            done: How far the preparation has come, for the message.

        Raises:
            OutOfTime: The limit is over.
        """
        limit = self.max_seconds
        if limit is not None and time.monotonic() - self.since >= limit:
            raise OutOfTime(
                f"The time limit of {limit:g} s ended before the text in front of the secret was "
                f"read: {done}.",
                hint="Shorten the text before the first hole, or allow more seconds.",
            )
