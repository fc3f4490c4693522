"""A forgetting curve from a run's log: when each example was in a batch, and its scores by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.forgetting.one_run import OneRunForgetting, one_run_forgetting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = 5  # examples of each level in a window of last use


@dataclass(frozen=True, slots=True, eq=False)
class Uses:
    """When examples were in batches; every array has the shape ``(examples,)``.

    Attributes:
        first, last: The updates of the first and the last use, counted from 0; -1 for never.
        counts: How often each example was used.
    """

    first: Ints
    last: Ints
    counts: Ints

    @classmethod
    def of(cls, ledger: ArrayLike, *, examples: int) -> Uses:
        """Read a ledger.

        Args:
            ledger: Rows of step and example, or of step, example and count, in any order. A step
                is the update whose batch held the example, counted from 0.
            examples: How many examples there are; those in no row were never used.

        Raises:
            InvalidInput: The ledger has another shape, or holds a number that is not whole or out
                of range.

        Example:
            >>> Uses.of([(3, 0), (7, 0), (5, 2)], examples=3).last.tolist()
            [7, -1, 5]
        """
        rows = _read_ledger(ledger, examples)
        first, last = np.full(examples, np.iinfo(np.int64).max), np.full(examples, -1)
        np.minimum.at(first, rows[:, 1], rows[:, 0])
        np.maximum.at(last, rows[:, 1], rows[:, 0])
        counts = np.bincount(rows[:, 1], weights=rows[:, 2], minlength=examples)
        return cls(np.where(last >= 0, first, -1), last, counts.astype(np.int64))


def _read_ledger(ledger: ArrayLike, examples: int) -> Ints:
    """The ledger as rows of step, example and count."""
    try:
        table = np.asarray(ledger, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("ledger is not a table of whole numbers.") from None
    if table.size == 0:
        return np.zeros((0, 3), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise InvalidInput(
            f"ledger has the shape {table.shape}, not (rows, 2) or (rows, 3).",
            hint="Give rows of (step, example) or (step, example, count).",
        )
    if table.shape[1] == 2:
        table = np.column_stack([table, np.ones(len(table))])
    if not np.isfinite(table).all() or (table != np.round(table)).any():
        raise InvalidInput("ledger holds numbers that are not whole.")
    rows = table.astype(np.int64)
    if rows[:, 0].min() < 0 or rows[:, 2].min() < 1:
        raise InvalidInput("ledger holds a step below 0 or a count below 1.")
    if rows[:, 1].min() < 0 or rows[:, 1].max() >= examples:
        raise InvalidInput(
            f"ledger names an example that is not one of the {examples} scored ones, counted "
            "from 0.",
            hint="Number the examples in the order of their scores.",
        )
    return rows


def windows_of_last_use(
    last_seen: Ints, checkpoints: ArrayLike, *, levels: Ints, least: int = LEAST
) -> Ints:
    """Group examples by when they were last used.

    A window ends with a checkpoint, so that all its examples are scored right after it, and has at
    least ``least`` examples of every level. Windows are as short as that allows.

    Args:
        last_seen: The update of each example's last use; -1 for never.
        checkpoints: Updates after which examples were scored, strictly increasing.
        levels: How often each example was used, or another number that separates them.
        least: Examples of each level in a window.

    Returns:
        The number of each example's window, counted from 0; -1 for examples that were never used,
        or last used after the last checkpoint.

    Example:
        >>> last = np.array([1, 2, 5, 6, -1])
        >>> windows_of_last_use(last, [-1, 3, 8], levels=np.ones(5, dtype=int), least=2).tolist()
        [0, 0, 1, 1, -1]
    """
    steps = np.asarray(checkpoints)
    slot = np.searchsorted(steps, last_seen, side="left")
    known = (last_seen >= 0) & (slot < len(steps))
    window = np.full(last_seen.shape, -1, dtype=np.int64)
    wanted = np.unique(levels[known])
    number, begin = 0, 0
    for end in range(len(steps)):
        inside = known & (slot >= begin) & (slot <= end)
        if inside.any() and all((inside & (levels == level)).sum() >= least for level in wanted):
            window[inside] = number
            number, begin = number + 1, end + 1
    left = known & (slot >= begin)
    window[left] = max(number - 1, 0)
    return window


def recency_curve(
    *,
    scores: Mapping[int, ArrayLike],
    last_seen: ArrayLike,
    first_seen: ArrayLike,
    repeats: ArrayLike,
    cohorts: ArrayLike,
    references: ArrayLike | None = None,
    **settings: Any,
) -> OneRunForgetting:
    """Return the curve of what was scored so far; windows that are not over are left out.

    Every number is that of ``one_run_forgetting`` on the examples that are left, and so is the
    coverage of its intervals.

    Args:
        scores: By the update after which all examples were scored, counted from 0; -1 is before
            the first. Higher = more likely seen.
        last_seen, first_seen, repeats, cohorts, references, settings: See ``one_run_forgetting``;
            the checkpoints of references are those of ``scores``, by their number.

    Raises:
        NotEnoughEvidence: No window is over yet.
        InvalidInput: As ``one_run_forgetting``.
    """
    steps = sorted(scores)
    last, window = np.asarray(last_seen), np.asarray(cohorts)
    ends = {
        int(number): int(last[window == number].max()) for number in np.unique(window[window >= 0])
    }
    over = [number for number, end in ends.items() if steps and end <= steps[-1]]
    if not over:
        raise NotEnoughEvidence(
            "No window has been scored after its end.",
            hint=f"Score the canaries after step {min(ends.values(), default=0)} or later.",
        )
    kept = np.isin(window, [-1, *over])
    return one_run_forgetting(
        scores=np.array([np.asarray(scores[step], dtype=np.float64) for step in steps])[:, kept],
        checkpoints=steps,
        last_seen=last[kept],
        first_seen=np.asarray(first_seen)[kept],
        cohorts=window[kept],
        repeats=np.asarray(repeats)[kept],
        references=kept_references(references, kept),
        **settings,
    )


def kept_references(references: ArrayLike | None, kept: NDArray[np.bool_]) -> Any:
    """Return the scores of reference models on some examples, which are the last axis.

    Raises:
        InvalidInput: There is not one score an example.
    """
    if references is None:
        return None
    try:
        table = np.asarray(references, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput("references is not an array of numbers.") from None
    if table.ndim not in (2, 3) or table.shape[-1] != kept.size:
        raise InvalidInput(
            f"references has the shape {table.shape}, and {kept.size} examples are scored.",
            hint="Give an array [models, examples] or [checkpoints, models, examples].",
        )
    return table[..., kept]


def levels_of_use(counts: Ints, *, least: int = LEAST) -> Ints:
    """Return how often examples were used, or one number for all where these differ too much.

    Args:
        counts: Uses of each example; 0 for never.
        least: Examples that each number must have; else all have the median number of uses.

    Example:
        >>> levels_of_use(np.array([1, 2, 3, 0]), least=2).tolist()
        [2, 2, 2, 0]
    """
    used = counts[counts > 0]
    if not used.size or np.unique(used, return_counts=True)[1].min() >= least:
        return counts
    return np.where(counts > 0, int(np.median(used)), 0)
