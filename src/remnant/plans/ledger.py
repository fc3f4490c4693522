"""The ledger: which canary was used at which step, in which member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """One line per canary, member and step at which the canary was used.

    Attributes:
        member: Who used it, shape ``(lines,)``.
        canary: Which one, counted from 0 within the plan.
        step: At which step of the schedule, in increasing order.
        uses: How many copies of it were in that batch.
        windows: The number of each canary's window, -1 for never, shape ``(canaries,)``; None where
            the plan has no windows.
    """

    member: NDArray[np.int64]
    canary: NDArray[np.int64]
    step: NDArray[np.int64]
    uses: NDArray[np.int64]
    windows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.step)


def ledger_of(
    lines: dict[tuple[int, int, int], int], *, windows: NDArray[np.int64] | None = None
) -> Ledger:
    """Build a ledger from ``{(step, member, canary): uses}``."""
    rows = np.array([(*key, lines[key]) for key in sorted(lines)], dtype=np.int64).reshape(-1, 4)
    step, member, canary, uses = rows.T
    return Ledger(member=member, canary=canary, step=step, uses=uses, windows=windows)
