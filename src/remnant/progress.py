"""How far long work has come: who is called with it, and a bar that shows it.

Whatever takes long is given a ``Progress`` and calls it; nobody calls back.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

# Called with the name of a part, its steps done, and its steps in all.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the work, which is called with the steps done.

    Attributes:
        progress: Is called with the part.
        name: Of the part, in words.
        steps: In all.
    """

    progress: Progress
    name: str
    steps: int

    def __call__(self, done: int) -> None:
        """Note that so many steps are done."""
        self.progress(self.name, done, self.steps)


class ProgressBar:
    """Shows steps done, steps to go and the time left, on standard error.

    Writes a line now and then if standard error is not a terminal, and none in a short run.

    Args:
        seconds: Between two lines of a log, and before the first.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, *, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = getattr(sys.stderr, "unescaped", sys.stderr)  # a bar moves the cursor
        self.moves = bool(self._stream.isatty())
        self._prefix = ""
        self._bar: Any = None
        self._about: tuple[str, int] | None = None
        self._seconds, self._clock = seconds, clock
        self._said = clock()
        self._begun = (self._said, 0)  # when this part was first shown, and how far it was

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def prefix(self, text: str) -> None:
        """Put a text before the names of parts: whose they are."""
        self._prefix = text

    def status(self, text: str) -> None:
        """Show a text until the first step of a part; a log gets none."""
        self.clear()
        if self.moves:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=_printable(text), bar_format="{desc} …", file=self._stream, leave=False
            )

    def clear(self) -> None:
        """Take the bar off the terminal; the next step shows it again."""
        self._about = None
        self._take_off()

    def __call__(self, part: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps of ``part`` are done."""
        begins = self._about != (part, total)
        if begins:
            self._about, self._begun = (part, total), (self._clock(), done)
        if not self.moves:
            self._log(part, done, total)
            return
        if self._bar is None or begins:
            self._open(part, done, total)
        if self._prefix:
            self._bar.set_description_str(_printable(f"{self._prefix}{part}"), refresh=False)
        self._bar.update(done - self._bar.n)

    def _log(self, part: str, done: int, total: int) -> None:
        now = self._clock()
        if now - self._said >= self._seconds:
            self._said = now
            share, speed = 100 * done // max(total, 1), self._speed(now, done, total)
            print(f"{self._prefix}{part}: {share} %{speed}", file=sys.stderr, flush=True)

    def _speed(self, now: float, done: int, total: int) -> str:
        """Steps a second since the part was first shown, and the time left at that rate."""
        began, first = self._begun
        if done <= first or now <= began:
            return ""
        rate = (done - first) / (now - began)
        return f", {rate:.3g} steps/s, {duration((total - done) / rate)} left"

    def _open(self, part: str, done: int, total: int) -> None:
        from tqdm import tqdm

        self._take_off()
        self._bar = tqdm(  # a resumed study was not that fast: the rate counts from here
            total=total,
            initial=done,
            desc=_printable(f"{self._prefix}{part}"),
            unit="step",
            unit_scale=True,
            file=self._stream,
            leave=False,
        )

    def _take_off(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _printable(text: str) -> str:
    r"""Return the text with its control characters as codes: a bar goes to the bare terminal.

    Example:
        >>> print(_printable("a\nb"))
        a\u000ab
    """
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


def duration(seconds: float) -> str:
    """Return a time in words, rounded up.

    Example:
        >>> duration(41.2), duration(61.0), duration(2 * 3600)
        ('42 s', '2 min', '2.0 h')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
