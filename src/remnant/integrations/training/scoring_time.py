"""When canaries are scored while a training runs, and what it costs."""

from __future__ import annotations

import time

from remnant.integrations.training.processes import Processes
from remnant.studies.training_audit.result import Overhead


class ScoringTime:
    """Says which steps are scored, within a share of the training's time.

    Args:
        every: Steps between two scorings; None scores the first and the last step only.
        share: Of the training's time; None for any.
    """

    def __init__(self, every: int | None, share: float | None) -> None:
        self.every, self.share = every, share
        self._skipped: set[int] = set()
        self._seconds = self._last_seconds = self._trained_seconds = 0.0
        self._started: float | None = None

    @property
    def runs(self) -> bool:
        """Whether a training is running."""
        return self._started is not None

    def start(self) -> None:
        """Note that the training begins."""
        self._started = time.perf_counter()

    def stop(self) -> None:
        """Note that the training has ended."""
        if self._started is not None:
            self._trained_seconds += time.perf_counter() - self._started
            self._started = None

    def due(self, step: int) -> bool:
        """Whether canaries are to be scored after so many updates, if time allows."""
        return step == 0 or (self.every is not None and step % self.every == 0)

    def allows(self, step: int) -> bool:
        """Whether canaries are scored after so many updates; all processes ask together."""
        if not self.due(step):
            return False
        if self.share is None or self._started is None or step == 0:
            return True
        elapsed = time.perf_counter() - self._started
        affordable = self._seconds + self._last_seconds <= self.share * elapsed
        if not Processes.now().agreed(affordable):
            self._skipped.add(step)
            return False
        return True

    def took(self, seconds: float) -> None:
        """Note how long a scoring took."""
        self._last_seconds = seconds
        self._seconds += seconds

    def overhead(self, scored: int) -> Overhead:
        """Return what scoring cost.

        Args:
            scored: How many steps were scored.
        """
        return Overhead(
            scored=scored,
            skipped=len(self._skipped),
            scoring_seconds=self._seconds,
            training_seconds=self._trained_seconds,
            allowed=self.share,
        )
