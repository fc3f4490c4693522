"""From reactions to patches to a score: its interval over images, its rank among nulls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_draws, check_rng, check_share, read_floats
from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.mean_interval import mean_interval

Floats = NDArray[np.float64]

# Scores that differ by less are equal: float32 probabilities are not known any better.
TIE = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class MScore:
    """How much more a model reacts to one patch than to others; higher = more memorised.

    Attributes:
        value: The score, by ``convention``.
        low, high: Its interval for this model and patch, over images: what other images of the same
            kind would give.
        p_value: The rank among patches that were never planted: the test.
        t_test_p_value: The paper's one-tailed paired t-test over images. It asks whether these
            images could have come out so by chance, not whether another patch would do the same;
            on models that never saw the patch it is under 5 % far more often than that. None where
            all images give the same number.
        per_image: The score of each image, shape ``(n,)``; ``value`` is their mean.
        null_values: The scores of the never planted patches, shape ``(nulls,)``.
        n_images, n_nulls: How many.
        confidence: Of the interval.
        method: How interval and p-value were made, in words.
        convention: What was measured, in words.
    """

    value: float
    low: float
    high: float
    p_value: float
    t_test_p_value: float | None
    per_image: Floats
    null_values: Floats
    n_images: int
    n_nulls: int
    confidence: float
    method: str
    convention: str


def feature_score(
    *,
    unique: ArrayLike,
    controls: ArrayLike | None,
    null_means: ArrayLike,
    bound: float,
    rng: np.random.Generator,
    convention: str,
    confidence: float = 0.95,
    draws: int = 999,
) -> MScore:
    """The score of reactions that were collected elsewhere.

    Args:
        unique: The reaction to the patch on each image, shape ``(n,)``.
        controls: To a random patch on the same images; None where none is subtracted.
        null_means: The mean reaction over these images to each never planted patch.
        bound: No image's difference can be farther from zero.
        rng: Draws the resamples.
        convention: What a reaction is, in words.
        confidence: Of the interval.
        draws: Resamples.

    Guarantees:
        * A null that ties with the patch counts against it.
        * ``low <= value <= high``.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
    """
    faults: list[str] = []
    check_rng(rng, faults)
    check_draws(draws, faults)
    check_share("confidence", confidence, faults)
    own = read_floats("unique", unique, 1, faults)
    given = np.zeros(np.shape(unique)) if controls is None else controls
    other = read_floats("controls", given, 1, faults)
    nulls = read_floats("null_means", null_means, 1, faults)
    if own is not None and other is not None and other.shape != own.shape:
        faults.append(f"controls has {other.size} entries for {own.size} images")
    if own is not None and own.size < 2:
        faults.append("unique holds one image, too few for an interval")
    require(faults)
    if own is None or other is None or nulls is None:
        raise InvalidInput("unique, controls and null_means must be arrays of numbers.")
    per_image = own - other
    most = float(np.abs(per_image).max())
    if not (math.isfinite(bound) and most <= bound * (1.0 + 1e-6)):
        raise InvalidInput(f"bound={bound!r} is exceeded: an image's difference is {most:g}.")
    ends = mean_interval(per_image, bound=bound, confidence=confidence, draws=draws, rng=rng)
    value = float(per_image.mean())
    null_values = nulls - float(other.mean())
    beaten = int((null_values >= value - TIE).sum())
    unseen = ", and what unseen images could add: few carry the score"
    return MScore(
        value=value,
        low=ends.low,
        high=ends.high,
        p_value=(1.0 + beaten) / (1.0 + nulls.size),
        t_test_p_value=_paired_t(per_image),
        per_image=per_image,
        null_values=null_values,
        n_images=own.size,
        n_nulls=nulls.size,
        confidence=float(confidence),
        method="interval over images: the wider of bootstrap-t and Student's t"
        f"{unseen if ends.carried_by_few else ''}; p-value: rank among {nulls.size} patches "
        "that were never planted",
        convention=convention,
    )


@dataclass(frozen=True, slots=True, eq=False)
class MemberScores:
    """Every member's M and its two p-values, each ``(members,)``.

    Attributes:
        value: M.
        p_value: The rank among nulls.
        t_test: The paper's one-tailed paired t-test over images; 1 where all images say the same.
    """

    value: Floats
    p_value: Floats
    t_test: Floats


def member_scores(unique: Floats, controls: Floats, null_means: Floats) -> MemberScores:
    """Score every member as ``feature_score`` does one, without its interval over images.

    Args:
        unique, controls: Reactions to the patch and to random ones, ``(members, n)``.
        null_means: Mean reactions to each null, ``(members, nulls)``.
    """
    apart = unique - controls
    value = apart.mean(axis=1)
    nulls = null_means - controls.mean(axis=1, keepdims=True)
    beaten = (nulls >= value[:, None] - TIE).sum(axis=1)
    spread = apart.std(axis=1, ddof=1)
    differs = spread > 1e-12 * np.abs(apart).max(axis=1)
    t = np.divide(value * np.sqrt(apart.shape[1]), spread, out=np.zeros_like(value), where=differs)
    return MemberScores(
        value=value,
        p_value=(1.0 + beaten) / (1.0 + nulls.shape[1]),
        t_test=np.where(differs, stats.t.sf(t, apart.shape[1] - 1), 1.0),
    )


def nulls_needed(alpha: float, *, tests: int = 1) -> int:
    """Return how many never planted patches it takes for a p-value that can be claimed.

    The lowest p-value is 1 / (1 + nulls); Holm compares it with ``alpha / tests``.

    Example:
        >>> nulls_needed(0.05), nulls_needed(0.05, tests=2)
        (19, 39)
    """
    return math.ceil(tests / alpha - 1e-9) - 1


def adjusted_p_values(scores: Sequence[MScore], *, alpha: float = 0.05) -> Floats:
    """The p-values of several canaries, by Holm: at or under ``alpha`` is a claim for each.

    The chance that any claim is false stays under ``alpha``, however the canaries depend on each
    other.

    Args:
        scores: One a canary.
        alpha: What will be claimed at.

    Raises:
        InvalidInput: No scores.
        NotEnoughEvidence: So many canaries that none could be claimed with its number of nulls.

    Example:
        >>> from types import SimpleNamespace as Score
        >>> adjusted_p_values([Score(p_value=0.005, n_nulls=199), Score(p_value=0.6, n_nulls=199)])
        array([0.01, 0.6 ])
    """
    if not scores:
        raise InvalidInput("scores is empty.", hint="Give the score of each canary.")
    fewest = min(score.n_nulls for score in scores)
    needed = nulls_needed(alpha, tests=len(scores))
    if fewest < needed:
        raise NotEnoughEvidence(
            f"nulls={fewest} cannot show any of {len(scores)} canaries at alpha={alpha:g}; it "
            f"takes at least {needed}.",
            hint="Raise nulls, or test fewer canaries.",
        )
    return holm([score.p_value for score in scores])


def _paired_t(per_image: Floats) -> float | None:
    """One-tailed: is the mean above zero?"""
    spread = float(per_image.std(ddof=1))
    if spread <= 1e-12 * float(np.abs(per_image).max()):
        return None
    t = float(per_image.mean()) / (spread / math.sqrt(per_image.size))
    return float(stats.t.sf(t, per_image.size - 1))
