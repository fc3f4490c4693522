"""Counterfactual memorization: what does seeing an example add to a model's score of it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.measures.prediction.shadow_models import (
    Side,
    check_sides,
    pieces,
    read_table,
    refuse_alike,
    side_of,
    spread_is_rounding,
)
from remnant.measures.statistics.checks import check_share
from remnant.measures.statistics.intervals import beta_ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CounterfactualMemorization:
    """What seeing adds, for each example.

    Attributes:
        values: Mean score of the models that saw the example less that of the others, shape
            ``(n,)``; higher = more memorised.
        low, high: The interval of each example alone, over models.
        n_seen, n_unseen: Models on each side of each example.
        confidence: Of each interval.
        method: The interval's construction, in words.
    """

    values: Floats
    low: Floats
    high: Floats
    n_seen: Ints
    n_unseen: Ints
    confidence: float
    method: str


def counterfactual_memorization(
    *, scores: ArrayLike, seen: ArrayLike, confidence: float = 0.95
) -> CounterfactualMemorization:
    """The mean score of models that saw an example, less that of models that did not.

    Models are independent and each saw examples at random, so this is the effect of seeing. With
    numbers (logit gaps, log-odds) the interval is Welch's, by Student's t with its degrees of
    freedom. With booleans (was the example classified correctly?) the distances of the two shares
    from the ends of their Clopper-Pearson intervals are squared and added (Newcombe's way, with
    exact ends), which has a width also where all models agree.

    Args:
        scores: Shape ``(models, n)``, higher = more certain of the label; or booleans.
        seen: Which model saw which example, same shape.
        confidence: Of each example's interval, for that example alone.

    Guarantees:
        * Exchanging seen and unseen changes the sign, and the ends' with it.
        * A constant added to all scores of an example changes nothing.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: An example seen by fewer than two models, or left out by fewer than two;
            numbers that are all alike on both sides of an example.

    Example:
        >>> effect = counterfactual_memorization(
        ...     scores=[[3.0], [4.0], [1.0], [2.0]], seen=[[1], [1], [0], [0]])
        >>> effect.values.tolist(), effect.low.round(2).tolist(), effect.high.round(2).tolist()
        ([2.0], [-1.04], [5.04])
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    table, mask = read_table(scores, seen, faults)
    shares = np.asarray(scores).dtype == np.bool_
    check_sides(mask, least_seen=2, least_unseen=2, what="an interval")
    ends = np.empty((3, table.shape[1]))
    alike = np.zeros(table.shape[1], dtype=np.bool_)
    for columns in pieces(*table.shape):
        part = table[:, columns]
        ins, outs = side_of(part, mask[:, columns]), side_of(part, ~mask[:, columns])
        if shares:
            ends[:, columns] = _square_and_add(ins, outs, float(confidence))
        else:
            both = (ins.squares + outs.squares) / part.shape[0]
            alike[columns] = spread_is_rounding(both, part)
            ends[:, columns] = _welch(ins, outs, float(confidence))
    refuse_alike(
        alike, hint="Use logit gaps or log-odds, which do not saturate; or booleans for hits."
    )
    return CounterfactualMemorization(
        values=ends[0],
        low=ends[1],
        high=ends[2],
        n_seen=mask.sum(axis=0),
        n_unseen=(~mask).sum(axis=0),
        confidence=float(confidence),
        method="Clopper-Pearson ends, squared and added" if shares else "Welch's t over models",
    )


def _welch(ins: Side, outs: Side, confidence: float) -> Floats:
    value = ins.mean - outs.mean
    within = ins.squares / (ins.count - 1) / ins.count
    without = outs.squares / (outs.count - 1) / outs.count
    spread = within**2 / (ins.count - 1) + without**2 / (outs.count - 1)
    freedom = (ins.count + outs.count - 2).astype(np.float64)
    np.divide((within + without) ** 2, spread, out=freedom, where=spread > 0.0)
    reach = stats.t.isf((1.0 - confidence) / 2.0, freedom) * np.sqrt(within + without)
    return np.stack([value, value - reach, value + reach])


def _square_and_add(ins: Side, outs: Side, confidence: float) -> Floats:
    value = ins.mean - outs.mean
    in_low, in_high = _exact_ends(ins, confidence)
    out_low, out_high = _exact_ends(outs, confidence)
    low = value - np.hypot(ins.mean - in_low, out_high - outs.mean)
    high = value + np.hypot(in_high - ins.mean, outs.mean - out_low)
    return np.stack([value, np.maximum(low, -1.0), np.minimum(high, 1.0)])


def _exact_ends(side: Side, confidence: float) -> tuple[Floats, Floats]:
    count = side.count.astype(np.float64)
    return beta_ends(np.round(side.mean * count), count, confidence)
