"""Every model attacked by all the others, without fitting anything twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.shadow_models import (
    ALIKE,
    LEAST_A_SIDE,
    Bools,
    Side,
    check_sides,
    default_variance,
    pieces,
    read_scores,
    read_seen,
    refuse_alike,
    side_of,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LeaveOneOutVariance = Literal["auto", "per_example", "pooled"]

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
        variance: As given; for "auto" the one that was taken.
        convention: Such as "online, mean, pooled variance, ddof 1, target left out".
    """

    scores: Floats
    success_rate: Floats
    n_seen: Ints
    n_unseen: Ints
    variance: LeaveOneOutVariance
    convention: str


def lira_leave_one_out(
    *, scores: ArrayLike, seen: ArrayLike, variance: LeaveOneOutVariance = "auto"
) -> LiraLeaveOneOut:
    r"""Attack every model by all the others: online, mean, ddof 1.

    For a target among the m models on its side of an example, at distance d from their mean and
    with their squared distances summing to S, leaving it out moves the mean to d m/(m-1) from it
    and the sum of squares to S - d² m/(m-1). So nothing is fitted again.

    Args:
        scores: Log-odds or logit gaps, shape ``(models, n)``, higher = more certain of the label.
        seen: Which model saw which example, same shape.
        variance: As in ``lira``, of the models that are left. "per_example" takes each example's
            own; "pooled" adds squared distances up over all examples. "auto" is "pooled" under 64
            other models and "per_example" from 64 on, and refuses examples with fewer than 8 other
            models on a side, where a log ratio of 4 or more is too often wrong.

    Guarantees:
        * Row i equals ``lira`` with model i as target, the others as shadow models and the same
          ``variance``.
        * Shifting and scaling all scores of an example changes nothing ("per_example").

    Raises:
        InvalidInput: Faulty arrays or an unknown ``variance``, all listed at once.
        NotEnoughEvidence: An example seen by too few models or left out by too few (fewer than 9
            for "auto", 3 for "per_example", 2 for "pooled"); scores that are all alike on one
            side, with or without a model, where the example's own variance is taken.

    Example:
        >>> scores = [[5.0], [6.0], [5.5], [1.0], [0.0], [5.2]]
        >>> found = lira_leave_one_out(scores=scores, seen=[[1], [1], [1], [0], [0], [0]],
        ...                            variance="per_example")
        >>> found.scores[:, 0].round(1).tolist()
        [0.4, 0.8, 2.1, -38.4, -58.2, 22.3]
        >>> found.success_rate.round(2).tolist()
        [0.83]
    """
    faults: list[str] = []
    if variance not in get_args(LeaveOneOutVariance):
        faults.append(
            f"variance={variance!r} is not one of {', '.join(get_args(LeaveOneOutVariance))}"
        )
    table = read_scores("scores", scores, 2, faults)
    mask = read_seen(seen, None if table is None else table.shape, faults)
    require(faults)
    if table is None or mask is None:
        raise InvalidInput("scores and seen must be arrays of numbers.")
    if variance == "auto":
        least = LEAST_A_SIDE + 1
        variance = default_variance(mask, least_seen=least, least_unseen=least, targets=1)
    least = 3 if variance == "per_example" else 2
    check_sides(mask, least_seen=least, least_unseen=least, what="leaving one out")
    out = _by_own_variances(table, mask) if variance == "per_example" else _by_pooled(table, mask)
    return LiraLeaveOneOut(
        scores=out,
        success_rate=((out > 0.0) == mask).mean(axis=0),
        n_seen=mask.sum(axis=0),
        n_unseen=(~mask).sum(axis=0),
        variance=variance,
        convention=f"online, mean, {variance} variance, ddof 1, target left out",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LeftOut:
    """Each model held against the others on both sides of some examples.

    Attributes:
        ins, outs: The sides with all models.
        own_count: Models on the target's side, the target included, shape ``(models, n)``.
        distance: Of the target from the mean of the others on its side.
        squares: Of those others about their mean.
        other: Distance of the target from the mean of the other side.
    """

    ins: Side
    outs: Side
    own_count: Floats
    distance: Floats
    squares: Floats
    other: Floats


def _left_out(scores: Floats, seen: Bools) -> _LeftOut:
    ins, outs = side_of(scores, seen), side_of(scores, ~seen)
    own_count = np.where(seen, ins.count, outs.count).astype(np.float64)
    own_squares = np.where(seen, ins.squares, outs.squares)
    away = scores - np.where(seen, ins.mean, outs.mean)
    grown = own_count / (own_count - 1.0)
    left = own_squares - away**2 * grown
    distance = away * grown
    model, example = np.nonzero(left < LITTLE_LEFT * own_squares)
    if model.size:
        distance[model, example], left[model, example] = _refitted(scores, seen, model, example)
    other = scores - np.where(seen, outs.mean, ins.mean)
    return _LeftOut(ins, outs, own_count, distance, left, other)


def _by_own_variances(table: Floats, seen: Bools) -> Floats:
    out = np.empty(table.shape)
    alike = np.empty(table.shape[1], dtype=np.bool_)
    for columns in pieces(*table.shape):
        out[:, columns], alike[columns] = _attacked(table[:, columns], seen[:, columns])
    refuse_alike(alike, hint='Use variance="pooled", or scores that do not saturate.')
    return out


def _attacked(scores: Floats, seen: Bools) -> tuple[Floats, Bools]:
    """All scores of some examples, and which examples lack a variance."""
    held = _left_out(scores, seen)
    ins, outs = held.ins, held.outs
    floor = (ALIKE * np.abs(scores).max(axis=0)) ** 2
    variance = held.squares / (held.own_count - 2.0)
    other_variance = np.where(seen, outs.squares / (outs.count - 1), ins.squares / (ins.count - 1))
    alike = np.any((variance <= floor) | (other_variance <= floor), axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Where a variance is nil the caller raises; what is computed here is not used.
        log_own = np.log(variance) + held.distance**2 / variance
        log_other = np.log(other_variance) + held.other**2 / other_variance
        ratio = (log_other - log_own) / 2.0
    return np.where(seen, ratio, -ratio), alike


def _by_pooled(table: Floats, seen: Bools) -> Floats:
    """One variance a side and target, from the squares of all examples."""
    models, examples = table.shape
    from_ins, from_outs = np.empty(table.shape), np.empty(table.shape)
    squares = np.zeros((2, models))
    for columns in pieces(*table.shape):
        mask = seen[:, columns]
        held = _left_out(table[:, columns], mask)
        from_ins[:, columns] = np.where(mask, held.distance, held.other)
        from_outs[:, columns] = np.where(mask, held.other, held.distance)
        squares[0] += np.where(mask, held.squares, held.ins.squares).sum(axis=1)
        squares[1] += np.where(mask, held.outs.squares, held.squares).sum(axis=1)
    counts = np.stack([seen.sum() - seen.sum(axis=1), (~seen).sum() - (~seen).sum(axis=1)])
    freedom = counts - examples
    if np.any(freedom < 1) or not np.all(squares > 0.0):
        raise NotEnoughEvidence(
            f"a pooled variance needs models that differ; those of {examples} example(s) do not.",
            hint="Train more models.",
        )
    in_variance, out_variance = squares / freedom
    ratio = np.log(out_variance / in_variance)[:, None]
    return np.asarray(
        (ratio + from_outs**2 / out_variance[:, None] - from_ins**2 / in_variance[:, None]) / 2.0
    )


def _refitted(
    scores: Floats, seen: Bools, model: NDArray[np.intp], example: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Distance of a few targets from the others on their side, and these' squares, directly."""
    side = seen[:, example] == seen[model, example]
    side[model, np.arange(model.size)] = False
    others = side_of(scores[:, example], side)
    return scores[model, example] - others.mean, others.squares
