"""How far several studies have come: which one, how many there are, and the time left for all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from remnant.progress import ProgressBar, duration


class StudiesBar:
    """A progress bar that says which study is run, such as ``exposure, 2 of 7``.

    A terminal shows it from the first second. A log gets a line when each of several studies
    begins, and what ``ProgressBar`` writes to it now and then.

    Args:
        names: Of the studies, in the order in which they are run.
        seconds: What each takes on some machine; the studies that are done say how much slower
            this one is. Without it the time left is known once a study is done, and is the mean of
            those for each that follows.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        names: Sequence[str],
        seconds: Sequence[float] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = names
        self._known = seconds is not None
        self._shares = [1.0] * len(names) if seconds is None else list(seconds)
        self._clock = clock
        self._bar = ProgressBar(clock=clock)
        self._at = -1
        self._took: list[float] = []
        self._begun = clock()

    def __enter__(self) -> StudiesBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.clear()

    def __call__(self, part: str, done: int, total: int) -> None:
        """Show that so many steps of a part of the study are done."""
        self._bar.prefix(f"{self.named()}: " if len(self._names) > 1 else "")
        self._bar(part, done, total)

    def begin(self) -> None:
        """Note that the next study begins, and show its name."""
        self._at += 1
        self._begun = self._clock()
        self._bar.status(self.named())
        if len(self._names) > 1 and not self._bar.moves:
            print(self.named(), file=sys.stderr, flush=True)

    def end(self) -> None:
        """Note that the study is done; what is printed next starts on an empty line."""
        self._took.append(self._clock() - self._begun)
        self._bar.clear()

    def named(self) -> str:
        """The study, its number, and the time left for all."""
        left = self.seconds_left()
        if len(self._names) == 1:
            return self._names[0]
        number = f"{self._names[self._at]}, {self._at + 1} of {len(self._names)}"
        return number if left is None else f"{number}, about {duration(left)} left for all"

    def seconds_left(self) -> float | None:
        """The time that this study and those that follow still take; None while it is not known."""
        at = len(self._took)
        if not self._took and not self._known:
            return None
        done = sum(self._shares[:at])
        slower = sum(self._took) / done if done else 1.0
        spent = self._clock() - self._begun if at == self._at else 0.0
        own = max(self._shares[at] * slower - spent, 0.0) if at < len(self._shares) else 0.0
        return own + slower * sum(self._shares[at + 1 :])
