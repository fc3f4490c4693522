"""Canaries that come back: not found at a checkpoint, and found again at a later one.

A canary that the attack misses once is not gone if a later checkpoint shows it again. But scores
wander, and among many canaries and checkpoints some come back by chance. How many is read off
models that saw no canary (A/A twins), on the same canaries, from the same checkpoint on, against
the same thresholds. Without that match the twins, which never had the canaries, would be lost
earlier and have more checkpoints to come back at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share, read_floats, unseen_needed

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
STRICTER = 5.0  # how many times smaller the false-positive rate of a return is


@dataclass(frozen=True, slots=True, eq=False)
class Returning:
    """How many canaries came back, beside how many do by chance.

    Attributes:
        canaries: Planted ones, of all trials together.
        lost: Of these, not found at ``quiet`` checkpoints in a row, neither in the planted model
            nor in the one where nothing was planted, with a checkpoint to follow.
        returned: Of these, found later in the planted model, by the stricter rule.
        chance_returned: Of these, found later where nothing was planted, by the same rule.
        excess, excess_low, excess_high: Share of canaries that returned, less that by chance.
        pvalue: One-sided, that more came back than do by chance.
        who: Which came back, shape ``(trials, canaries)``.
        fpr, strict_fpr: A canary is lost under the threshold of the first, and back above that of
            the second.
        quiet: Checkpoints in a row that make a loss.
        trials, confidence, method: Behind the interval.
    """

    canaries: int
    lost: int
    returned: int
    chance_returned: int
    excess: float
    excess_low: float
    excess_high: float
    pvalue: float
    who: Marks
    fpr: float
    strict_fpr: float
    quiet: int
    trials: int
    confidence: float
    method: str


def returning(
    *,
    seen_scores: ArrayLike,
    null_scores: ArrayLike,
    unseen_scores: ArrayLike,
    fpr: float = 0.1,
    strict_fpr: float | None = None,
    quiet: int = 2,
    confidence: float = 0.95,
) -> Returning:
    """Scan all checkpoints for canaries that were lost and come back.

    A canary is *lost* when neither its score nor that of its null is above the threshold of ``fpr``
    at ``quiet`` checkpoints in a row, and *back* when its score is above the threshold of
    ``strict_fpr`` at any later one. Thresholds are those of each trial and checkpoint, from the
    unplanted twin's scores. The rule treats both sides alike, so where planting left no trace the
    trials' differences are symmetric about 0. Their error is Student's t over trials, no smaller
    than that of the counts themselves; with one trial the counts are all there is, and nothing is
    said about other models.

    Args:
        seen_scores: Shape ``(checkpoints, trials, canaries)``, in order, higher = more likely seen.
        null_scores: The same of models in which nothing was planted, on the same canaries.
        unseen_scores: Shape ``(checkpoints, trials, n)``, which place the thresholds.
        fpr: Of the threshold under which a canary is not found.
        strict_fpr: Of the threshold above which it is back; a fifth of ``fpr``, if not given.
        quiet: Checkpoints in a row that make a loss.
        confidence: Of the interval.

    Guarantees:
        * The order of canaries within a trial does not matter to the counts.
        * A strictly increasing map of all scores of a checkpoint changes nothing.

    Raises:
        InvalidInput: Faults in arrays or settings, all listed at once.
        NotEnoughEvidence: Too few checkpoints, or fewer than 1/fpr unseen scores in a trial.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> shift = np.array([3.0, 0.0, 0.0, 0.0, 3.0])[:, None, None]
        >>> scan = returning(
        ...     seen_scores=shift + rng.normal(size=(5, 4, 50)),
        ...     null_scores=rng.normal(size=(5, 4, 50)), unseen_scores=rng.normal(size=(5, 4, 50)))
        >>> scan.canaries, scan.lost, scan.returned, scan.chance_returned
        (200, 146, 139, 15)
    """
    faults: list[str] = []
    seen = read_floats("seen_scores", seen_scores, 3, faults)
    null = read_floats("null_scores", null_scores, 3, faults)
    unseen = read_floats("unseen_scores", unseen_scores, 3, faults)
    check_share("fpr", fpr, faults)
    check_share("confidence", confidence, faults)
    strict = fpr / STRICTER if strict_fpr is None else strict_fpr
    if not faults:
        check_share("strict_fpr", strict, faults)
    if not faults and strict > fpr:
        faults.append(f"strict_fpr={strict:g} is not stricter than fpr={fpr:g}")
    if isinstance(quiet, bool) or not isinstance(quiet, int | np.integer) or quiet < 1:
        faults.append(f"quiet={quiet!r} is not a whole number from 1")
    if seen is not None and null is not None and seen.shape != null.shape:
        faults.append(f"seen_scores have the shape {seen.shape}, null_scores {null.shape}")
    if seen is not None and unseen is not None and seen.shape[:2] != unseen.shape[:2]:
        faults.append(f"seen_scores have the shape {seen.shape}, unseen_scores {unseen.shape}")
    require(faults)
    if seen is None or null is None or unseen is None:
        raise InvalidInput("seen_scores, null_scores and unseen_scores must be arrays of numbers.")
    if len(seen) <= quiet:
        raise NotEnoughEvidence(
            f"{len(seen)} checkpoints cannot show a return after {quiet} without a find.",
            hint=f"Score the canaries at {quiet + 1} checkpoints or more.",
        )
    if unseen.shape[2] < unseen_needed(fpr):
        raise NotEnoughEvidence(
            f"{unseen.shape[2]} unseen scores a trial cannot place a threshold at FPR {fpr:g}; "
            f"it takes at least {unseen_needed(fpr)}.",
            hint="Score more unseen canaries, or ask for a larger fpr.",
        )
    limits = _thresholds(unseen, fpr), _thresholds(unseen, strict)
    lost = _lost((seen <= limits[0]) & (null <= limits[0]), quiet=quiet)
    back, null_back = (np.any(lost & (side > limits[1])[quiet:], axis=0) for side in (seen, null))
    excess, low, high, pvalue = _difference(back, null_back, confidence=float(confidence))
    trials = seen.shape[1]
    over = f"Student t over {trials} trials, no narrower than the counts' own error"
    return Returning(
        canaries=back.size,
        lost=int(lost[-1].sum()),
        returned=int(back.sum()),
        chance_returned=int(null_back.sum()),
        excess=excess,
        excess_low=low,
        excess_high=high,
        pvalue=pvalue,
        who=back,
        fpr=float(fpr),
        strict_fpr=float(strict),
        quiet=int(quiet),
        trials=trials,
        confidence=float(confidence),
        method=over if trials > 1 else "counts only; one trial carries no between-model error",
    )


def _thresholds(unseen: Floats, fpr: float) -> Floats:
    """The (k+1)-th largest unseen score, k = floor(fpr n), of each checkpoint and trial."""
    n = unseen.shape[2]
    rank = n - 1 - min(math.floor(fpr * n + 1e-9), n - 1)
    return np.asarray(np.partition(unseen, rank, axis=2)[:, :, rank, None])


def _lost(missed: Marks, *, quiet: int) -> Marks:
    """Who was lost before each checkpoint from the ``quiet``-th on."""
    windows = np.lib.stride_tricks.sliding_window_view(missed, quiet, axis=0).all(axis=-1)
    return np.asarray(np.logical_or.accumulate(windows, axis=0)[:-1])


def _difference(
    back: Marks, null: Marks, *, confidence: float
) -> tuple[float, float, float, float]:
    """Excess share, its interval, and the one-sided p-value."""
    trials, n = back.shape
    own = back.mean(axis=1) - null.mean(axis=1)
    excess = float(own.mean())
    # Half a canary more on each side keeps an error where nobody came back.
    shares = [(marks.sum() + 0.5) / (marks.size + 1.0) for marks in (back, null)]
    counted = math.sqrt(sum(share * (1.0 - share) for share in shares) / (trials * n))
    tail = (1.0 - confidence) / 2.0
    reach = float(stats.norm.isf(tail)) * counted
    pvalue = float(stats.norm.sf(excess / counted))
    if trials > 1:
        error = float(own.std(ddof=1)) / math.sqrt(trials)
        reach = max(reach, float(stats.t.isf(tail, trials - 1)) * error)
        if error > 0.0:
            pvalue = max(pvalue, float(stats.t.sf(excess / error, trials - 1)))
    return excess, max(excess - reach, -1.0), min(excess + reach, 1.0), pvalue
