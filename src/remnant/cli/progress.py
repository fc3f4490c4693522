"""Progress of a command: a bar on a terminal, otherwise a line every minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from remnant.cli.terminal import one_line


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
        self._bar: Any = None
        self._about: tuple[str, int] | None = None
        self._seconds, self._clock = seconds, clock
        self._said = clock()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def __call__(self, part: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps of ``part`` are done."""
        if not sys.stderr.isatty():
            self._log(part, done, total)
            return
        if self._bar is None or self._about != (part, total):
            self._open(part, total)
        self._bar.update(done - self._bar.n)

    def _log(self, part: str, done: int, total: int) -> None:
        now = self._clock()
        if now - self._said >= self._seconds:
            self._said = now
            print(f"{part}: {100 * done // max(total, 1)} %", file=sys.stderr, flush=True)

    def _open(self, part: str, total: int) -> None:
        from tqdm import tqdm

        self._close()
        self._about = (part, total)
        bare = getattr(sys.stderr, "unescaped", sys.stderr)  # a bar moves the cursor
        self._bar = tqdm(total=total, desc=one_line(part), unit="step", file=bare, leave=False)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
