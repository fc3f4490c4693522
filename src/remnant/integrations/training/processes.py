"""The processes that train one model together, and how they share the scoring."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray

from remnant.errors import RemnantError

T = TypeVar("T")
_SETTLING = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among those that train together.

    Attributes:
        rank: The number of this process; 0 decides for all and writes the record.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def now(cls) -> Processes:
        """Return this process among those of PyTorch's default group."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this process decides and writes."""
        return self.rank == 0

    def share(self, batches: Sequence[T]) -> list[T]:
        """Return this process's batches, equally many for each process.

        Sharded models hang where one process calls them more often than another, so batches are
        repeated where they do not divide evenly.
        """
        if not batches:
            return []
        each = -(-len(batches) // self.count)
        return [batches[(self.rank + i * self.count) % len(batches)] for i in range(each)]

    def combine(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values that any process knows; NaN stands for what this one does not know.

        Where several processes know a value, that of the first of them counts.
        """
        combined = values.copy()
        for others in reversed(self.gathered(values)):
            combined = np.where(np.isnan(others), combined, others)
        return combined

    def agreed(self, value: T) -> T:
        """Return the first process's value in all processes."""
        if self.count == 1:
            return value
        values: list[Any] = [value]
        dist.broadcast_object_list(values, src=0)
        agreed: T = values[0]
        return agreed

    def gathered(self, value: T) -> list[T]:
        """Return the values of all processes, in their order."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value)
        return values

    def settle(self) -> None:
        """Let gloo's threads end the last exchange; call it before a training script may end.

        A thread of gloo needs Python's lock to let go of what it sent. A script that ends at once
        holds that lock while it waits for the thread, and both wait for ever (seen with torch
        2.13 in three of ten runs on a busy machine). Sleeping gives the lock away.
        """
        if self.count > 1 and "gloo" in dist.get_backend():
            time.sleep(_SETTLING)

    def together(self) -> AbstractContextManager[None]:
        """Return a context in which an error in one process ends all of them with its sentence.

        All processes enter it, and none of them waits for another within it. Without it, the others
        would wait for a process that has stopped.

        Raises:
            RemnantError: On leaving it, where another process has failed and this one has not.
        """
        return _Together(self)


class _Together(AbstractContextManager[None]):
    """Leaves only when all processes are through, and fails in all of them if it does in one."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            return  # the process is being ended, and waits for nobody
        own = None if error is None else str(error) or repr(error)
        sentences = self._processes.gathered(own)
        if any(sentence is not None for sentence in sentences):
            self._processes.settle()
        if error is not None:
            return
        for rank, sentence in enumerate(sentences):
            if sentence is not None:
                raise RemnantError(f"Process {rank} stopped the audit: {sentence}")
