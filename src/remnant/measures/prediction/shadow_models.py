"""Scores of many models, and which of them saw which example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

# Under so many shadow models in all, one variance pooled over examples is the default.
POOLED_UNDER = 64
# Shadow models a side under which the default variance is refused. Of examples that no model
# memorised, LiRA with a pooled variance gives a log ratio of 4 or more to about 1 % at most from 8
# models a side on, and to 3 % with 5: also for a single example, and where the examples'
# deviations are lognormal with sigma 1.
LEAST_A_SIDE = 8
# Scores worked on at once: a few such pieces fit a core's cache.
PIECE = 1 << 15
# Scores of one example that differ by less than this share of the largest are all alike.
ALIKE = 1e-12
# Squares of numbers up to this are in range, and sums of those.
LARGEST = 1e130


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The scores that the models of one side gave each example.

    Attributes:
        count: Models, shape ``(n,)``.
        mean: Of their scores.
        squares: Sum of squared distances from ``mean``.
    """

    count: Ints
    mean: Floats
    squares: Floats


def read_scores(name: str, scores: ArrayLike, ndim: int, faults: list[str]) -> Floats | None:
    """Finite scores of which squares can be taken."""
    array = read_floats(name, scores, ndim, faults)
    if array is not None and max(float(array.max()), -float(array.min())) > LARGEST:
        faults.append(f"{name} holds values beyond {LARGEST:g}, which cannot be squared")
        return None
    return array


def read_seen(
    seen: ArrayLike, shape: tuple[int, ...] | None, faults: list[str], *, name: str = "seen"
) -> Bools | None:
    """Which model saw which example: booleans, or zeros and ones, of a known shape."""
    array = read_booleans(name, seen, 2, faults)
    if array is not None and shape is not None and array.shape != shape:
        faults.append(f"{name} has shape {array.shape}, but the scores have {shape}")
        return None
    return array


def read_booleans(name: str, given: ArrayLike, ndim: int, faults: list[str]) -> Bools | None:
    """Booleans, or zeros and ones; None with a fault added where it is neither."""
    array = read_floats(name, given, ndim, faults)
    if array is None:
        return None
    if np.any((array != 0.0) & (array != 1.0)):
        faults.append(f"{name} holds values other than False and True")
        return None
    return np.asarray(array != 0.0)


def read_table(scores: ArrayLike, seen: ArrayLike, faults: list[str]) -> tuple[Floats, Bools]:
    """The scores of all models and which model saw which example, both ``(models, n)``.

    Raises:
        InvalidInput: Lists ``faults``, to which those of the arrays are added.
    """
    table = read_scores("scores", scores, 2, faults)
    mask = read_seen(seen, None if table is None else table.shape, faults)
    require(faults)
    if table is None or mask is None:
        raise InvalidInput("scores and seen must be arrays of numbers.")
    return table, mask


def check_sides(seen: Bools, *, least_seen: int, least_unseen: int, what: str) -> None:
    """Refuse examples that too few models saw, or left out.

    Raises:
        NotEnoughEvidence: Says how many examples, the first of them, and what it takes.
    """
    ins = seen.sum(axis=0)
    outs = seen.shape[0] - ins
    faults = []
    for words, counts, least in (
        ("seen by", ins, least_seen),
        ("left out by", outs, least_unseen),
    ):
        few = np.flatnonzero(counts < least)
        if few.size:
            faults.append(
                f"{few.size} example(s) were {words} fewer than {least} of the "
                f"{seen.shape[0]} models (example {few[0]}: {counts[few[0]]})"
            )
    if faults:
        raise NotEnoughEvidence(
            f"{'; '.join(faults)}: too few for {what}.",
            hint="Train more models, or let each see a random half of the examples.",
        )


def default_variance(
    seen: Bools, *, least_seen: int, least_unseen: int, targets: int = 0
) -> Literal["pooled", "per_example"]:
    """The variance that ``"auto"`` stands for: pooled under 64 shadow models.

    Args:
        seen: Which model saw which example, shape ``(models, n)``.
        least_seen, least_unseen: Models that each example needs on each side.
        targets: How many of the models are no shadow models, but the target.

    Raises:
        NotEnoughEvidence: An example with fewer models on a side.
    """
    ins = seen.sum(axis=0)
    outs = seen.shape[0] - ins
    few = (ins < least_seen) | (outs < least_unseen)
    if few.any():
        first = int(np.flatnonzero(few)[0])
        raise NotEnoughEvidence(
            f"{int(few.sum())} example(s) have too few models for a trustworthy log ratio (example "
            f"{first}: {int(ins[first])} saw it, {int(outs[first])} did not); it takes "
            f"{least_seen} and {least_unseen}.",
            hint='Train more models, or choose a variance, such as variance="per_example".',
        )
    return "pooled" if seen.shape[0] - targets < POOLED_UNDER else "per_example"


def pieces(models: int, examples: int) -> Iterator[slice]:
    """Columns in pieces of about ``PIECE`` scores."""
    size = max(1, PIECE // models)
    for first in range(0, examples, size):
        yield slice(first, min(first + size, examples))


def side_of(scores: Floats, chosen: Bools) -> Side:
    """Moments of the chosen scores of each column, in two passes; columns may have none."""
    weight = chosen.astype(np.float64)
    count = chosen.sum(axis=0)
    mean = np.einsum("mn,mn->n", scores, weight) / np.maximum(count, 1)
    away = scores - mean
    away *= weight
    return Side(count, mean, np.einsum("mn,mn->n", away, away))


def spread_is_rounding(variance: Floats, scores: Floats) -> Bools:
    """Where a variance is no more than scores that are all alike would show."""
    return np.asarray(variance <= (ALIKE * np.abs(scores).max(axis=0)) ** 2)


def refuse_alike(alike: Bools, hint: str) -> None:
    """Raise where the scores of an example do not differ between models of a side.

    Raises:
        NotEnoughEvidence: Any entry is True.
    """
    if alike.any():
        raise NotEnoughEvidence(
            f"{int(alike.sum())} example(s) have the same score under all models of a side "
            f"(example {int(np.flatnonzero(alike)[0])}), which shows no variance.",
            hint=hint,
        )
