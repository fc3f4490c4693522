"""Is it the examples that are remembered, or their kind? Own sets among all, and AUC in a label.

Where each trial plants a set of its own, drawn at random, every model scores all sets. A model that
learnt only the kind of the examples scores all sets alike, and which of them is its own does not
matter. So the mean ranks of the models' own sets are held against those under other assignments of
sets to models, which would all have been equally likely.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_rng, read_floats
from remnant.measures.statistics.skewed_trials import upper_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ALL = 5040  # assignments, up to which all are looked at
_DRAWN = 9999


@dataclass(frozen=True, slots=True, eq=False)
class OwnSetTest:
    """The rank of each model's own set among the sets of all trials.

    Attributes:
        ranks: 1 where the own set scores highest, shape ``(lags, trials)``; ties count against it.
        p_value: That own sets rank so high by chance, at each lag; small where models remember
            examples.
        sets: How many there are.
    """

    ranks: Ints
    p_value: Floats
    sets: int


def own_set_test(
    scores: ArrayLike,
    *,
    own: ArrayLike,
    rng: np.random.Generator,
    labels: ArrayLike | None = None,
) -> OwnSetTest:
    """Rank each planted model's own set among the sets of all trials.

    Args:
        scores: Of every example in each trial's planted model, ``(lags, trials, examples)``.
        own: Which examples each trial planted, ``(trials, examples)``; none in two trials. Examples
            that no trial planted are left out.
        rng: Draws assignments, where there are more than 5040.
        labels: The label of each example, ``(examples,)``. Examples are then ranked among those of
            their label.

    Guarantees:
        * Without memory of single examples ``p_value <= a`` has a probability of ``a`` at most at
          each lag, whatever models learnt of the kind and however they differ. With ``labels`` this
          also holds for models that take labels more readily which their own set has more often;
          without, such models find their own set by its labels.

    Raises:
        InvalidInput: Faults in arrays; fewer than two trials; an example of two trials.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> own = np.repeat(np.eye(6, dtype=bool), 10, axis=1)
        >>> found = own_set_test(rng.normal(size=(1, 6, 60)) + 2.0 * own, own=own, rng=rng)
        >>> found.ranks.tolist(), found.p_value.round(4).tolist()
        ([[1, 1, 1, 1, 1, 1]], [0.0014])
    """
    faults: list[str] = []
    values = read_floats("scores", scores, 3, faults, axes="(lags, trials, examples)")
    mine = np.asarray(own)
    check_rng(rng, faults)
    if values is not None and (mine.dtype != np.bool_ or mine.shape != values.shape[1:]):
        faults.append("own does not hold truth values of the shape (trials, examples)")
    elif mine.ndim == 2 and (mine.sum(axis=0) > 1).any():
        faults.append("own has an example in two trials")
    elif len(mine) < 2 or not mine.any(axis=1).all():
        faults.append("own needs two trials or more, each with an example")
    if values is not None and labels is not None and np.shape(labels) != values.shape[2:]:
        faults.append("labels does not have the shape (examples,)")
    require(faults)
    if values is None:
        raise InvalidInput("scores must be an array of numbers.")
    planted = mine.any(axis=0)
    kinds = np.zeros(planted.size) if labels is None else np.asarray(labels)
    ranked = _ranks_within(values[..., planted], kinds[planted])
    share = mine[:, planted] / mine.sum(axis=1, keepdims=True)
    means = ranked @ share.T  # (lags, models, sets)
    own_mean = np.diagonal(means, axis1=1, axis2=2)
    ranks = (means >= own_mean[..., None] - 1e-9).sum(axis=2)
    p_values = [_p_value(table, rng) for table in means]
    return OwnSetTest(ranks.astype(np.int64), np.array(p_values), len(mine))


def _ranks_within(values: Floats, kinds: NDArray[Any]) -> Floats:
    """The rank of each score among those of its kind, as a share, about 0."""
    ranked = np.zeros_like(values)
    for kind in np.unique(kinds):
        same = kinds == kind
        middle = (same.sum() + 1.0) / 2.0
        ranked[..., same] = (stats.rankdata(values[..., same], axis=2) - middle) / same.sum()
    return ranked


def _p_value(means: Floats, rng: np.random.Generator) -> float:
    """The share of assignments whose mean ranks add up to at least as much as the true one's."""
    trials = len(means)
    least = float(np.trace(means)) - 1e-9
    if math.factorial(trials) <= _ALL:
        orders = np.array(list(itertools.permutations(range(trials))))
        return float((means[np.arange(trials), orders].sum(axis=1) >= least).mean())
    orders = rng.permuted(np.tile(np.arange(trials), (_DRAWN, 1)), axis=1)
    reached = int((means[np.arange(trials), orders].sum(axis=1) >= least).sum())
    return (1 + reached) / (1 + _DRAWN)


