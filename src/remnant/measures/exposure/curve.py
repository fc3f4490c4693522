r"""Exposure curves: mean exposure of canaries against the steps since they were last seen.

The interval covers three errors: another model, other canaries, other references. Trials are
independent and alike, so the spread of their means holds all three. Student's t says how far
S²/T is known at the low end; at the high end, where too low a bound would be a false "safe", the
quantile that also holds for skewed trials does (``skewed_trials``). The interval is never narrower
than the *canary level*: within each trial canaries and references are both resampled, with the same
draw at all lags, and their variance W gives W/T. With one trial there is only this level. Among the
resampled is half an unobserved canary (and reference) at each end, so that canaries which all rank
first do not claim to be without error.

A mean of bits lies between 0 and the ceiling. As a share c of the ceiling, a variance v makes an
effective number of canaries c(1-c)/v, and Clopper-Pearson with this size the interval (see
``trial_interval``, which does so for rates): right in the middle, honest at both ends.
Canaries or references that trials share are resampled alike in all of them, and what they
contribute to all trials is added to the trials' variance (see ``trial_interval``).
``benchmarks/exposure_curve.py`` simulates its coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from remnant.errors import InvalidInput, require
from remnant.measures.exposure.by_rank import FOUND
from remnant.measures.forgetting.attackers import OtherBounds, hold_for_all
from remnant.measures.forgetting.between_lags import last_crossing
from remnant.measures.forgetting.control import Control, positive_control
from remnant.measures.forgetting.safe_after import SafeAfter, check_claim, safe_after
from remnant.measures.forgetting.verdict import REVERSED, LastLag, Verdict, judge
from remnant.measures.statistics.checks import check_draws, check_rng, check_share, read_floats
from remnant.measures.statistics.counting import at_or_under
from remnant.measures.statistics.design import (
    COPIED,
    Resampling,
    copied_trainings,
    noticed_clusters,
    read_shared,
)
from remnant.measures.statistics.intervals import beta_ends, student_inflation
from remnant.measures.statistics.resampling import GroupPair, clusters_of, read_group_pair
from remnant.measures.statistics.skewed_trials import upper_quantile
from remnant.measures.statistics.trial_interval import (
    cluster_inflation,
    over_trials,
    shared_variance,
)

Floats = NDArray[np.float64]
SharedLosses = Literal["canaries", "references", "both", "neither"]
SUCCESS = "mean exposure in bits"
BLOCK = 2_000_000  # numbers held at once by a block of draws


def null_exposure(references: int) -> float:
    """The mean exposure among so many references of a canary that nobody planted, in bits.

    Its rank is then uniform: the mean of log2((n+1)/(k+1)) over k = 0..n. It rises to 1/ln 2 = 1.44
    with the number of references.

    Example:
        >>> round(null_exposure(1), 3), round(null_exposure(1000), 3)
        (0.5, 1.436)
    """
    ranks = references + 1
    return float(math.log2(ranks) - special.gammaln(ranks + 1.0) / (ranks * math.log(2.0)))


def null_median(references: int) -> float:
    """The median exposure among so many references of a canary that nobody planted, in bits.

    It is that of the middle rank, and rises to 1 bit with the number of references.

    Example:
        >>> round(null_median(1000), 3)
        0.999
    """
    ranks = np.log2((references + 1.0) / np.arange(1.0, references + 2.0))
    return float(np.median(ranks))


@dataclass(frozen=True, slots=True, eq=False)
class ExposureEvidence:
    """What an interval of any confidence is made of; each array ``(lags, trials)``, in bits.

    Attributes:
        value: Each trial's mean exposure.
        generous: The same with ties counted for the canary.
        drawn_mean, drawn_variance: Of the same over resampled canaries and references.
        ceiling: The maximum that the references can show.
        joint_variance: Of the mean over trials, where these share canaries or references,
            ``(lags,)``.
        clusters: The clusters of the side with fewer; None where there are none.
        fewest: The canaries or references, or clusters of them, of the side with fewer.
    """

    value: Floats
    generous: Floats
    drawn_mean: Floats
    drawn_variance: Floats
    ceiling: float
    joint_variance: Floats | None = None
    clusters: int | None = None
    fewest: int = 2

    def ends(self, confidence: float, *, skewed_low: bool = False) -> tuple[Floats, Floats]:
        """The low and high end at each lag (see the module's text).

        Args:
            confidence: Of the interval.
            skewed_low: Whether the low end has to hold for skewed trials too.
        """
        trials = self.value.shape[1]
        share = np.clip(self.value.mean(axis=1) / self.ceiling, 0.0, 1.0)
        level = self.drawn_mean.mean(axis=1) / self.ceiling
        drawn = self.drawn_variance.mean(axis=1) / trials
        if self.joint_variance is not None:
            drawn = np.maximum(drawn, self.joint_variance)
        if self.clusters is not None:
            drawn = drawn * cluster_inflation(self.clusters, confidence)
        within = drawn / self.ceiling**2
        size = _ratio(level * (1.0 - level), within)
        low, high = beta_ends(share * size, size, confidence)
        if trials > 1:
            between = self.value.var(axis=1, ddof=1) / (trials * self.ceiling**2)
            common = shared_variance(self.drawn_variance, self.joint_variance) / self.ceiling**2
            common = common * student_inflation(max(self.fewest, 2), confidence) ** 2
            # Trials that agree to the last digits show rounding, not variance.
            between = np.where(between > 1e-16, between, 0.0)
            tail = (1.0 - confidence) / 2.0
            above = upper_quantile(trials, tail, "heavy") / float(stats.norm.isf(tail))
            below = student_inflation(trials, confidence)
            if skewed_low:
                below = upper_quantile(trials, tail, "moderate") / float(stats.norm.isf(tail))

            def end(inflation: float, which: int) -> Floats:
                size = _ratio(share * (1.0 - share), between * inflation**2 + common)
                return beta_ends(share * size, size, confidence)[which]

            low, high = np.minimum(low, end(below, 0)), np.maximum(high, end(above, 1))
        return (
            np.minimum(low, share) * self.ceiling,
            np.maximum(high, share) * self.ceiling,
        )

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


@dataclass(frozen=True, slots=True, eq=False)
class ExposureCurve:
    """Mean exposure at each lag, over canaries and trials.

    Attributes:
        lags: Steps since the canaries were last seen, rising; negative before planting.
        value: Mean over trials of each trial's mean exposure, in bits, shape ``(lags,)``.
        low, high: The interval at each lag, for that lag alone; it always holds ``value``.
        median: Exposure of the median canary at each lag, over the canaries of all trials. By
            chance it is ``null_median``, a bit.
        per_trial: Shape ``(lags, trials)``.
        saturated: Share of canaries at each lag that no reference was at or under: they count with
            the ceiling, and their exposure may be any more than that.
        confidence: Of each interval.
        trials, n_canaries, n_references: Trials, and canaries and references of each.
        null: The mean exposure of canaries that nobody planted, among so many references.
        ceiling: ``log2(n_references + 1)``, the maximum that the references can show.
        method: The interval's construction, in words.
        draws: Resamples of each trial behind the interval.
        evidence: What intervals of another confidence are made of.
        control_at_zero: Whether lag 0 may be the positive control.
        repeated: Whether two trials are copies of each other: they are one training.
        clusters: Why canaries or references seem to come in clusters that were not given; or empty.
    """

    lags: Floats
    value: Floats
    low: Floats
    high: Floats
    median: Floats
    per_trial: Floats
    saturated: Floats
    confidence: float
    trials: int
    n_canaries: int
    n_references: int
    null: float
    ceiling: float
    method: str
    draws: int
    evidence: ExposureEvidence = field(repr=False)
    control_at_zero: bool = False
    repeated: bool = False
    clusters: str = ""

    def steps_to(self, bits: float) -> float | None:
        """The lag at which ``value`` comes down to ``bits`` for the last time.

        Between lags the point estimate is a straight line. Lags before planting do not count.

        Returns:
            The lag; the first one (at or after 0) where no value is above ``bits``; None where the
            last value still is: it was not reached within the curve.

        Raises:
            InvalidInput: ``bits`` is not a number above 0.
            NotEnoughEvidence: No lag is 0 or more.
        """
        numeric = isinstance(bits, (int, float, np.integer, np.floating))
        if isinstance(bits, bool) or not numeric or not 0.0 < bits < math.inf:
            raise InvalidInput(f"bits={bits!r} is not a number above 0.", hint="Pass bits, as 2.0.")
        return last_crossing(lags=self.lags, value=self.value, level=float(bits))

    def positive_control(self) -> Control:
        """Whether the canaries were exposed at some lag, as in ``ForgettingCurve``."""
        return positive_control(
            lags=self.lags,
            lower=partial(self.evidence.lower, skewed=True),
            chance=self.null,
            at_zero=self.control_at_zero,
            per_trial=self.per_trial,
            most=self.ceiling,
            number="{:.2f} bits",
        )

    def safe_after(
        self,
        limit: float,
        confidence: float = 0.95,
        *,
        control: bool = True,
        others: Mapping[str, ExposureCurve] | None = None,
    ) -> SafeAfter:
        """The smallest lag from which on mean exposure is shown to stay at or under ``limit``.

        Tested from the last lag backward, as in ``ForgettingCurve.safe_after``.

        Args:
            limit: In bits, above ``null`` and under ``ceiling``.
            confidence: That no lag which is claimed has a mean exposure above ``limit``; at least
                0.8.
            control: Whether the canaries have to have been exposed at some lag; without it, the
                bare bound.
            others: Curves of other attackers on the same models, by name: a lag is safe only where
                all of them are shown to stay at or under ``limit``, and none is below chance.

        Raises:
            InvalidInput: ``limit`` is at or under the null or not under the ceiling,
                ``confidence`` is not from 0.8 up to 1, all lags lie before planting, or a curve of
                ``others`` has other lags.
        """
        compared = self._compared(others)
        check_claim(
            self.lags,
            limit=limit,
            chance=self.null,
            success=SUCCESS,
            confidence=confidence,
            most=self.ceiling,
        )
        return safe_after(
            lags=self.lags,
            upper=self.evidence.upper,
            others={name: curve._as_other(float(confidence)) for name, curve in compared.items()},
            limit=limit,
            chance=self.null,
            success=SUCCESS,
            confidence=confidence,
            most=self.ceiling,
            control=self.positive_control() if control else None,
            doubts=self._doubts(limit, confidence),
            reversed_at=np.array([self.below_chance(at) for at in range(len(self.lags))]),
            void=self._void() if control else "",
            per_trial=self.per_trial,
        )

    def verdict(
        self,
        limit: float,
        *,
        attacker: str = "",
        others: Mapping[str, ExposureCurve] | None = None,
    ) -> Verdict:
        """Judge the mean exposure at the last lag of the curve, and at no other.

        As ``ForgettingCurve.verdict``. A canary that no reference was as cheap as counts with the
        ceiling, though it may have any more bits: where there are more of these than chance
        explains at 1 %, the mean is only a lower bound and there is no PASS. Nor is there one where
        canaries cost exactly as much as references, and the bound is above the limit if these ties
        count for them: costs that are capped, saturated or rounded look like this.

        Args:
            limit: In bits, above ``null`` and under ``ceiling``.
            attacker: Who calibrates the losses, for sentence and claim, such as "an attacker with
                14 reference models".
            others: Curves of other attackers on the same models, by name. PASS then needs the upper
                bound of each to be at or under ``limit``, with ties counted for the canary, and no
                more canaries beyond all references than chance explains; nor may one be below
                chance. FAIL is about this curve alone.

        Raises:
            InvalidInput: ``limit`` is at or under the null, not under the ceiling, the curve's
                confidence is under 0.8, it ends before planting, or a curve of ``others`` has other
                lags.
        """
        check_claim(
            self.lags,
            limit=limit,
            chance=self.null,
            success=SUCCESS,
            confidence=self.confidence,
            most=self.ceiling,
        )
        compared = self._compared(others)
        trainings = _counted(self.trials, "training", "trainings")
        last = LastLag(
            what="mean exposure" + f" to {attacker}" * bool(attacker),
            unit=" bits",
            digits=2,
            lag=float(self.lags[-1]),
            value=float(self.value[-1]),
            low=float(self.evidence.lower(self.confidence)[-1]),
            high=float(self.evidence.upper(self.confidence)[-1]),
            chance=self.null,
            confidence=self.confidence,
            trials=self.trials,
            canaries=self.n_canaries,
            sizes=f"{trainings}, {_counted(self.n_canaries, 'canary', 'canaries')} and "
            f"{_counted(self.n_references, 'reference', 'references')} each"
            + f", a canary beyond all of them counted with {self.ceiling:.1f} bits"
            * bool(self.saturated[-1] > 0.0),
            skew="heavy",
            per_trial=tuple(self.per_trial[-1].tolist()),
            reversed=self.below_chance(),
        )
        doubt = ""
        if self.more_saturated_than_chance():
            doubt = (
                f"{self.saturated[-1]:.1%} of the canaries are cheaper than all "
                f"{self.n_references} references and may have any exposure from "
                f"{self.ceiling:.1f} bits on: draw more references"
            )
        elif self.below_chance():
            doubt = REVERSED
        else:
            doubt = self._void() or self._ties(-1, limit, last.high)
        bounds = {name: curve._as_other(self.confidence) for name, curve in compared.items()}
        return hold_for_all(
            judge(last, limit, self.positive_control(), doubt=doubt),
            {name: float(other.upper[-1]) for name, other in bounds.items()},
            what="mean exposure",
            confidence=self.confidence,
            digits=2,
            doubts={name: other.doubts[-1] for name, other in bounds.items()},
        )

    def _as_other(self, confidence: float) -> OtherBounds:
        """The bounds of this curve beside a named one; they count ties for the canary."""
        void = self._void()
        doubts = [void or REVERSED * self.below_chance(at) for at in range(len(self.lags))]
        return OtherBounds(self.cautious_upper(confidence), doubts)

    def cautious_upper(self, confidence: float) -> Floats:
        """The one-sided upper bound at each lag, with ties counted for the canary.

        It is the ceiling where more canaries rank first than chance explains: the mean is only a
        lower bound there.

        Args:
            confidence: Of each bound, above one half.
        """
        ties = self.evidence.generous.mean(axis=1) - self.value
        upper = np.minimum(self.evidence.upper(confidence) + ties, self.ceiling)
        first = [self.more_saturated_than_chance(at) for at in range(len(self.lags))]
        return np.where(first, self.ceiling, upper)

    def _compared(self, others: Mapping[str, ExposureCurve] | None) -> dict[str, ExposureCurve]:
        """The other attackers' curves, of the same lags.

        Raises:
            InvalidInput: One has others.
        """
        known = dict(others or {})
        require(
            [
                f"others[{name!r}] has other lags"
                for name, curve in known.items()
                if not np.array_equal(curve.lags, self.lags)
            ]
        )
        return known

    def _void(self) -> str:
        """Why no bound of this curve proves anything; empty where one may."""
        return COPIED if self.repeated else self.clusters

    def _doubts(self, limit: float, confidence: float) -> list[str]:
        """Why the bound of each lag proves nothing about a limit; empty where it may."""
        return [
            "more canaries are at the ceiling than chance explains"
            if self.more_saturated_than_chance(lag)
            else self._ties(lag, limit, float(high))
            for lag, high in enumerate(self.evidence.upper(confidence))
        ]

    def _ties(self, lag: int, limit: float, high: float) -> str:
        """Why ties between canaries and references leave a limit open; empty where they do not.

        Args:
            lag: The place of the lag.
            limit: In bits.
            high: The upper bound, which counts ties against the canary.
        """
        gap = float(self.evidence.generous[lag].mean() - self.value[lag])
        if not high <= limit < high + gap:
            return ""
        where = " at the end" if lag == -1 else ""
        return (
            f"canaries cost exactly as much as references{where}: with these ties counted for the "
            f"canary, mean exposure may be up to {high + gap:.2f} bits"
        )

    def below_chance(self, lag: int = -1) -> bool:
        """Whether canaries are shown to cost more than references at a lag, at 2.5 %.

        Ties count for the canary here, and against it in ``value``: costs that tie make exposure
        small without any reversal.

        Args:
            lag: The place of the lag; the last one, if not given.
        """
        means = self.evidence.generous[lag]
        if self.trials == 1:
            # Under chance a canary's exposure has a deviation of 1/ln 2 bits at most.
            reach = 1.96 / (math.log(2.0) * math.sqrt(self.n_canaries))
        else:
            error = float(means.std(ddof=1)) / math.sqrt(self.trials)
            reach = float(stats.t.isf(0.025, self.trials - 1)) * error
        return bool(means.mean() + reach < self.null)

    def more_saturated_than_chance(self, lag: int = -1) -> bool:
        """Whether more canaries rank first at a lag than chance explains at 1 %.

        How many of m canaries are cheaper than all of n references drawn the same way has a tail
        under that of a geometric variable with ratio m/(n+m); trials add up to a negative binomial
        one.

        Args:
            lag: The place of the lag; the last one, if not given.
        """
        count = round(float(self.saturated[lag]) * self.trials * self.n_canaries)
        stays = self.n_references / (self.n_references + self.n_canaries)
        return bool(stats.nbinom.sf(count - 1, self.trials, stays) <= FOUND)


def _counted(number: int, thing: str, several: str) -> str:
    return f"{number} {thing if number == 1 else several}"


def exposure_curve(
    *,
    canary_losses: ArrayLike,
    reference_losses: ArrayLike,
    lags: ArrayLike,
    confidence: float = 0.95,
    rng: np.random.Generator,
    draws: int = 400,
    groups: Any = None,
    shared: SharedLosses | None = None,
    control_at_zero: bool = False,
) -> ExposureCurve:
    """Measure how mean exposure falls with the lag.

    In each trial a canary with ``k`` of the trial's ``n`` references at or under its loss has an
    exposure of log2((n+1)/(k+1)) bits. The interval speaks of the mean of this, for the same number
    of references, over models like these trials', canaries like these canaries and references like
    these references. Where trials share their canaries or references, their spread says nothing of
    other ones; the resamples do then.

    Args:
        canary_losses: Shape ``(lags, trials, canaries)``, in any unit; calibrated or not.
        reference_losses: Of sequences drawn the same way and never planted, under the same models
            and calibrated the same way, shape ``(lags, trials, references)``.
        lags: Strictly increasing steps since last seen; negative before planting.
        confidence: Of the interval at each lag.
        rng: Draws the resamples.
        draws: Resamples of each trial.
        groups: Clusters of canaries and of references, as in ``forgetting_curve``.
        shared: Which are the same in all trials: "canaries", "references", "both" or "neither". If
            not given, found as in ``forgetting_curve``.
        control_at_zero: Whether lag 0 may be the positive control: True where the references are
            scored by the same models, so that the canaries could rank among them by chance.

    Guarantees:
        * A model that scores everything alike exposes nothing (ties count against the canary).
        * Any strictly increasing map of all losses of a trial at a lag leaves the curve unchanged.
        * The order of canaries and of references does not matter to ``value``.
        * ``0 <= low <= value <= high <= ceiling``.
        * The same generator state gives the same curve.

    Raises:
        InvalidInput: Faults in arrays or settings, all listed at once.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> gain = np.array([4.0, 1.0, 0.0])[:, None, None]
        >>> curve = exposure_curve(
        ...     canary_losses=rng.normal(size=(3, 5, 40)) - gain,
        ...     reference_losses=rng.normal(size=(3, 5, 500)),
        ...     lags=[0, 100, 200], rng=rng)
        >>> curve.value.round(1).tolist(), round(curve.null, 2), round(curve.steps_to(2.0))
        ([8.7, 3.4, 1.4], 1.43, 171)
    """
    canaries, references, steps = _read(
        canary_losses, reference_losses, lags, confidence=confidence, rng=rng, draws=draws
    )
    clusters, sides = _design(canaries, references, groups, shared)
    evidence, saturated, median = _gather(
        canaries, references, draws=draws, rng=rng, groups=clusters, shared=sides
    )
    low, high = evidence.ends(float(confidence))
    trials = canaries.shape[1]
    return ExposureCurve(
        lags=steps.copy(),
        value=evidence.value.mean(axis=1),
        low=low,
        high=high,
        median=median,
        per_trial=evidence.value,
        saturated=saturated,
        confidence=float(confidence),
        trials=trials,
        n_canaries=canaries.shape[2],
        n_references=references.shape[2],
        null=null_exposure(references.shape[2]),
        ceiling=evidence.ceiling,
        method=_describe(trials, draws, clustered=evidence.clusters is not None, shared=any(sides)),
        draws=int(draws),
        evidence=evidence,
        control_at_zero=bool(control_at_zero),
        repeated=copied_trainings(canaries, references),
        clusters=noticed_clusters(canaries, references, sides) if groups is None else "",
    )


def _read(
    canary_losses: ArrayLike,
    reference_losses: ArrayLike,
    lags: ArrayLike,
    *,
    confidence: float,
    rng: np.random.Generator,
    draws: int,
) -> tuple[Floats, Floats, Floats]:
    faults: list[str] = []
    axes = "(lags, trials, {})"
    canaries = read_floats(
        "canary_losses", canary_losses, 3, faults, axes=axes.format("n_canaries")
    )
    references = read_floats(
        "reference_losses", reference_losses, 3, faults, axes=axes.format("n_references")
    )
    steps = read_floats("lags", lags, 1, faults)
    if canaries is not None and references is not None:
        (lags_c, trials_c), (lags_r, trials_r) = canaries.shape[:2], references.shape[:2]
        if (lags_c, trials_c) != (lags_r, trials_r):
            faults.append(
                f"canary_losses have {lags_c} lags and {trials_c} trials, "
                f"reference_losses {lags_r} and {trials_r}"
            )
    if canaries is not None and steps is not None and canaries.shape[0] != steps.size:
        faults.append(f"lags has {steps.size} entries for {canaries.shape[0]} lags of losses")
    if steps is not None and np.any(np.diff(steps) <= 0):
        faults.append("lags are not strictly increasing")
    check_share("confidence", confidence, faults)
    check_rng(rng, faults)
    check_draws(draws, faults)
    require(faults)
    if canaries is None or references is None or steps is None:
        raise InvalidInput("canary_losses, reference_losses and lags must be arrays of numbers.")
    return canaries, references, steps


def _design(
    canaries: Floats, references: Floats, groups: Any, shared: Any
) -> tuple[GroupPair, tuple[bool, bool]]:
    """The clusters of both sides, and which of them the trials share."""
    faults: list[str] = []
    clusters = read_group_pair(
        groups,
        n_seen=canaries.shape[2],
        n_unseen=references.shape[2],
        trials=canaries.shape[1],
        faults=faults,
    )
    sides = read_shared(
        shared,
        seen=canaries,
        unseen=references,
        labels=clusters,
        faults=faults,
        names=("canaries", "references"),
    )
    require(faults)
    return clusters, sides


def _gather(
    canaries: Floats,
    references: Floats,
    *,
    draws: int,
    rng: np.random.Generator,
    groups: GroupPair,
    shared: tuple[bool, bool],
) -> tuple[ExposureEvidence, Floats, Floats]:
    """Measure every trial at every lag, and again on resampled canaries and references.

    Returns:
        The evidence, the share of saturated canaries, and the median exposure, at each lag.
    """
    lags, trials, n_canaries = canaries.shape
    n = references.shape[2]
    bits_of = math.log2(n + 1) - np.log2(np.arange(1.0, n + 2.0))  # by the number at or under
    each = np.empty(canaries.shape)
    generous, ceilings = np.empty((2, lags, trials))
    drawn = np.empty((lags, trials, draws))
    block = max(1, BLOCK // (n + n_canaries))
    resample = Resampling(rng, groups=groups, shared=shared)
    for trial in range(trials):
        resample.next_trial(trial)
        for lag in range(lags):
            under = at_or_under(canaries[lag, trial], references[lag, trial])
            each[lag, trial] = bits_of[under]
            ranked = np.sort(references[lag, trial])
            strictly = np.searchsorted(ranked, canaries[lag, trial], side="left")
            generous[lag, trial] = bits_of[strictly].mean()
            ceilings[lag, trial] = np.mean(under == 0)
        for start in range(0, draws, block):
            size = min(block, draws - start)
            canary_n = resample(0, n=n_canaries, draws=size)
            reference_n = resample(1, n=n, draws=size)
            for lag in range(lags):
                drawn[lag, trial, start : start + size] = _resampled(
                    canaries[lag, trial], references[lag, trial], canary_n, reference_n, bits_of
                )
    units = [clusters_of(group, size) for group, size in zip(groups, (n_canaries, n), strict=True)]
    evidence = ExposureEvidence(
        each.mean(axis=2),
        generous,
        drawn.mean(axis=2),
        drawn.var(axis=2, ddof=1),
        math.log2(n + 1),
        joint_variance=drawn.mean(axis=1).var(axis=1, ddof=1) if any(shared) else None,
        clusters=min(units) if units != [n_canaries, n] else None,
        fewest=min(units),
    )
    return evidence, ceilings.mean(axis=1), np.median(each, axis=(1, 2))


def _resampled(
    canaries: Floats,
    references: Floats,
    canary_n: NDArray[np.int32],
    reference_n: NDArray[np.int32],
    bits_of: Floats,
) -> Floats:
    """Mean exposure for each column of counts, whose last two rows are the unobserved.

    The unobserved references are dearer and cheaper than everything; the unobserved canaries rank
    last and first.
    """
    order = np.argsort(references, kind="stable")
    upto = np.zeros((len(references) + 1, reference_n.shape[1]), dtype=np.int32)
    np.cumsum(reference_n[:-2][order], axis=0, out=upto[1:])
    upto += reference_n[-1]
    under = upto[np.searchsorted(references[order], canaries, side="right")]
    # Resampled clusters are as many canaries, or references, on average only.
    under = under * np.int64(len(references)) // np.maximum(reference_n.sum(axis=0), 1)
    total = np.einsum("nd,nd->d", canary_n[:-2], bits_of[under])
    return np.asarray((total + canary_n[-1] * bits_of[0]) / np.maximum(canary_n.sum(axis=0), 1))


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """An effective size; 1e9 where there is no variance."""
    most = np.full(top.shape, 1e9)
    return np.asarray(np.clip(np.divide(top, bottom, out=most, where=bottom > 0.0), 1e-3, 1e9))


def _describe(trials: int, draws: int, *, clustered: bool, shared: bool) -> str:
    what = "clusters of " * clustered
    within = f"bootstrap of {what}canaries and references ({draws} draws)"
    ends = "Clopper-Pearson ends at the effective size"
    if trials == 1:
        return f"{within}, {ends}; one trial carries no between-model error"
    crossed = ", crossed with what trials share" * shared
    return f"{over_trials(trials)}{crossed}, no narrower than the {within}; {ends}"
