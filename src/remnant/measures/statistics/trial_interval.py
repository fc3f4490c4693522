r"""The interval of an attack success that is averaged over trials.

Two errors are to be carried: another set of canaries, and another model. The *canary level* is a
bootstrap: within each trial both sides are resampled, with the same draw at all lags. The *trial
level* is not: a bootstrap of three trials shrinks their variance by (T-1)/T, ignores that it is
estimated, and counts the canary error, which already shows between the trials, twice. Trials are
independent and alike, so the variance of their mean is S²/T with T-1 degrees of freedom, and this
already holds both errors.

Construction, at each lag:

1. Per trial an estimate ``b`` without the bias of an in-sample threshold (``resampled_tpr``), the
   plain rate for AUC and accuracy. Their mean is the centre. Precision p/(p+f) bends, so canary
   error alone would lower its mean: the trials are drawn together until their variance is what the
   models' own share of it is, S² - W, and then mapped. Its trial-level variance is a jackknife's.
2. A variance v makes an effective number of canaries c(1-c)/v (Korn and Graubard 1998), and
   Clopper-Pearson with this size makes the interval: right in the middle, honest at 0 and 1 where v
   vanishes. Trial level: v = (t/z)² S²/T, z being the normal quantile and t Student's at the low
   end; at the high end, where too low a bound would be a false "safe", the quantile that also holds
   where trials differ in a skewed way (``skewed_trials``). Canary level: v = W/T, W the resamples'
   variance, with half an unobserved canary at each end. The wider of the two counts. One trial has
   a canary level only.
3. A random threshold lowers a concave ROC curve on average. The resamples show by how much; the end
   that this threatens is moved by it.
4. One trial whose threshold has few unseen scores beyond it: the low end is no higher than an
   exact bound (``StrictRate``), because a bootstrap does not show how far such a threshold is off.
5. One trial whose threshold lies in a block of tied unseen scores with few above it: the low end is
   no higher than an exact bound (``TiedRate``), because resamples of scores that are all alike do
   not show that rarer, higher ones exist. With ties at the threshold the high end of any number of
   trials is that of a threshold one unseen score lower.
6. Trials that share their canaries on a side show nothing of other canaries. The resamples then
   have the same draw in all trials. With J the variance of their mean, and W as above, what the
   canaries contribute to all trials alike is J - (W - J)/(T - 1), two crossed random effects (see
   ``crossed_interval``); it is added to v with Student's quantile of the number of canaries.
7. The interval is widened to hold the plain ``value``, and cut to [0, 1].

Canaries that come in clusters are resampled by cluster, and the canary level then has Student's
quantile with one degree of freedom less than there are clusters on the smaller side.

``benchmarks/coverage.py`` and ``benchmarks/false_claims.py`` simulate its coverage. It is too low
where models differ strongly and nearly all leak totally, since a few trials seldom show the weak
one; for models of two kinds; and, at the low end, for models that differ with a skew to the left
and for the mean precision of very many trials of few canaries near chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.measures.statistics.checks import Success
from remnant.measures.statistics.design import (
    Resampling,
    copied_trainings,
    noticed_clusters,
    paired_places,
)
from remnant.measures.statistics.evidence_faults import tied_pairs
from remnant.measures.statistics.intervals import beta_ends, student_inflation
from remnant.measures.statistics.resampling import (
    GroupPair,
    Rate,
    clusters_of,
    resampled_accuracy,
    resampled_auc,
    resampled_tpr,
    with_unobserved,
)
from remnant.measures.statistics.skewed_trials import Skew, upper_quantile
from remnant.measures.statistics.success import trial_success

Floats = NDArray[np.float64]
# Scores held at once by a block of draws: bounds the memory to a few hundred megabytes.
BLOCK = 2_000_000
_FEW = 3.0  # unseen scores beyond the threshold, below which its place is too uncertain
_FEWEST = 2.5  # below which a lower bound by bootstrap is too high in up to 9 % of audits, not 5 %


@dataclass(frozen=True, slots=True, eq=False)
class TrialEvidence:
    """What the interval is made of; every array has the shape ``(lags, trials)``.

    Attributes:
        value: Each trial's attack success by its definition.
        estimate: The same without the bias of an in-sample threshold; a TPR where success is
            precision.
        drawn_mean, drawn_variance: Of ``estimate`` over the canary resamples.
        joint_variance: Of their mean over trials, where trials share canaries, ``(lags,)``.
    """

    value: Floats
    estimate: Floats
    drawn_mean: Floats
    drawn_variance: Floats
    joint_variance: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StrictRate:
    """Seen scores above an unseen one of a known rank, for a lower bound without a bootstrap.

    The share f of all unseen scores above the r-th largest of n has the law Beta(r, n + 1 - r), and
    the seen scores above it are binomial. A concave ROC curve, such as that of an attack without
    knowledge, has at ``fpr`` at least ``fpr / f`` of the TPR that it has at a larger f. Two bounds,
    each with half of the error, make one.

    Attributes:
        shares: Share of the seen scores above the threshold, shape ``(lags,)``.
        seen, unseen: Scores, or clusters of them.
        rank: r, at least 1.
    """

    shares: Floats
    seen: int
    unseen: int
    rank: float

    def lower(self, fpr: float, tail: float) -> Floats:
        """The lower bound of the TPR at ``fpr``, which errs with ``tail`` at most."""
        above = float(stats.beta.isf(tail / 2.0, self.rank, self.unseen + 1.0 - self.rank))
        hits = self.shares * self.seen
        least = np.zeros_like(hits)
        some = hits > 0.0
        least[some] = stats.beta.ppf(tail / 2.0, hits[some], self.seen - hits[some] + 1.0)
        return np.asarray(least * min(1.0, fpr / above))


def strict_rate(
    seen: Floats, unseen: Floats, fpr: float, units: tuple[int, int]
) -> StrictRate | None:
    """Return the exact part of a low end; None where it is not needed.

    It is needed for one trial with fewer than 2.5 unseen scores, or clusters, expected beyond the
    threshold: fewer than 49 at an FPR of 5 %.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.
        fpr: The false-positive rate.
        units: How many canaries, or clusters of them, there are on each side.
    """
    if seen.shape[1] > 1 or fpr * (units[1] + 1.0) >= _FEWEST:
        return None
    n_unseen = unseen.shape[2]
    rank = min(n_unseen, max(1, int(np.floor(fpr * (n_unseen + 1.0) + 1e-9))))
    thresholds = np.sort(unseen[:, 0], axis=1)[:, n_unseen - rank, None]
    shares = (seen[:, 0] > thresholds).mean(axis=1)
    scale = (units[1] + 1.0) / (n_unseen + 1.0)  # a cluster counts once
    return StrictRate(shares, units[0], units[1], max(1.0, rank * scale))


@dataclass(frozen=True, slots=True, eq=False)
class TiedRate:
    """Scores above a block of tied unseen ones, and above it or in it, for a lower bound.

    Scores of a block are flagged at random, so the TPR lies on a line between the two ends of the
    block. From either end a concave ROC curve is bounded from below as in ``StrictRate``, and the
    higher of the two bounds counts. Each of the four counts has a quarter of the error.

    Attributes:
        tied: Lags at which the threshold lies in such a block, shape ``(lags,)``.
        seen_shares, unseen_shares: Shares of the scores above the block, and above it or in it,
            shape ``(2, lags)``.
        seen, unseen: Scores, or clusters of them.
    """

    tied: NDArray[np.bool_]
    seen_shares: Floats
    unseen_shares: Floats
    seen: int
    unseen: int

    def lower(self, fpr: float, tail: float) -> Floats:
        """The lower bound of the TPR at ``fpr``; errs with ``tail`` at most. 1 without ties."""
        hits, alarms = self.seen_shares * self.seen, self.unseen_shares * self.unseen
        least, most = np.zeros_like(hits), np.ones_like(alarms)
        some, not_all = hits > 0.0, alarms < self.unseen
        least[some] = stats.beta.ppf(tail / 4.0, hits[some], self.seen - hits[some] + 1.0)
        rest = self.unseen - alarms[not_all]
        most[not_all] = stats.beta.isf(tail / 4.0, alarms[not_all] + 1.0, rest)
        return np.where(self.tied, (least * np.minimum(1.0, fpr / most)).max(axis=0), 1.0)


def tied_rate(seen: Floats, unseen: Floats, fpr: float, units: tuple[int, int]) -> TiedRate | None:
    """Return the exact part of a low end; None where no threshold ties with few scores above it.

    It is needed for one trial with fewer than three unseen scores, or clusters, above the block.

    Args:
        seen, unseen, fpr, units: As in ``strict_rate``.
    """
    if seen.shape[1] > 1:
        return None
    at = _threshold(unseen[:, 0], fpr)[:, None]
    above, upto = ((unseen[:, 0] > at).mean(axis=1), (unseen[:, 0] >= at).mean(axis=1))
    in_block = (upto - above) * unseen.shape[2] > 1.5
    tied = in_block & (above * units[1] < _FEW)
    if not tied.any():
        return None
    hits = (seen[:, 0] > at).mean(axis=1), (seen[:, 0] >= at).mean(axis=1)
    return TiedRate(tied, np.stack(hits), np.stack([above, upto]), *units)


def _threshold(unseen: Floats, fpr: float) -> Floats:
    """The unseen score of the expected rank ``fpr * (n + 1)``, rounded up, along the last axis."""
    n = unseen.shape[-1]
    rank = min(n, max(1, int(np.ceil(fpr * (n + 1.0) - 1e-9))))
    return np.asarray(np.sort(unseen, axis=-1)[..., n - rank])


def gather(
    *,
    seen: Floats,
    unseen: Floats,
    success: Success,
    fpr: float,
    draws: int,
    rng: np.random.Generator,
    groups: GroupPair = (None, None),
    shared: tuple[bool, bool] = (False, False),
) -> TrialEvidence:
    """Measure every trial at every lag, and again on resampled canaries.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.
        success, fpr: The rate to measure.
        draws: Canary resamples of each trial.
        rng: Where the resamples come from.
        groups: The clusters of the seen and of the unseen canaries, numbered from 0, or None.
        shared: Whether the trials share the canaries of each side; their draws are then the same.
    """
    lags, trials, n_seen = seen.shape
    n_unseen = unseen.shape[2]
    rate = _rate(success, fpr)
    value, estimate = np.empty((2, lags, trials))
    drawn = np.empty((lags, trials, draws))
    block = max(1, BLOCK // (n_seen + n_unseen))
    once = (np.ones((n_seen, 1), np.int32), np.ones((n_unseen, 1), np.int32))
    paired = all(shared) and paired_places(seen, unseen)
    resample = Resampling(rng, groups=groups, shared=shared, paired=paired)
    for trial in range(trials):
        resample.next_trial(trial)
        for start in range(0, draws, block):
            size = min(block, draws - start)
            seen_n, unseen_n = (
                resample(side, n=n, draws=size) for side, n in enumerate((n_seen, n_unseen))
            )
            for lag in range(lags):
                pool = with_unobserved(seen[lag, trial]), with_unobserved(unseen[lag, trial])
                if success in ("tpr", "precision"):
                    # An unseen score above all would turn a few resamples' TPR into 0.
                    ends = unseen[lag, trial].min(), unseen[lag, trial].max()
                    pool = pool[0], np.clip(pool[1], *ends)
                drawn[lag, trial, start : start + size] = rate(*pool, seen_n, unseen_n)
        for lag in range(lags):
            sides = seen[lag, trial], unseen[lag, trial]
            value[lag, trial] = trial_success(*sides, success=success, fpr=fpr)
            estimate[lag, trial] = rate(*sides, *once)[0]
    joint = drawn.mean(axis=1).var(axis=1, ddof=1) if any(shared) else None
    return TrialEvidence(value, estimate, drawn.mean(axis=2), drawn.var(axis=2, ddof=1), joint)


def cluster_inflation(clusters: int, confidence: float) -> float:
    """What the variance of resampled clusters is multiplied by; there may be few of them."""
    if clusters < 2:
        return float("inf")  # one cluster shows nothing of how clusters differ
    return student_inflation(clusters, confidence) ** 2 * clusters / (clusters - 1.0)


def shared_variance(drawn: Floats, joint: Floats | None) -> Floats:
    """What canaries that trials share contribute to the variance of the mean over trials.

    Args:
        drawn: Variance of each trial over resamples, ``(lags, trials)``.
        joint: Variance of the trials' mean over resamples that are the same in all trials.
    """
    lags, trials = drawn.shape
    if joint is None or trials < 2:
        return np.zeros(lags)
    own = (drawn.mean(axis=1) - joint) / (trials - 1.0)
    return np.asarray(np.maximum(joint - np.maximum(own, 0.0), 0.0))


def skew_of(success: Success) -> Skew:
    """The law that the upper bound allows trials to have (see ``skewed_trials``)."""
    return "heavy" if success == "tpr" else "moderate"


def _rate(success: Success, fpr: float) -> Rate:
    if success == "auc":
        return resampled_auc
    return resampled_accuracy if success == "accuracy" else resampled_tpr(fpr)


def trial_interval(
    evidence: TrialEvidence,
    *,
    success: Success,
    fpr: float,
    confidence: float,
    units: tuple[int, int],
    clustered: bool,
    skewed_low: bool = False,
) -> tuple[Floats, Floats]:
    """The ends of the interval at each lag (see the module's text).

    Args:
        evidence: What was measured.
        success, fpr: The rate that was measured.
        confidence: Of the interval.
        units: How many canaries, or clusters of them, were resampled on each side.
        clustered: Whether they are clusters.
        skewed_low: Whether the low end has to hold for skewed trials too.
    """
    n_seen = units[0]
    trials = evidence.value.shape[1]
    value = evidence.value.mean(axis=1)
    mean = evidence.estimate.mean(axis=1)
    canary_variance = evidence.drawn_variance.mean(axis=1)
    bends = success == "precision"

    def mapped(rate: Floats) -> Floats:
        return np.asarray(rate / (rate + fpr)) if bends else rate

    level = evidence.drawn_mean.mean(axis=1)
    resampled = canary_variance
    if clustered:
        scale = cluster_inflation(min(units), confidence)
        resampled = np.maximum(resampled, np.finfo(np.float64).tiny) * scale
    if evidence.joint_variance is not None:
        scale = resampled / np.maximum(canary_variance, np.finfo(np.float64).tiny)
        resampled = np.maximum(resampled, trials * evidence.joint_variance * scale)
    canary_size = trials * _ratio(level * (1.0 - level), resampled, otherwise=n_seen)
    canary_size = np.maximum(canary_size, 1e-3)
    low, high = beta_ends(mean * canary_size, canary_size, confidence)
    centre = _centre(evidence.estimate, canary_variance, fpr) if bends else mean
    bend = centre - mapped(mean)
    low, high = mapped(low) + bend, mapped(high) + bend

    if trials > 1:
        top = 1.0 / (1.0 + fpr) if bends else 1.0
        parts = (
            _pseudo_values(evidence.estimate, canary_variance, centre, fpr)
            if bends
            else evidence.estimate
        )
        variance = parts.var(axis=1, ddof=1) / (trials * top**2)
        share = np.clip(centre / top, 0.0, 1.0)
        # Trials that agree to the last digits show rounding, not variance.
        variance = np.where(variance > 1e-16, variance, 0.0)
        common = (
            shared_variance(evidence.drawn_variance, evidence.joint_variance)
            * student_inflation(max(min(units), 2), confidence) ** 2
        )
        if bends:
            common = common * (fpr / np.maximum(mean + fpr, fpr) ** 2) ** 2
        common = common / top**2
        tail = (1.0 - confidence) / 2.0
        skewed = upper_quantile(trials, tail, skew_of(success))
        above = skewed / float(stats.norm.isf(tail))
        below = student_inflation(trials, confidence)
        if skewed_low:
            below = upper_quantile(trials, tail, "moderate") / float(stats.norm.isf(tail))

        def end(inflation: float, which: int) -> Floats:
            inflated = variance * inflation**2 + common
            size = np.clip(_ratio(share * (1.0 - share), inflated, otherwise=np.inf), 1e-3, 1e9)
            return top * beta_ends(share * size, size, confidence)[which]

        low, high = np.minimum(low, end(below, 0)), np.maximum(high, end(above, 1))

    if success in ("tpr", "precision"):
        unsmoothed = (level * (n_seen + 1.0) - 0.5) / n_seen
        shift = mapped(np.clip(2.0 * mean - unsmoothed, 0.0, 1.0)) - mapped(mean)
        low, high = low + np.minimum(shift, 0.0), high + np.maximum(shift, 0.0)
    return np.clip(np.minimum(low, value), 0.0, 1.0), np.clip(np.maximum(high, value), 0.0, 1.0)


def _centre(tpr: Floats, canary_variance: Floats, fpr: float) -> Floats:
    """Mean precision of trials drawn together until only the models' own variance is left."""
    mean = tpr.mean(axis=1, keepdims=True)
    if tpr.shape[1] == 1:
        return np.asarray((mean / (mean + fpr))[:, 0])
    spread = tpr.var(axis=1, ddof=1)
    own = np.maximum(spread - canary_variance, 0.0)
    kept = np.sqrt(_ratio(own, spread, otherwise=0.0))[:, None]
    drawn_in = mean + kept * (tpr - mean)
    return np.asarray((drawn_in / (drawn_in + fpr)).mean(axis=1))


def _pseudo_values(tpr: Floats, canary_variance: Floats, centre: Floats, fpr: float) -> Floats:
    """The jackknife's pseudo-values of ``_centre``: one for each trial."""
    trials = tpr.shape[1]
    without = [
        _centre(np.delete(tpr, trial, axis=1), canary_variance, fpr) for trial in range(trials)
    ]
    return np.asarray(trials * centre[:, None] - (trials - 1) * np.stack(without, axis=1))


def _ratio(top: Floats, bottom: Floats, *, otherwise: float) -> Floats:
    """``top / bottom``, and ``otherwise`` where the bottom is zero."""
    result = np.full(top.shape, otherwise, dtype=np.float64)
    return np.asarray(np.divide(top, bottom, out=result, where=bottom > 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Each trial's success, and all it takes to make intervals of any confidence.

    Attributes:
        evidence: At the false-positive rate asked for.
        lenient: At a threshold one unseen score lower, where there are few beyond it or unseen
            scores tie with it; else None.
        uncertain: Lags at which the high end is no lower than that of ``lenient``.
        strict: What the low end of one trial may not pass, where there are few; else None.
        tied: What it may not pass where unseen scores tie at the threshold; else None.
        success, fpr: The rate that was measured.
        units: How many canaries, or clusters of them, each trial has on either side.
        clustered: Whether they are clusters.
        repeated: Whether two trials are copies of each other: they are one training.
        tied_pairs: How far the scores of any trial are alike, the most at each lag (see
            ``tied_pairs``); shape ``(lags, 3)``.
        shared: Whether the trials share the canaries of each side.
        doubt: Why canaries seem to come in clusters that were not given; or empty.
    """

    evidence: TrialEvidence
    lenient: TrialEvidence | None
    uncertain: NDArray[np.bool_]
    strict: StrictRate | None
    tied: TiedRate | None
    success: Success
    fpr: float
    units: tuple[int, int]
    clustered: bool
    repeated: bool
    tied_pairs: Floats
    shared: tuple[bool, bool] = (False, False)
    doubt: str = ""

    def ends(self, confidence: float, *, skewed_low: bool = False) -> tuple[Floats, Floats]:
        """The low and high end at each lag.

        Args:
            confidence: Of the interval.
            skewed_low: Whether the low end has to hold for skewed trials too.
        """
        made: dict[str, Any] = {
            "success": self.success,
            "fpr": self.fpr,
            "confidence": confidence,
            "units": self.units,
            "clustered": self.clustered,
            "skewed_low": skewed_low,
        }
        low, high = trial_interval(self.evidence, **made)
        if self.lenient is not None:
            widened = np.maximum(high, trial_interval(self.lenient, **made)[1])
            high = np.where(self.uncertain, widened, high)
        for bound in (self.strict, self.tied):
            if bound is None:
                continue
            exact = bound.lower(self.fpr, (1.0 - confidence) / 2.0)
            low = np.minimum(
                low, exact / (exact + self.fpr) if self.success == "precision" else exact
            )
        return low, high

    def upper(self, confidence: float) -> Floats:
        """The one-sided bound at each lag; ``confidence`` above one half."""
        return self.ends(2.0 * confidence - 1.0)[1]

    def lower(self, confidence: float, *, skewed: bool = False) -> Floats:
        """The one-sided lower bound at each lag; ``confidence`` above one half.

        Args:
            confidence: Of the bound.
            skewed: Whether it has to hold for skewed trials too.
        """
        return self.ends(2.0 * confidence - 1.0, skewed_low=skewed)[0]


def measure(
    *,
    seen: Floats,
    unseen: Floats,
    success: Success,
    fpr: float,
    draws: int,
    rng: np.random.Generator,
    groups: GroupPair = (None, None),
    shared: tuple[bool, bool] = (False, False),
) -> Measured:
    """Gather the evidence of scores of the shape ``(lags, trials, canaries)``.

    Where fewer than three unseen scores are expected beyond the threshold, its place is so
    uncertain that step 3 corrects too little, and the leak would be understated: the high end is
    then that of a threshold one unseen score lower, and the low end of one trial is bounded by
    ``strict_rate``. Likewise where unseen scores tie at the threshold, with ``tied_rate``.
    """
    made: dict[str, Any] = {"seen": seen, "unseen": unseen, "groups": groups}
    made |= {"success": success, "draws": draws, "shared": shared}
    evidence = gather(**made, fpr=fpr, rng=rng)
    rank = unseen.shape[2] + 1
    at_fpr = success in ("tpr", "precision")
    uncertain = at_fpr & ((fpr * rank < _FEW) | _ties(unseen, fpr))
    lenient = None
    if uncertain.any():
        lenient = gather(**made, fpr=min(fpr + 1 / rank, 1.0), rng=rng)
    sides = zip((seen, unseen), groups, strict=True)
    units = [clusters_of(group, side.shape[2]) for side, group in sides]
    clustered = any(few < side.shape[2] for few, side in zip(units, (seen, unseen), strict=True))
    both = units[0], units[1]
    strict = strict_rate(seen, unseen, float(fpr), both) if at_fpr else None
    tied = tied_rate(seen, unseen, float(fpr), both) if at_fpr else None
    return Measured(
        evidence=evidence,
        lenient=lenient,
        uncertain=uncertain,
        strict=strict,
        tied=tied,
        success=success,
        fpr=float(fpr),
        units=both,
        clustered=clustered,
        repeated=copied_trainings(seen, unseen),
        tied_pairs=tied_pairs(seen, unseen).max(axis=1),
        shared=shared,
        doubt="" if clustered else noticed_clusters(seen, unseen, shared),
    )


def _ties(unseen: Floats, fpr: float) -> NDArray[np.bool_]:
    """Whether unseen scores tie at the threshold of any trial, at each lag."""
    same = unseen == _threshold(unseen, fpr)[..., None]
    return np.asarray((same.sum(axis=-1) > 1).any(axis=-1))


def describe(
    trials: int, draws: int, *, clustered: bool = False, shared: tuple[bool, bool] = (False, False)
) -> str:
    """The construction, in the words that stand in a result's ``method``."""
    what = "cluster" if clustered else "canary"
    canaries = f"{what} bootstrap of both sides ({draws} draws)"
    ends = "Clopper-Pearson ends at the effective size"
    if trials == 1:
        return f"{canaries}, {ends}; one trial carries no between-model error"
    crossed = ", crossed with the canaries that trials share" * any(shared)
    return f"{over_trials(trials)}{crossed}, no narrower than the {canaries}; {ends}"


def over_trials(trials: int) -> str:
    """How the spread between trials makes an interval, in words."""
    robust = ", with a quantile at the high end that holds for skewed trials" * (trials > 2)
    return f"Student t over {trials} trials{robust}"