def auc_within_label(
    *,
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    seen_labels: ArrayLike,
    unseen_labels: ArrayLike,
) -> Floats:
    """Return each trial's AUC over the pairs of a seen and an unseen example of the same label.

    A model that was planted with examples of a label may take everything for that label a little
    more readily. Seen examples then score higher than unseen ones of other labels, though no single
    example is remembered.

    Args:
        seen_scores: Shape ``(lags, trials, n_seen)``.
        unseen_scores: Shape ``(lags, trials, n_unseen)``.
        seen_labels, unseen_labels: The label of each example, ``(trials, n)``.

    Returns:
        Shape ``(lags, trials)``.

    Raises:
        InvalidInput: Faults in arrays.
        NotEnoughEvidence: A trial has no label on both sides.

    Example:
        >>> auc_within_label(
        ...     seen_scores=[[[9.0, 1.0]]], unseen_scores=[[[8.0, 0.0]]],
        ...     seen_labels=[[1, 2]], unseen_labels=[[1, 2]]).tolist()
        [[1.0]]
    """
    faults: list[str] = []
    seen = read_floats("seen_scores", seen_scores, 3, faults)
    unseen = read_floats("unseen_scores", unseen_scores, 3, faults)
    own, others = np.asarray(seen_labels), np.asarray(unseen_labels)
    if seen is not None and unseen is not None:
        if seen.shape[1:] != own.shape or unseen.shape[1:] != others.shape:
            faults.append("labels do not have the shape (trials, n) of their scores")
        if seen.shape[:2] != unseen.shape[:2]:
            faults.append("seen_scores and unseen_scores differ in lags or trials")
    require(faults)
    if seen is None or unseen is None:
        raise InvalidInput("seen_scores and unseen_scores must be arrays of numbers.")
    rates = np.empty(seen.shape[:2])
    for trial in range(seen.shape[1]):
        pairs = own[trial][:, None] == others[trial]
        if not pairs.any():
            raise NotEnoughEvidence(
                f"trial {trial} has no label with a seen and an unseen example.",
                hint="Plant more examples, or score more that were never planted.",
            )
        for lag in range(seen.shape[0]):
            above = seen[lag, trial][:, None] - unseen[lag, trial]
            rates[lag, trial] = ((above > 0.0) + 0.5 * (above == 0.0))[pairs].mean()
    return rates


def mean_over_trials(rates: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """The mean rate at each lag and the ends of its interval over trials.

    The low end is Student's. Trials in which a few models remember much have a skewed law, for
    which the high end is farther out (see ``skewed_trials``).

    Args:
        rates: Shape ``(lags, trials)``, from 0 to 1.
        confidence: Of the interval.

    Guarantees:
        * The interval covers the mean at its confidence for normal and for exponential effects of
          trials.

    Raises:
        NotEnoughEvidence: There are fewer than three trials.
    """
    trials = rates.shape[1]
    if trials < 3:
        raise NotEnoughEvidence(
            f"{trials} trials are too few for an interval over trials.", hint="Run three or more."
        )
    tail = (1.0 - confidence) / 2.0
    mean, error = rates.mean(axis=1), rates.std(axis=1, ddof=1) / np.sqrt(trials)
    low = mean - float(stats.t.isf(tail, trials - 1)) * error
    high = mean + upper_quantile(trials, tail, "moderate") * error
    return mean, np.maximum(low, 0.0), np.minimum(high, 1.0)
