"""A progress bar on the terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """Shows steps done, steps to go and the time left, on a terminal's standard error only."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._about: tuple[str, int] | None = None

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
        """Say that ``done`` of ``total`` steps of ``part`` are done."""
        if not sys.stderr.isatty():
            return
        if self._bar is None or self._about != (part, total):
            self._open(part, total)
        self._bar.update(done - self._bar.n)

    def _open(self, part: str, total: int) -> None:
        from tqdm import tqdm

        self._close()
        self._about = (part, total)
        self._bar = tqdm(total=total, desc=part, unit="step", file=sys.stderr, leave=False)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
