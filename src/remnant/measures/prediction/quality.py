"""How well a risk that is known early predicts which samples will be memorised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.prediction.shadow_models import read_booleans
from remnant.measures.statistics.checks import (
    check_draws,
    check_rng,
    check_share,
    read_floats,
    unseen_needed,
)
from remnant.measures.statistics.intervals import beta_ends
from remnant.measures.statistics.roc import Roc, auc, roc, tpr_at_fpr

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PredictionRate:
    """One rate of a prediction.

    Attributes:
        value: On the samples given.
        low, high: The interval, over samples; it always holds ``value``.
        confidence: Of the interval.
        method: Its construction, in words.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, eq=False)
class PredictionQuality:
    """A predictor compared with the truth.

    Attributes:
        auc: The chance that a memorised sample has the higher risk; ties count half.
        fpr_at_tpr: The FPR at the highest threshold that flags ``tpr`` of the memorised samples;
            where risks tie at that threshold, in expectation over the order of those that tie.
        precision_at_k: Share of memorised samples among the ``k`` of highest risk; where risks tie
            at the k-th place, in expectation over which of them are taken.
        default_tpr, default_fpr: Shares of memorised and of other samples with a risk at or above
            ``threshold``; None where no threshold was given.
        curve: All operating points.
        tpr: That of ``fpr_at_tpr``.
        k: That of ``precision_at_k``.
        threshold: The default one; None where there is none.
        n_memorised, n_others: Samples.
        base_rate: Share of memorised samples: the precision of a predictor that knows nothing.
    """

    auc: PredictionRate
    fpr_at_tpr: PredictionRate
    precision_at_k: PredictionRate
    default_tpr: PredictionRate | None
    default_fpr: PredictionRate | None
    curve: Roc
    tpr: float
    k: int
    threshold: float | None
    n_memorised: int
    n_others: int
    base_rate: float


def prediction_quality(
    *,
    risk: ArrayLike,
    memorised: ArrayLike,
    rng: np.random.Generator,
    threshold: float | None = None,
    tpr: float = 0.75,
    k: int | None = None,
    confidence: float = 0.95,
    draws: int = 400,
) -> PredictionQuality:
    """Compare a risk with which samples were memorised in the end.

    All intervals are over samples, taken to be independent, with their truth as given: they know
    nothing of another training run, nor of shadow models' luck.

    Samples of equal risk are split at random, in expectation, in values and intervals alike. So the
    FPR at a TPR is the ROC curve's with a straight line across each group of ties, and no rate
    depends on whether a whole group happens to be flagged.

    Args:
        risk: Shape ``(n,)``, higher = more likely memorised: PSMI's ``risk``, a loss.
        memorised: Shape ``(n,)``, booleans: by LiRA, by counterfactual memorization.
        rng: Draws the resamples.
        threshold: The predictor's own, where it has one: 0 for the risk of PSMI.
        tpr: At which to read the FPR; a miss is worse than a false alarm, so it is high.
        k: How many samples would be protected; by default as many as were memorised.
        confidence: Of each interval.
        draws: Resamples behind the AUC's, the FPR's and the precision's interval.

    Guarantees:
        * A strictly increasing map of all risks (and the threshold) changes nothing but thresholds.
        * The order of samples does not change the values.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: No memorised sample, or no other; fewer memorised ones than
            1/(1 - tpr).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> memorised = np.arange(1000) < 100
        >>> quality = prediction_quality(risk=rng.normal(size=1000) + 2.0 * memorised,
        ...                            memorised=memorised, threshold=1.0, rng=rng)
        >>> round(quality.auc.value, 2), round(quality.fpr_at_tpr.value, 2), quality.k
        (0.94, 0.07, 100)
        >>> round(quality.default_tpr.value, 2), round(quality.precision_at_k.value, 2)
        (0.85, 0.64)
    """
    faults: list[str] = []
    for name, share in (("tpr", tpr), ("confidence", confidence)):
        check_share(name, share, faults)
    check_rng(rng, faults)
    check_draws(draws, faults)
    scores = read_floats("risk", risk, 1, faults)
    truth = read_booleans("memorised", memorised, 1, faults)
    if scores is not None and truth is not None and truth.size != scores.size:
        faults.append(f"memorised has {truth.size} entries for {scores.size} of risk")
    if threshold is not None and not _is_number(threshold):
        faults.append(f"threshold={threshold!r} is not a finite number")
    if k is not None and (
        isinstance(k, bool)
        or not isinstance(k, (int, np.integer))
        or not 1 <= k <= (k if scores is None else scores.size)
    ):
        faults.append(f"k={k!r} is not a whole number between 1 and the number of samples")
    require(faults)
    if scores is None or truth is None:
        raise InvalidInput("risk and memorised must be arrays.")
    hits, others = scores[truth], scores[~truth]
    needed = unseen_needed(1.0 - tpr)
    if hits.size < needed or others.size == 0:
        raise NotEnoughEvidence(
            f"{hits.size} memorised and {others.size} other samples; it takes {needed} and 1.",
            hint="Let fewer samples count as memorised."
            if others.size == 0
            else "Lower the limit from which a sample counts as memorised, or take more samples.",
        )
    area = auc(hits, others, rng=rng, confidence=confidence, draws=draws)
    # Exchanging the sides and their order makes of "FPR at a TPR" the "TPR at an FPR" of roc.py.
    spared = tpr_at_fpr(-others, -hits, fpr=1.0 - tpr, rng=rng, confidence=confidence, draws=draws)
    passed = _fpr_at_tpr(hits, others, float(tpr))
    first = hits.size if k is None else int(k)
    return PredictionQuality(
        auc=PredictionRate(area.value, area.low, area.high, area.confidence, area.method),
        fpr_at_tpr=PredictionRate(
            passed,
            min(1.0 - spared.high, passed),
            max(1.0 - spared.low, passed),
            confidence,
            spared.method,
        ),
        precision_at_k=_precision_at(scores, truth, first, float(confidence), draws, rng),
        default_tpr=None if threshold is None else _share(hits >= threshold, float(confidence)),
        default_fpr=None if threshold is None else _share(others >= threshold, float(confidence)),
        curve=roc(hits, others),
        tpr=float(tpr),
        k=first,
        threshold=None if threshold is None else float(threshold),
        n_memorised=hits.size,
        n_others=others.size,
        base_rate=hits.size / scores.size,
    )


