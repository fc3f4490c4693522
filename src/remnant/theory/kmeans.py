"""k-means that never forgets: one outlier decides for ever which clusters are joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.errors import require

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KMeansOutlier:
    """How well the final centres show whether the outlier was seen.

    Attributes:
        accuracy: Of the guess, over as many models with the outlier as without.
        low, high: Interval of the accuracy.
        precision: Share of the guesses "seen" that are right; NaN if there is no such guess.
        seen_found, unseen_found: How many models of each kind were guessed "seen".
        trials: Models of each kind.
        confidence: Of the interval.
    """

    accuracy: float
    low: float
    high: float
    precision: float
    seen_found: int
    unseen_found: int
    trials: int
    confidence: float


def kmeans_outlier(
    *,
    trials: int,
    rng: np.random.Generator,
    old_points: int = 10,
    new_points: int = 100,
    sigma: float = 0.03,
    middle: float = 0.03,
    outlier: float = -0.01,
    confidence: float = 0.95,
) -> KMeansOutlier:
    """Fit two centres to old data with or without an outlier, go on with new data, and guess.

    The line holds three clusters, around -1, ``middle`` and 1. Old data are of the outer two. Two
    centres are fitted to them as well as can be, then moved by Lloyd's algorithm on new data of all
    three. The outlier lies a little to the left of the middle cluster; when it was there, the left
    centre stood nearer to the middle cluster and took it. The guess is "seen" where the middle
    cluster ended with the left one. New data never undo it: a warm start does not leave its valley.

    Args:
        trials: Models with the outlier, and as many without, each on samples of its own.
        rng: Where the samples come from.
        old_points, new_points: A cluster, before and after.
        sigma: Standard deviation of each cluster.
        middle: Centre of the middle cluster; above 0, so nearer to the right one.
        outlier: Where the outlier is.
        confidence: Of the accuracy's interval.

    Raises:
        InvalidInput: A count under 1, a ``sigma`` that is not above 0; all faults at once.

    Example:
        >>> kmeans_outlier(trials=200, rng=np.random.default_rng(0)).precision
        1.0
    """
    counts = {"trials": trials, "old_points": old_points, "new_points": new_points}
    faults = [
        f"{name}={value!r} is not a whole number of at least 1"
        for name, value in counts.items()
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1
    ]
    if not 0.0 < sigma < np.inf:
        faults.append(f"sigma={sigma!r} is not above 0")
    if not 0.0 < confidence < 1.0:
        faults.append(f"confidence={confidence!r} is not between 0 and 1")
    require(faults)

    def clusters(centres: list[float], points: int) -> Floats:
        around = np.repeat(centres, points)
        return around + sigma * rng.standard_normal((trials, around.size))

    guessed = []
    for seen in (True, False):
        old = clusters([-1.0, 1.0], old_points)
        if seen:
            old = np.column_stack([old, np.full(trials, outlier)])
        new = clusters([-1.0, middle, 1.0], new_points)
        left, right = lloyd(new, *best_two_centres(old))
        joined_left = np.abs(middle - left) < np.abs(middle - right)
        guessed.append(int(joined_left.sum()))
    seen_found, unseen_found = guessed
    right_guesses = seen_found + trials - unseen_found
    # Two kinds of models, each with its own rate: the sum varies less than one binomial count.
    ends = stats.binomtest(right_guesses, 2 * trials).proportion_ci(confidence, "exact")
    return KMeansOutlier(
        accuracy=right_guesses / (2 * trials),
        low=float(ends.low),
        high=float(ends.high),
        precision=seen_found / sum(guessed) if any(guessed) else float("nan"),
        seen_found=seen_found,
        unseen_found=unseen_found,
        trials=int(trials),
        confidence=float(confidence),
    )


def best_two_centres(points: Floats) -> tuple[Floats, Floats]:
    """The two centres of least squared distance for each row of points, found among all splits."""
    ranked = np.sort(points, axis=1)
    n = ranked.shape[1]
    left_n = np.arange(1, n)
    sums = np.cumsum(ranked, axis=1)
    left, right = sums[:, :-1] / left_n, (sums[:, -1:] - sums[:, :-1]) / (n - left_n)
    # Squared distances fall as these grow; the sum of squares is the same for every split.
    best = np.argmax(left_n * left**2 + (n - left_n) * right**2, axis=1)
    rows = np.arange(len(points))
    return left[rows, best], right[rows, best]


def lloyd(points: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Move two centres per row, the left one first, to where Lloyd's algorithm comes to rest."""
    ranked = np.sort(points, axis=1)
    n = ranked.shape[1]
    sums = np.pad(np.cumsum(ranked, axis=1), ((0, 0), (1, 0)))
    rows = np.arange(len(points))
    while True:
        left_n = (ranked <= ((left + right) / 2.0)[:, None]).sum(axis=1)
        # A centre without points stays where it is.
        new_left = np.where(left_n > 0, sums[rows, left_n] / np.maximum(left_n, 1), left)
        rest = sums[:, -1] - sums[rows, left_n]
        new_right = np.where(left_n < n, rest / np.maximum(n - left_n, 1), right)
        if np.array_equal(new_left, left) and np.array_equal(new_right, right):
            return left, right
        left, right = new_left, new_right
