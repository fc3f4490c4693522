"""Every model attacked by all the others, without fitting anything twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.shadow_models import (
    ALIKE,
    Bools,
    check_sides,
    pieces,
    read_scores,
    read_seen,
    refuse_alike,
    side_of,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Where so little of a side's squares is left without one model, subtracting has lost digits.
LITTLE_LEFT = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LiraLeaveOneOut:
    """Online LiRA with each model as the target once.

    Attributes:
        scores: Shape ``(models, n)``, log ratios in nats, higher = more likely seen.
        success_rate: Share of models for which the attack is right about the example (a score
            above 0 says "seen"), shape ``(n,)``: chance is one half. The ground truth of
            "memorised" that does not depend on one model.
        n_seen, n_unseen: Models on each side of each example, the target included.
        convention: "online, mean, per_example variance, ddof 1, target left out".
    """

    scores: Floats
    success_rate: Floats
    n_seen: Ints
    n_unseen: Ints
    convention: str = "online, mean, per_example variance, ddof 1, target left out"


def lira_leave_one_out(*, scores: ArrayLike, seen: ArrayLike) -> LiraLeaveOneOut:
    r"""Attack every model by all the others: mean, per-example variance, ddof 1.

    For a target among the m models on its side of an example, at distance d from their mean and
    with their squared distances summing to S, leaving it out moves the mean to d m/(m-1) from it
    and the variance to (S - d² m/(m-1))/(m-2). So nothing is fitted again.

    Args:
        scores: Log-odds or logit gaps, shape ``(models, n)``, higher = more certain of the label.
        seen: Which model saw which example, same shape.

    Guarantees:
        * Row i equals ``lira`` with model i as target and the others as shadow models.
        * Shifting and scaling all scores of an example changes nothing.

    Raises:
        InvalidInput: Faulty arrays, all listed at once.
        NotEnoughEvidence: An example seen by fewer than three models or left out by fewer than
            three; or whose scores are all alike on one side, with or without a model.

    Example:
        >>> scores = [[5.0], [6.0], [5.5], [1.0], [0.0], [5.2]]
        >>> found = lira_leave_one_out(scores=scores, seen=[[1], [1], [1], [0], [0], [0]])
        >>> found.scores[:, 0].round(1).tolist()
        [0.4, 0.8, 2.1, -38.4, -58.2, 22.3]
        >>> found.success_rate.round(2).tolist()
        [0.83]
    """
    faults: list[str] = []
    table = read_scores("scores", scores, 2, faults)
    mask = read_seen(seen, None if table is None else table.shape, faults)
    require(faults)
    if table is None or mask is None:
        raise InvalidInput("scores and seen must be arrays of numbers.")
    check_sides(mask, least_seen=3, least_unseen=3, what="leaving one out")
    out = np.empty(table.shape)
    alike = np.empty(table.shape[1], dtype=np.bool_)
    for columns in pieces(*table.shape):
        out[:, columns], alike[columns] = _attacked(table[:, columns], mask[:, columns])
    refuse_alike(alike, hint="Use scores that do not saturate, or more models.")
    return LiraLeaveOneOut(
        scores=out,
        success_rate=((out > 0.0) == mask).mean(axis=0),
        n_seen=mask.sum(axis=0),
        n_unseen=(~mask).sum(axis=0),
    )


def _attacked(scores: Floats, seen: Bools) -> tuple[Floats, Bools]:
    """All scores of some examples, and which examples lack a variance."""
    ins, outs = side_of(scores, seen), side_of(scores, ~seen)
    floor = (ALIKE * np.abs(scores).max(axis=0)) ** 2

    own_count = np.where(seen, ins.count, outs.count).astype(np.float64)
    own_squares = np.where(seen, ins.squares, outs.squares)
    away = scores - np.where(seen, ins.mean, outs.mean)
    grown = own_count / (own_count - 1.0)
    left = own_squares - away**2 * grown
    variance = left / (own_count - 2.0)
    distance = away * grown
    model, example = np.nonzero(left < LITTLE_LEFT * own_squares)
    if model.size:
        distance[model, example], variance[model, example] = _refitted(scores, seen, model, example)

    other_variance = np.where(seen, outs.squares / (outs.count - 1), ins.squares / (ins.count - 1))
    other = scores - np.where(seen, outs.mean, ins.mean)
    alike = np.any((variance <= floor) | (other_variance <= floor), axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Where a variance is nil the caller raises; what is computed here is not used.
        log_own = np.log(variance) + distance**2 / variance
        log_other = np.log(other_variance) + other**2 / other_variance
        ratio = (log_other - log_own) / 2.0
    return np.where(seen, ratio, -ratio), alike


def _refitted(
    scores: Floats, seen: Bools, model: NDArray[np.intp], example: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Distance and variance of a few targets from the others on their side, the plain way."""
    side = seen[:, example] == seen[model, example]
    side[model, np.arange(model.size)] = False
    others = side_of(scores[:, example], side)
    return scores[model, example] - others.mean, others.squares / (others.count - 1)
