"""A lower bound on epsilon from scores, with thresholds chosen on the same scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.epsilon.arguments import check_count, check_delta
from remnant.measures.epsilon.attack_rates import epsilon_of_rates
from remnant.measures.statistics.checks import check_share, read_floats
from remnant.measures.statistics.intervals import clopper_pearson

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoresEpsilon:
    """A lower bound on ε over several thresholds, corrected for their number.

    Attributes:
        value: The highest bound of any threshold, in nats; 0 where the scores show no leak.
        threshold: The score at which it was reached; None where ``value`` is 0.
        thresholds: How many were tried, for which ``value`` is corrected.
        seen, unseen: Scores of either kind.
        delta: The δ of the claim that is tested.
        confidence: One-sided, of ``value``.
    """

    value: float
    threshold: float | None
    thresholds: int
    seen: int
    unseen: int
    delta: float
    confidence: float


def epsilon_from_scores(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    thresholds: int = 8,
) -> ScoresEpsilon:
    """Bound ε from below by an attack's scores, over thresholds that the scores themselves set.

    Half of the thresholds are order statistics of the unseen scores (few false alarms), half are
    order statistics of the seen ones (few misses), at ranks that depend on the sample sizes
    alone. The rate of the kind that set the threshold then has the same Beta law as in
    Clopper and Pearson's interval, and the other kind's count is binomial. Each threshold is
    tested at ``1 - (1 - confidence) / thresholds`` (Bonferroni).

    When it holds: scores are independent, as those of trainings of their own are; see
    ``epsilon_lower_bound``. For the canaries of one training use ``one_run_from_scores``. Only an
    attack whose high scores mean "seen" is rewarded.

    Args:
        seen_scores: Scores of examples that were in the training, shape ``(seen,)``.
        unseen_scores: Scores of examples that were not, shape ``(unseen,)``.
        delta: The δ of the claim.
        confidence: One-sided.
        thresholds: How many to try, an even number of at least 2.

    Guarantees:
        * Exceeds the true ε in at most ``1 - confidence`` of audits, ties included.
        * Any strictly increasing map of all scores leaves ``value`` unchanged.

    Raises:
        InvalidInput: Scores that are empty or not finite, an odd number of thresholds, a ``delta``
            or ``confidence`` out of range.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> bound = epsilon_from_scores(rng.normal(size=1000) + 3, rng.normal(size=1000), delta=0)
        >>> round(bound.value, 2)
        4.41
    """
    faults: list[str] = []
    seen = read_floats("seen_scores", seen_scores, 1, faults)
    unseen = read_floats("unseen_scores", unseen_scores, 1, faults)
    check_delta(delta, faults)
    check_share("confidence", confidence, faults)
    check_count("thresholds", thresholds, 2, None, faults)
    if not faults and thresholds % 2:
        faults.append(f"thresholds={thresholds} is odd")
    require(faults)
    if seen is None or unseen is None:
        raise InvalidInput("seen_scores and unseen_scores must be numbers.")
    high_first = np.sort(unseen)[::-1]
    low_first = np.sort(seen)
    level = 1.0 - (1.0 - confidence) / thresholds
    best, at = 0.0, None
    for rank in _ranks(len(unseen), thresholds // 2):
        hits = int(np.count_nonzero(seen > high_first[rank]))
        bound = _bound(hits, len(seen), int(rank), len(unseen), delta, level)
        if bound > best:
            best, at = bound, float(high_first[rank])
    for rank in _ranks(len(seen), thresholds // 2):  # the same, with the two kinds swapped
        rejections = int(np.count_nonzero(unseen < low_first[rank]))
        bound = _bound(rejections, len(unseen), int(rank), len(seen), delta, level)
        if bound > best:
            best, at = bound, float(low_first[rank])
    return ScoresEpsilon(
        best, at, thresholds, len(seen), len(unseen), float(delta), float(confidence)
    )


def _bound(hits: int, n: int, alarms: int, others: int, delta: float, level: float) -> float:
    """The bound of one threshold that ``alarms`` of the kind that set it pass."""
    rate_low = float(clopper_pearson(hits, n, confidence=level)[0])
    alarm_high = float(clopper_pearson(alarms, others, confidence=level)[1])
    return epsilon_of_rates(rate_low, alarm_high, delta)


def _ranks(n: int, count: int) -> Ints:
    """Ranks from 0 to below half of ``n``, denser at the low end."""
    highest = n // 2
    return np.asarray(np.round((highest + 1.0) ** (np.arange(count) / count) - 1.0), dtype=np.int64)
