"""LiRA: was a model trained on an example? One target, or every model attacked by the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.prediction.shadow_models import (
    ALIKE,
    LEAST_A_SIDE,
    Bools,
    Side,
    check_sides,
    default_variance,
    pieces,
    read_scores,
    read_seen,
    read_table,
    refuse_alike,
    side_of,
    spread_is_rounding,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LiraMode = Literal["online", "offline_one_sided", "offline_symmetric"]
LiraCentre = Literal["mean", "median"]
LiraVariance = Literal["auto", "per_example", "pooled", "global"]
LeaveOneOutVariance = Literal["auto", "per_example", "pooled"]
_NO_VARIANCE = 'Use variance="pooled", or scores that do not saturate.'
# Where so little of a side's squares is left without one model, subtracting has lost digits.
LITTLE_LEFT = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Lira:
    """A score for each example, and the convention by which it was made.

    Conventions differ by many nats where shadow models are few: compare scores of one only.

    Attributes:
        scores: Shape ``(n,)``, in nats, higher = more likely seen.
        n_seen, n_unseen: Shadow models on each side of each example.
        mode, centre, ddof: As given.
        variance: As given; for "auto" the one that was taken.
        convention: All four in one line.
    """

    scores: Floats
    n_seen: Ints
    n_unseen: Ints
    mode: LiraMode
    centre: LiraCentre
    variance: LiraVariance
    ddof: int
    convention: str


def lira(
    *,
    target: ArrayLike,
    shadow: ArrayLike,
    seen: ArrayLike | None = None,
    mode: LiraMode = "online",
    centre: LiraCentre = "mean",
    variance: LiraVariance = "auto",
    ddof: int = 1,
) -> Lira:
    r"""Compare what a model says of each example with what shadow models say of it.

    Under the models that saw an example its score is taken to be normal, and so it is under those
    that did not; φ is the target's.

    =================  =========================================================================
    mode               score
    =================  =========================================================================
    online             log N(φ; in) - log N(φ; out)
    offline_one_sided  -log Pr[N(out) ≥ φ]: the paper's one-sided test, as a log of its p-value
    offline_symmetric  -log N(φ; out), as released codes have it: what is *unlikely* looks seen,
                       on either side
    =================  =========================================================================

    Variances are taken about each example's own mean, also where ``centre`` is the median:
    "per_example" takes each example's own; "pooled" one for all examples, their squared distances
    added up over all of them; "global" that of all scores of a side about their common mean,
    without regard to the example. "auto" is "pooled" under 64 shadow models and "per_example" from
    64 on, and refuses examples with fewer than 8 shadow models on a side: a log ratio of 4 or more
    is then too often wrong. Of examples that no model memorised, per-example variances give one to
    19 % with 2 models a side, 8.5 % with 3, 4.7 % with 4 and 1.0 % with 8; a pooled variance to
    0.5, 0.2, 0.1 and 0.0 %, or to 3 % with 5 models and 1 % with 8 where it is pooled over few
    examples or examples of very different deviations (``benchmarks/lira_false_alarms.py``).

    Args:
        target: The attacked model's scores, shape ``(n,)``: log-odds or logit gaps, higher = more
            certain of the label.
        shadow: The shadow models' scores of the same examples, shape ``(models, n)``.
        seen: Which shadow model saw which example, same shape. Offline modes use the models that
            did not; without ``seen`` none did.
        mode, centre, variance: As above.
        ddof: 1 for unbiased variances, 0 for the mean of squares.

    Guarantees:
        * Finite; no density is ever computed outside logs.
        * Online, scaling and shifting all scores of an example changes nothing ("per_example").
        * Online, exchanging seen and unseen models changes the sign.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: An example with too few models on a side (8 for "auto", 2 for
            "per_example", 1 else), or with scores that are all alike where its own variance is
            taken.

    Example:
        >>> shadow = [[5.0, 1.0], [6.0, 0.0], [1.0, 5.0], [0.0, 4.0]]
        >>> seen = [[True, False], [True, False], [False, True], [False, True]]
        >>> attack = lira(target=[5.5, 0.5], shadow=shadow, seen=seen, variance="per_example")
        >>> attack.scores.round(1).tolist()
        [25.0, -16.0]
        >>> attack.convention
        'online, mean, per_example variance, ddof 1'
    """
    faults: list[str] = []
    _check_choice("mode", mode, LiraMode, faults)
    _check_choice("centre", centre, LiraCentre, faults)
    _check_choice("variance", variance, LiraVariance, faults)
    if isinstance(ddof, bool) or ddof not in (0, 1):
        faults.append(f"ddof={ddof!r} is neither 0 nor 1")
    if seen is None and mode == "online":
        faults.append("mode='online' needs seen")
    own = read_scores("target", target, 1, faults)
    table = read_scores("shadow", shadow, 2, faults)
    shape = None if table is None else table.shape
    mask = None if seen is None else read_seen(seen, shape, faults)
    if own is not None and shape is not None and own.size != shape[1]:
        faults.append(f"target has {own.size} entries for {shape[1]} examples of shadow")
    require(faults)
    if own is None or table is None:
        raise InvalidInput("target and shadow must be arrays of numbers.")
    if mask is None:
        mask = np.zeros(table.shape, dtype=np.bool_)
    online = mode == "online"
    if variance == "auto":
        variance = default_variance(
            mask, least_seen=LEAST_A_SIDE if online else 0, least_unseen=LEAST_A_SIDE
        )
    least = 2 if variance == "per_example" else 1
    what = f"a {variance} variance"
    check_sides(mask, least_seen=least if online else 0, least_unseen=least, what=what)

    z_out, spread_out = _standardised(own, table, ~mask, centre, variance, ddof)
    if online:
        z_in, spread_in = _standardised(own, table, mask, centre, variance, ddof)
        scores = np.log(spread_out / spread_in) + (z_out - z_in) * (z_out + z_in) / 2.0
    elif mode == "offline_one_sided":
        scores = -special.log_ndtr(-z_out)
    else:
        scores = z_out**2 / 2.0 + np.log(spread_out) + math.log(2.0 * math.pi) / 2.0
    return Lira(
        scores=np.asarray(scores),
        n_seen=mask.sum(axis=0),
        n_unseen=(~mask).sum(axis=0),
        mode=mode,
        centre=centre,
        variance=variance,
        ddof=int(ddof),
        convention=f"{mode}, {centre}, {variance} variance, ddof {ddof}",
    )


def _check_choice(name: str, given: str, choices: Any, faults: list[str]) -> None:
    if given not in get_args(choices):
        faults.append(f"{name}={given!r} is not one of {', '.join(get_args(choices))}")


def _standardised(
    target: Floats, table: Floats, chosen: Bools, centre: str, variance: str, ddof: int
) -> tuple[Floats, Floats]:
    """How many deviations the target lies above the chosen models' centre; the deviations."""
    count, middle, mean, squares, alike = (np.empty(target.size) for _ in range(5))
    for columns in pieces(*table.shape):
        scores, mask = table[:, columns], chosen[:, columns]
        side = side_of(scores, mask)
        count[columns], mean[columns], squares[columns] = side.count, side.mean, side.squares
        middle[columns] = side.mean if centre == "mean" else _medians(scores, mask, side.count)
        alike[columns] = spread_is_rounding(side.squares / side.count, scores)
    own = Side(count.astype(np.int64), mean, squares)
    if variance == "per_example":
        refuse_alike(alike != 0.0, hint=_NO_VARIANCE)
        deviation = np.sqrt(own.squares / (own.count - ddof))
    else:
        deviation = np.full(target.size, _common_deviation(own, variance, ddof))
    return (target - middle) / deviation, deviation


