"""Do two models that were trained on a sample agree whether they memorised it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.measures.prediction.shadow_models import Bools, check_sides, read_table
from remnant.measures.statistics.checks import check_share
from remnant.measures.statistics.intervals import beta_ends

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FlipRate:
    """How far "memorised" belongs to the sample, and how far to one training run.

    Attributes:
        value: The chance that two models that saw a sample disagree whether it is memorised.
        low, high: The interval, over models and samples.
        persistence: The chance that a sample that one model memorised is memorised by another that
            saw it too; None where no model memorised anything.
        memorised: Share of (model, sample) pairs, model having seen sample, that are memorised.
        threshold, confidence: As given.
        n, models: Samples and models.
        method: The interval's construction, in words.
    """

    value: float
    low: float
    high: float
    persistence: float | None
    memorised: float
    threshold: float
    confidence: float
    n: int
    models: int
    method: str


def flip_rate(
    *, scores: ArrayLike, seen: ArrayLike, threshold: float = 4.0, confidence: float = 0.95
) -> FlipRate:
    """Compare which of the samples that they saw two models memorised, over all pairs of models.

    Args:
        scores: Of every model on every sample, such as ``lira_leave_one_out(...).scores``; shape
            ``(models, n)``.
        seen: Which model saw which sample, same shape.
        threshold: A model memorised a sample that it saw where the score is at least this.
        confidence: Of the interval.

    Guarantees:
        * The order of models and of samples does not matter.
        * 0 where all models agree on every sample.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: A sample that fewer than three models saw.

    Example:
        >>> flips = flip_rate(scores=[[9.0, 0.0], [8.0, 9.0], [9.0, 0.0]], seen=[[1, 1]] * 3)
        >>> round(flips.value, 3), flips.persistence
        (0.333, 0.75)
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    if isinstance(threshold, bool) or not np.isfinite(threshold):
        faults.append(f"threshold={threshold!r} is not a number")
    table, mask = read_table(scores, seen, faults)
    check_sides(mask, least_seen=3, least_unseen=0, what="comparing two models")
    yes = mask & (table >= threshold)
    counts, hits = mask.sum(axis=0).astype(np.float64), yes.sum(axis=0).astype(np.float64)
    apart = _disagreement(counts, hits)
    value = float(apart.mean())
    variance = float(apart.var(ddof=1)) / apart.size if apart.size > 1 else 0.0
    variance += _over_models(mask, yes, counts, hits)
    size = value * (1.0 - value) / variance if variance > 0.0 else float(len(table))
    low, high = beta_ends(np.array([value * size]), np.array([size]), float(confidence))
    both = float(np.mean(hits * (hits - 1.0) / (counts * (counts - 1.0))))
    once = float(np.mean(hits / counts))
    return FlipRate(
        value=value,
        low=min(float(low[0]), value),
        high=max(float(high[0]), value),
        persistence=both / once if once > 0.0 else None,
        memorised=once,
        threshold=float(threshold),
        confidence=float(confidence),
        n=apart.size,
        models=len(table),
        method="jackknife over models plus variance over samples, ends of a beta law",
    )


def _disagreement(counts: Floats, hits: Floats) -> Floats:
    """For each sample the share of pairs of models that disagree."""
    return np.asarray(2.0 * hits * (counts - hits) / (counts * (counts - 1.0)))


def _over_models(mask: Bools, yes: Bools, counts: Floats, hits: Floats) -> float:
    """The jackknife's variance of the mean disagreement, over models."""
    without = np.empty(len(mask))
    for model in range(len(mask)):
        without[model] = _disagreement(counts - mask[model], hits - yes[model]).mean()
    return float((len(mask) - 1.0) / len(mask) * np.sum((without - without.mean()) ** 2))
