"""Does a canary or a control stand in the data already, before anything is planted?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from remnant.canaries.canary_set import PlantedTexts
from remnant.errors import InvalidInput


class Standing:
    """Looks for the texts of canaries and controls in texts that are passed one by one.

    A text stands in another wherever it is a part of it.

    Args:
        canary_set: Whose canaries and controls are looked for.
        written: How a text is written in what is passed; as it is, if not given.

    Example:
        >>> from remnant.canaries import Template, make_canary_set
        >>> pins = make_canary_set(Template("pin {digits:1}"), repeats=[1], controls=9, seed=0)
        >>> looked = Standing(pins)
        >>> looked.look("the pin 7 and the pin 8"), looked.look("a pin"), looked.many
        (None, None, 2)
    """

    def __init__(
        self, canary_set: PlantedTexts, *, written: Callable[[str], str] | None = None
    ) -> None:
        drawn = [canary.text for canary in (*canary_set.canaries, *canary_set.controls)]
        self._texts = drawn if written is None else list(map(written, drawn))
        # One pattern for all of them: most lines are read once and hold none.
        self._any = re.compile("|".join(map(re.escape, self._texts))) if drawn else None
        self._seen: set[str] = set()

    @property
    def many(self) -> int:
        """How many of them were found so far."""
        return len(self._seen)

    def look(self, text: str) -> None:
        """Look for all of them in one text."""
        if self._any is not None and self._any.search(text):
            self._seen.update(canary_text for canary_text in self._texts if canary_text in text)

    def refuse(self, where: str, *, hint: str = "Draw others with another seed=.") -> None:
        """Raise if one was found.

        Args:
            where: What the texts are.
            hint: What to do.

        Raises:
            InvalidInput: Says how many were found, not which.
        """
        if self.many:
            raise InvalidInput(
                f"{where} holds {self.many} of the canaries and controls before any is planted.",
                hint=hint,
            )


def refuse_standing(texts: Iterable[str | None], canary_set: PlantedTexts, *, where: str) -> None:
    """Refuse texts in which a canary or a control stands already.

    Raises:
        InvalidInput: Says how many were found, not which.
    """
    looked = Standing(canary_set)
    for text in texts:
        looked.look(text or "")
    looked.refuse(where)