def _common_deviation(side: Side, variance: str, ddof: int) -> float:
    models = int(side.count.sum())
    if variance == "pooled":
        squares, freedom = float(side.squares.sum()), models - ddof * side.count.size
    else:
        common = float(side.count @ side.mean) / models
        squares = float(side.squares.sum() + side.count @ (side.mean - common) ** 2)
        freedom = models - ddof
    if freedom < 1 or not squares > 0.0:
        raise NotEnoughEvidence(
            f"a {variance} variance needs models that differ; {models} scores of "
            f"{side.count.size} example(s) show none.",
            hint="Train more shadow models.",
        )
    return math.sqrt(squares / freedom)


def _medians(scores: Floats, chosen: Bools, count: Ints) -> Floats:
    """The median of the chosen scores of each column: what is not chosen is sorted to the end."""
    rows = np.where(chosen, scores, np.inf).T.copy()
    rows.sort(axis=1)
    column = np.arange(count.size)
    return np.asarray((rows[column, (count - 1) // 2] + rows[column, count // 2]) / 2.0)


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
        >>> attack = lira_leave_one_out(scores=scores, seen=[[1], [1], [1], [0], [0], [0]],
        ...                            variance="per_example")
        >>> attack.scores[:, 0].round(1).tolist()
        [0.4, 0.8, 2.1, -38.4, -58.2, 22.3]
        >>> attack.success_rate.round(2).tolist()
        [0.83]
    """
    faults: list[str] = []
    _check_choice("variance", variance, LeaveOneOutVariance, faults)
    table, mask = read_table(scores, seen, faults)
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
    refuse_alike(alike, hint=_NO_VARIANCE)
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