def miss_rate(
    *, listed: NDArray[np.bool_], memorised: NDArray[np.bool_], confidence: float = 0.95
) -> PredictionRate:
    """The share of memorised samples that a list leaves out, with Clopper and Pearson's interval.

    Args:
        listed, memorised: Whether each sample is, shape ``(n,)``.
        confidence: Of the interval, over samples.

    Raises:
        NotEnoughEvidence: No sample was memorised.

    Example:
        >>> memorised, listed = np.array([True] * 4 + [False]), np.array([True] * 3 + [False] * 2)
        >>> miss_rate(listed=listed, memorised=memorised).value
        0.25
    """
    if not memorised.any():
        raise NotEnoughEvidence("no sample was memorised, so that a list can miss none.")
    return _share(~listed[memorised], confidence)


def _fpr_at_tpr(hits: Floats, others: Floats, tpr: float) -> float:
    """The FPR at the (k+1)-th smallest risk of memorised samples, k = floor((1 - tpr) hits).

    Of b memorised samples that tie there, the (k+1)-th is the j-th smallest; any order of the tie
    is as likely, so a tied sample of the others lies below it with probability j / (b + 1).
    """
    k = math.floor((1.0 - tpr) * hits.size + 1e-9)
    threshold = np.partition(hits, k)[k]
    place = k + 1 - np.count_nonzero(hits < threshold)
    below = place / (np.count_nonzero(hits == threshold) + 1)
    above = np.count_nonzero(others > threshold)
    return float(above + np.count_nonzero(others == threshold) * (1.0 - below)) / others.size


def _share(flagged: NDArray[np.bool_], confidence: float) -> PredictionRate:
    hits, n = np.array([float(flagged.sum())]), np.array([float(flagged.size)])
    low, high = beta_ends(hits, n, confidence)
    return PredictionRate(
        float(flagged.mean()), float(low[0]), float(high[0]), confidence, "Clopper-Pearson"
    )


def _precision_at(
    risk: Floats,
    truth: NDArray[np.bool_],
    k: int,
    confidence: float,
    draws: int,
    rng: np.random.Generator,
) -> PredictionRate:
    """Resamples show how much the place of the k-th sample adds to the error of k coins.

    The k highest of n resampled ranks are order statistics, drawn as sums of exponentials. Their
    precision's variance makes an effective number of samples, at most k, for Clopper and Pearson.
    """
    n = risk.size
    order = np.argsort(-risk, kind="stable")
    _, level, count = np.unique(-risk[order], return_inverse=True, return_counts=True)
    # What a sample counts in expectation, where those level with it come in any order.
    expected = (np.bincount(level, weights=truth[order]) / count)[level]
    value = float(expected[:k].mean())
    drawn = np.empty(draws)
    for draw in range(draws):
        steps = np.cumsum(rng.standard_exponential(k))
        whole = steps[-1] + rng.standard_gamma(n + 1 - k)
        drawn[draw] = expected[np.minimum((n * (steps / whole)).astype(np.int64), n - 1)].mean()
    spread = float(drawn.var(ddof=1))
    middle = float(drawn.mean())
    size = min(float(k), middle * (1.0 - middle) / spread) if spread > 0.0 else float(k)
    low, high = beta_ends(np.array([value * size]), np.array([size]), confidence)
    return PredictionRate(
        value,
        min(float(low[0]), value),
        max(float(high[0]), value),
        confidence,
        f"bootstrap over samples ({draws} draws), Clopper-Pearson ends at the effective size",
    )


def _is_number(given: object) -> bool:
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        return False
    return math.isfinite(float(given))
