"""The ROC curve of one set of scores, and the four rates read off it, each with its interval.

All scores: higher = more likely seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import (
    Success,
    check_draws,
    check_rng,
    check_share,
    read_floats,
    unseen_needed,
)
from remnant.measures.statistics.trial_interval import describe, measure

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """All operating points, from "nothing is flagged" to "everything is".

    Attributes:
        thresholds: Distinct scores, falling, then ``-inf``; an example is flagged as seen iff its
            score is *above* the threshold.
        fpr: Share of unseen examples flagged at each.
        tpr: Share of seen examples flagged at each.
    """

    fpr: Floats
    tpr: Floats
    thresholds: Floats


@dataclass(frozen=True, slots=True)
class AttackSuccess:
    """One rate of an attack.

    Attributes:
        success: "accuracy", "precision", "tpr" or "auc".
        value: By its definition, on the scores given.
        low, high: The interval; it always holds ``value``.
        confidence: Of the interval.
        n_seen, n_unseen: How many scores on each side.
        fpr: The false-positive rate asked for; None for accuracy and AUC.
        method: The interval's construction, in words.
    """

    success: Success
    value: float
    low: float
    high: float
    confidence: float
    n_seen: int
    n_unseen: int
    fpr: float | None
    method: str


def roc(seen_scores: ArrayLike, unseen_scores: ArrayLike) -> Roc:
    """The ROC curve of two 1-D sets of scores.

    Guarantees:
        * Rises from (0, 0) to (1, 1); any strictly increasing map of all scores moves only the
          thresholds.

    Raises:
        InvalidInput: Empty, NaN or infinite scores, or not one dimension.

    Example:
        >>> curve = roc([3.0, 1.0], [2.0, 0.0])
        >>> curve.fpr.tolist(), curve.tpr.tolist()
        ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    seen, unseen = _sides(seen_scores, unseen_scores, [])
    thresholds = np.append(np.unique(np.concatenate([seen, unseen]))[::-1], -np.inf)
    return Roc(
        fpr=1.0 - np.searchsorted(np.sort(unseen), thresholds, side="right") / unseen.size,
        tpr=1.0 - np.searchsorted(np.sort(seen), thresholds, side="right") / seen.size,
        thresholds=thresholds,
    )


def auc(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    draws: int = 1000,
) -> AttackSuccess:
    """The chance that a seen example scores above an unseen one; ties count half.

    Args:
        seen_scores, unseen_scores: One dimension each.
        rng: Draws the canary resamples behind the interval.
        confidence: Of the interval.
        draws: How many resamples of both sides.

    Raises:
        InvalidInput: Faulty scores or settings, all listed at once.

    Example:
        >>> auc([3.0, 1.0], [2.0, 1.0], rng=np.random.default_rng(0)).value
        0.625
    """
    return _measured(seen_scores, unseen_scores, "auc", None, confidence, draws, rng)


def balanced_accuracy(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    draws: int = 1000,
) -> AttackSuccess:
    """(TPR + TNR) / 2 of the rule "seen iff the score is above the balanced pooled median".

    The threshold is the median of both sides together, each side weighing one half. It is not the
    one that does best on these scores: that one beats chance even where there is nothing to find.
    Arguments and faults as in ``auc``.

    Example:
        >>> balanced_accuracy([3.0, 1.0], [2.0, 0.0], rng=np.random.default_rng(0)).value
        0.5
    """
    return _measured(seen_scores, unseen_scores, "accuracy", None, confidence, draws, rng)


def tpr_at_fpr(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    fpr: float,
    rng: np.random.Generator,
    confidence: float = 0.95,
    draws: int = 1000,
) -> AttackSuccess:
    """The share of seen examples above the (k+1)-th largest unseen score, k = floor(fpr n_unseen).

    ``value`` follows this rule; its threshold is chosen on the scores it is used on, which flatters
    the attack at small n, and the interval makes up for that. Arguments as in ``auc``.

    Raises:
        InvalidInput: Faulty scores or settings, all listed at once.
        NotEnoughEvidence: Fewer than 1/fpr unseen scores.
    """
    return _measured(seen_scores, unseen_scores, "tpr", fpr, confidence, draws, rng)


def precision_at_fpr(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    fpr: float,
    rng: np.random.Generator,
    confidence: float = 0.95,
    draws: int = 1000,
) -> AttackSuccess:
    """TPR / (TPR + realised FPR) by the rule of ``tpr_at_fpr``: precision at balanced classes.

    Where nothing is flagged on either side (all scores alike) precision is 0.5, chance. The
    realised FPR is k/n_unseen, or less with ties, so the value may pass 1/(1 + fpr). Arguments and
    faults as in ``tpr_at_fpr``.
    """
    return _measured(seen_scores, unseen_scores, "precision", fpr, confidence, draws, rng)


def _measured(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    success: Success,
    fpr: float | None,
    confidence: float,
    draws: int,
    rng: np.random.Generator,
) -> AttackSuccess:
    faults: list[str] = []
    if success in ("tpr", "precision"):
        check_share("fpr", fpr if fpr is not None else 0.0, faults)
    check_share("confidence", confidence, faults)
    check_draws(draws, faults)
    check_rng(rng, faults)
    seen, unseen = _sides(seen_scores, unseen_scores, faults)
    if fpr is not None and unseen.size < unseen_needed(fpr):
        raise NotEnoughEvidence(
            f"{unseen.size} unseen scores cannot place a threshold at FPR {fpr:g}; "
            f"it takes at least {unseen_needed(fpr)}.",
            hint="Score more controls, or ask for a larger fpr.",
        )
    rate = 0.5 if fpr is None else float(fpr)
    measured = measure(
        seen=seen[None, None],
        unseen=unseen[None, None],
        success=success,
        fpr=rate,
        draws=draws,
        rng=rng,
    )
    low, high = measured.ends(confidence)
    return AttackSuccess(
        success=success,
        value=float(measured.evidence.value[0, 0]),
        low=float(low[0]),
        high=float(high[0]),
        confidence=float(confidence),
        n_seen=seen.size,
        n_unseen=unseen.size,
        fpr=None if fpr is None else rate,
        method=describe(1, draws),
    )


def _sides(
    seen_scores: ArrayLike, unseen_scores: ArrayLike, faults: list[str]
) -> tuple[Floats, Floats]:
    seen = read_floats("seen_scores", seen_scores, 1, faults)
    unseen = read_floats("unseen_scores", unseen_scores, 1, faults)
    require(faults)
    if seen is None or unseen is None:
        raise InvalidInput("seen_scores and unseen_scores must be arrays of numbers.")
    return seen, unseen
