"""Finds out early that the canaries of a stream do not arrive in the batches.

A stream cannot be scanned before the first step. It counts what it yields, and the watcher counts
what arrives: copies that were yielded and are never recognised were cut off or filtered away.
"""

from __future__ import annotations

import warnings

from remnant.errors import InvalidInput, RemnantWarning
from remnant.integrations.training.planting import PlantedStream
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.watching import Watcher

PATIENCE = 50  # steps after the first copy was yielded
_EXPECTED = 10.0  # copies; by chance none of them arrives with a probability of e^-10
_SHARE = 0.9  # of all copies, where there are fewer
_HINT = (
    "Train on what audit.prepare(...) returned. If you do, raise the maximum length of the "
    "collator, and apply filters before audit.prepare."
)


class StreamCheck:
    """Compares the copies that a stream has yielded with those in the batches.

    Args:
        stream: Yields rows and canaries.
        watcher: Sees the batches.

    Guarantees:
        * A training in which one canary was recognised is never stopped.
        * A shuffle buffer after the stream does not stop it: the batches must have had so many rows
          that 10 copies were expected among them.
    """

    def __init__(self, stream: PlantedStream, watcher: Watcher) -> None:
        self._stream = stream
        self._watcher = watcher
        self._since: tuple[int, int] | None = None  # step and rows when a copy was first yielded
        self._settled = False

    def after(self, step: int) -> None:
        """Stop a training whose canaries are lost.

        Args:
            step: How many updates the model has had. All processes call it with the same steps.

        Raises:
            InvalidInput: Copies were yielded, and none of them is in the batches of the next steps.
        """
        processes = Processes.now()
        if self._settled or (processes.count > 1 and step % PATIENCE):
            return
        recognised, rows, yielded, yielded_rows = self._counts(processes)
        self._settled = recognised > 0
        if self._settled or not yielded:
            return
        if self._since is None:
            self._since = (step, rows)
        first_step, first_rows = self._since
        expected = yielded * (rows - first_rows) / max(yielded_rows, 1)
        if step - first_step < PATIENCE or expected < min(_EXPECTED, _SHARE * yielded):
            return
        raise InvalidInput(
            f"None of the canaries is in the batches of {step - first_step} steps, although the "
            f"stream has yielded {yielded} copies.",
            hint=_HINT,
        )

    def scored(self, step: int) -> None:
        """Warn once where no canary was seen by the second scoring and several were expected.

        What worker processes yield is not counted, so that the training is not stopped.

        Args:
            step: How many updates the model has had.
        """
        if self._settled:
            return
        recognised, rows, yielded, _ = self._counts(Processes.now())
        expected = rows * self._stream.density
        self._settled = recognised > 0
        if self._settled or yielded or expected < min(_EXPECTED, _SHARE * self._stream.copies):
            return
        self._settled = True
        warnings.warn(
            f"None of the canaries was in the batches up to step {step}: they may be cut off or "
            f"filtered away. {_HINT}",
            RemnantWarning,
            stacklevel=5,
        )

    def _counts(self, processes: Processes) -> tuple[int, int, int, int]:
        """Canaries recognised, rows seen, copies yielded and rows yielded, by all processes."""
        own = (
            self._watcher.recognised,
            self._watcher.rows,
            self._stream.yielded,
            self._stream.yielded_rows,
        )
        recognised, rows, yielded, yielded_rows = map(
            sum, zip(*processes.gathered(own), strict=True)
        )
        return recognised, rows, yielded, yielded_rows
