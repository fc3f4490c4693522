"""Attack success among examples of one label: a trace of the label is not the example."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats
from remnant.measures.statistics.skewed_trials import upper_quantile

Floats = NDArray[np.float64]


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
