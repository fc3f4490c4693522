"""Forgetting curves: attack success against the steps since an example was last seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.forgetting.attackers import BLIND, OtherBounds, hold_for_all
from remnant.measures.forgetting.between_lags import last_crossing, moving_average
from remnant.measures.forgetting.control import Control, positive_control
from remnant.measures.forgetting.decay import Decay, Law, fit_decay
from remnant.measures.forgetting.safe_after import (
    ProtectLast,
    SafeAfter,
    check_claim,
    protect_last,
    safe_after,
)
from remnant.measures.forgetting.verdict import REVERSED, LastLag, Verdict, judge
from remnant.measures.statistics.checks import (
    NAMES,
    Success,
    chance_level,
    check_attack,
    check_share,
    out_of_reach,
    read_floats,
    unseen_needed,
)
from remnant.measures.statistics.design import COPIED, Shared, read_shared
from remnant.measures.statistics.evidence_faults import alike_fault
from remnant.measures.statistics.resampling import NO_GROUPS, read_group_pair
from remnant.measures.statistics.trial_interval import Measured, describe, measure, skew_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ForgettingCurve:
    """Attack success at each lag, averaged over trials.

    Attributes:
        lags: Steps since the canaries were last seen, rising; negative before planting.
        value: Mean over trials of each trial's success, shape ``(lags,)``.
        low, high: The interval at each lag, for that lag alone; it always holds ``value``.
        per_trial: Shape ``(lags, trials)``.
        success, fpr: Which rate; ``fpr`` is None for accuracy and AUC.
        confidence: Of each interval.
        trials, n_seen, n_unseen: Trials, and scores per trial on each side.
        chance: What an attack without knowledge reaches.
        method: The interval's construction, in words.
        draws: Canary resamples of each trial behind the interval.
        evidence: What intervals of another confidence are made of.
        control_at_zero: Whether lag 0 may be the positive control.
    """

    lags: Floats
    value: Floats
    low: Floats
    high: Floats
    per_trial: Floats
    success: Success
    fpr: float | None
    confidence: float
    trials: int
    n_seen: int
    n_unseen: int
    chance: float
    method: str
    draws: int
    evidence: Measured = field(repr=False)
    control_at_zero: bool = False

    def steps_to(self, alpha: float) -> float | None:
        """The lag at which ``value`` comes down to ``alpha`` for the last time.

        Between lags the point estimate is a straight line. Lags before planting do not count.

        Returns:
            The lag; the first one (at or after 0) where no value is above ``alpha``; None where the
            last value still is: it was not reached within the curve.

        Raises:
            InvalidInput: ``alpha`` is outside (0, 1).
            NotEnoughEvidence: No lag is 0 or more.
        """
        faults: list[str] = []
        check_share("alpha", alpha, faults)
        require(faults)
        return last_crossing(lags=self.lags, value=self.value, level=float(alpha))

    def positive_control(self) -> Control:
        """Whether this attack found these canaries at a lag at which it could have failed.

        It did where the lower bound of success exceeds chance at the first lag after 0, or at any
        later one, corrected for their number. Lag 0 counts only with ``control_at_zero``. An attack
        that sees nothing is taken to have found them with a probability of 2.5 % at most.
        """
        return positive_control(
            lags=self.lags,
            lower=partial(self.evidence.lower, skewed=True),
            chance=self.chance,
            at_zero=self.control_at_zero,
            per_trial=self.per_trial,
            most=1.0 / (1.0 + (self.fpr or 0.0)) if self.success == "precision" else 1.0,
        )

    def safe_after(
        self,
        limit: float,
        confidence: float = 0.95,
        *,
        control: bool = True,
        others: Mapping[str, ForgettingCurve] | None = None,
    ) -> SafeAfter:
        """The smallest lag from which on success is shown to stay at or under ``limit``.

        Lags are tested from the last one backward, each by its upper bound, and the first that
        fails ends it (a fixed sequence: no correction is needed, and none is made). Taking the
        first lag that looks safe would be wrong far more often than ``confidence`` says. Only the
        lags of the curve are claimed, not what lies between or beyond them.

        Args:
            limit: In the units of ``success``, above chance.
            confidence: That no lag which is claimed has a success above ``limit``; at least 0.8.
            control: Whether the attack has to have found the canaries (``positive_control``).
                Without it, the bare bound: an attack that sees nothing then makes every lag safe.
            others: Curves of other attackers on the same models, by name: a lag is safe only where
                all of them are shown to stay at or under ``limit``. What makes a lag of theirs not
                safe by itself (reversed, tied or copied scores) stops this one too, except that an
                attacker whose scores are one number at every lag is not judged.

        Guarantees:
            * With ``control``, an attack that sees nothing makes no lag safe, but with a
              probability of 2.5 % at most; and a lag at which success is below chance, so that the
              reversed attack succeeds, is not safe.
            * With ``control``, no lag is safe at which most scores tie.
            * With ``control``, no lag is safe where two trials have the same scores at all lags, or
              where no attack can exceed ``limit``: where ``verdict`` makes no claim for a reason
              that is about the whole curve, this makes none either.

        Raises:
            InvalidInput: ``limit`` is at or under chance or not under 1, ``confidence`` is not
                from 0.8 up to 1, or all lags lie before planting.
        """
        compared = self._compared(others)
        check_claim(
            self.lags,
            limit=limit,
            chance=self.chance,
            success=self.success,
            confidence=confidence,
        )
        return safe_after(
            lags=self.lags,
            upper=self.evidence.upper,
            others={
                name: curve._as_other(limit, float(confidence)) for name, curve in compared.items()
            },
            limit=limit,
            chance=self.chance,
            success=self.success,
            confidence=confidence,
            void=self._void(limit) if control else "",
            doubts=[alike_fault(share) for share in self.evidence.tied_pairs],
            control=self.positive_control() if control else None,
            per_trial=self.per_trial,
        )

    def verdict(
        self,
        limit: float,
        *,
        attacker: str = "",
        others: Mapping[str, ForgettingCurve] | None = None,
    ) -> Verdict:
        """Judge the last lag of the curve, and no other.

        PASS where the one-sided upper bound is at or under ``limit``, the attack found the canaries
        (``positive_control``), and most scores do not tie; FAIL where the lower bound is above
        it; otherwise INCONCLUSIVE, with a rough number of trials that would decide. No lag is
        searched for: the first lag that looks safe is wrong far more often than the bound's
        confidence says.

        Args:
            limit: In the units of ``success``, above chance.
            attacker: Whose scores these are, for sentence and claim, such as "an attacker with 14
                reference models".
            others: Curves of other attackers on the same models, by name. PASS then needs the upper
                bound of each to be at or under ``limit``, and to prove something: their scores may
                not be reversed, tied or copied. One whose scores are all one number is not judged,
                and the claim says so. FAIL is about this curve alone.

        Raises:
            InvalidInput: ``limit`` is at or under chance (nothing can be shown to lie there) or not
                under 1, the curve's confidence is under 0.8, it ends before planting, or a curve of
                ``others`` has other lags or measures another success.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> noise = {"unseen_scores": rng.normal(size=(2, 8, 100)), "success": "auc"}
            >>> blind = forgetting_curve(
            ...     seen_scores=rng.normal(size=(2, 8, 100)), lags=[10, 100], rng=rng, **noise)
            >>> blind.verdict(0.6).outcome
            'INCONCLUSIVE'
        """
        check_claim(
            self.lags,
            limit=limit,
            chance=self.chance,
            success=self.success,
            confidence=self.confidence,
        )
        at = "" if self.fpr is None else f" at FPR {self.fpr:g}"
        by = f" by {attacker}" if attacker else ""
        compared = self._compared(others)
        trainings = "1 training" if self.trials == 1 else f"{self.trials} trainings"
        last = LastLag(
            what=f"attack {NAMES[self.success]}{at}{by}",
            unit="",
            digits=3,
            lag=float(self.lags[-1]),
            value=float(self.value[-1]),
            low=float(self.evidence.lower(self.confidence)[-1]),
            high=float(self.evidence.upper(self.confidence)[-1]),
            chance=self.chance,
            confidence=self.confidence,
            trials=self.trials,
            canaries=min(self.n_seen, self.n_unseen),
            sizes=f"{trainings}, {self.n_seen} seen and {self.n_unseen} unseen scores each",
            skew=skew_of(self.success),
            per_trial=tuple(self.per_trial[-1].tolist()),
            reversed=self._below_chance(),
        )
        doubt = self._void(limit) or alike_fault(self.evidence.tied_pairs[-1], " at the end")
        if not doubt and last.high < self.chance:
            doubt = REVERSED
        bounds = {name: curve._as_other(limit, self.confidence) for name, curve in compared.items()}
        return hold_for_all(
            judge(last, limit, self.positive_control(), doubt=doubt),
            {name: float(other.upper[-1]) for name, other in bounds.items()},
            what=f"attack {NAMES[self.success]}{at}",
            confidence=self.confidence,
            doubts={name: other.doubts[-1] for name, other in bounds.items()},
        )

    def _as_other(self, limit: float, confidence: float) -> OtherBounds:
        """The bounds of this curve beside a named one."""
        upper, tied = self.evidence.upper(confidence), self.evidence.tied_pairs
        after = self.lags >= 0
        # The shares are those of the trial that ties most: success shows that all of them tie.
        if np.all(tied[after, 0] == 1.0) and np.ptp(self.per_trial[after]) <= 1e-12:
            return OtherBounds(upper, [BLIND] * len(upper))
        void = self._void(limit)
        doubts = [
            void or alike_fault(share) or REVERSED * bool(high < self.chance)
            for share, high in zip(tied, upper, strict=True)
        ]
        return OtherBounds(upper, doubts)

    def _compared(self, others: Mapping[str, ForgettingCurve] | None) -> dict[str, ForgettingCurve]:
        """The other attackers' curves, of the same lags and the same measure.

        Raises:
            InvalidInput: One has others.
        """
        known = dict(others or {})
        wrong = [
            name
            for name, curve in known.items()
            if (curve.success, curve.fpr) != (self.success, self.fpr)
            or not np.array_equal(curve.lags, self.lags)
        ]
        require([f"others[{name!r}] has other lags or another success" for name in wrong])
        return known

    def _below_chance(self) -> bool:
        """Whether success at the last lag is shown to be below chance, by Student's t at 2.5 %."""
        last = self.per_trial[-1]
        if self.trials == 1:
            return bool(self.evidence.upper(0.975)[-1] < self.chance)
        error = float(last.std(ddof=1)) / math.sqrt(self.trials)
        reach = float(stats.t.isf(0.025, self.trials - 1)) * error
        return bool(last.mean() + reach < self.chance)

    def _void(self, limit: float) -> str:
        """Why no bound of this curve proves anything about a limit; empty where one may."""
        if self.evidence.repeated:
            return COPIED
        if self.evidence.doubt:
            return self.evidence.doubt
        return out_of_reach(limit, self.success, self.fpr)

    def protect_last(
        self,
        limit: float,
        *,
        batch: int,
        confidence: float = 0.95,
        others: Mapping[str, ForgettingCurve] | None = None,
    ) -> ProtectLast:
        """The most recent examples, which are not shown to be within ``limit``: protect these.

        They are those used less than ``safe_after(limit)`` steps ago.

        Args:
            limit: In the units of ``success``, above chance.
            batch: Examples a step.
            confidence, others: As in ``safe_after``.

        Raises:
            InvalidInput: As in ``safe_after``, or ``batch`` is not a whole number from 1.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> shift = np.array([3.0, 1.0, 0.0])[:, None, None]
            >>> curve = forgetting_curve(
            ...     seen_scores=shift + rng.normal(size=(3, 8, 100)),
            ...     unseen_scores=rng.normal(size=(3, 8, 100)),
            ...     lags=[0, 100, 200], success="auc", rng=rng)
            >>> kept = curve.protect_last(0.6, batch=64)
            >>> kept.steps, kept.examples
            (200, 12800)
        """
        return protect_last(self.safe_after(limit, confidence, others=others), batch=batch)

    def smoothed(self, points: int = 5) -> Floats:
        """A moving average of ``value`` over neighbouring lags, centred, to look at.

        Lags before planting are averaged among themselves, so that the jump at 0 stays one.

        Args:
            points: Lags in a whole window, an odd number; near an end the window shrinks.

        Raises:
            InvalidInput: ``points`` is not an odd whole number from 1.
        """
        before = int((self.lags < 0).sum())
        parts = slice(before), slice(before, None)
        return np.concatenate(
            [moving_average(self.lags[part], self.value[part], points) for part in parts]
        )

    def decay(self, law: Law | Literal["auto"] = "auto", confidence: float = 0.95) -> Decay:
        """Fit a decay law: half-life, floor, and forecasts beyond the last lag, flagged as such.

        Args:
            law: "exponential", "power", or "auto" for the one that does better at held-out lags.
            confidence: Of the intervals, which take at least three trials.

        Raises:
            InvalidInput: An unknown law, a confidence outside (0, 1).
            NotEnoughEvidence: Fewer than four lags after planting (five for the power law).
        """
        return fit_decay(lags=self.lags, per_trial=self.per_trial, law=law, confidence=confidence)


def forgetting_curve(
    *,
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    lags: ArrayLike,
    success: Success = "precision",
    fpr: float = 0.1,
    confidence: float = 0.95,
    rng: np.random.Generator,
    draws: int = 400,
    groups: Any = None,
    shared: Shared | None = None,
    control_at_zero: bool = False,
) -> ForgettingCurve:
    """Measure how attack success falls with the lag.

    Each trial is judged on its own scores and its own threshold, then trials are averaged. The
    interval speaks of the mean over models like these trials' and canaries like these canaries, at
    the population's own threshold; ``trial_interval`` describes its construction. Canaries are
    resampled with the same draw at all lags, and, on a side whose canaries the trials share, in all
    trials: the spread between trials says nothing of other canaries then.

    Args:
        seen_scores: Shape ``(lags, trials, n_seen)``, higher = more likely seen.
            ``remnant.data.read_curve`` makes all three arrays of a file or a data frame.
        unseen_scores: Shape ``(lags, trials, n_unseen)``.
        lags: Strictly increasing steps since last seen; negative before planting.
        success: "accuracy" (balanced, at the pooled median), "precision" or "tpr" (at ``fpr``), or
            "auc".
        fpr: The false-positive rate of precision and tpr.
        confidence: Of the interval at each lag.
        rng: Draws the resamples.
        draws: Canary resamples of each trial.
        groups: For canaries that come in clusters (several of one author, one template, one
            speaker): one label a canary, where both sides are the same canaries, or a pair
            ``(seen, unseen)`` of such sequences. Whole clusters are then resampled. Labels of shape
            ``(trials, n)`` mean the same canary, or cluster, wherever they recur; a side whose
            labels recur over trials is shared, except for labels that are on the other side too: a
            canary that is seen in one trial and unseen in others rotates. Without labels, scores
            that look clustered (``noticed_clusters``) allow no PASS.
        shared: Which side's canaries are the same in all trials: "seen", "unseen", "both" or
            "neither". If not given, labels by trial say so, or scores that correlate place by
            place.
        control_at_zero: Whether lag 0 may be the positive control. False for INJECT, where the
            unplanted twin equals its checkpoint at lag 0, so that the attack cannot fail there;
            True for POISON, whose twins differ, and for ``instance_scores``, whose two sides are
            scored in the same model.

    Guarantees:
        * The order of the canaries within a trial does not matter to ``value``.
        * A strictly increasing map of all scores of a lag (or of a lag's trial) changes nothing.
        * The same generator state gives the same curve.

    Raises:
        InvalidInput: Faults in arrays or settings, all listed at once.
        NotEnoughEvidence: Fewer than 1/fpr unseen scores in a trial, for precision and tpr.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> shift = np.array([3.0, 1.0, 0.0])[:, None, None]
        >>> curve = forgetting_curve(
        ...     seen_scores=shift + rng.normal(size=(3, 5, 100)),
        ...     unseen_scores=rng.normal(size=(3, 5, 100)),
        ...     lags=[0, 100, 200], success="auc", rng=rng)
        >>> curve.value.round(2).tolist(), round(curve.steps_to(0.6))
        ([0.98, 0.76, 0.53], 171)
    """
    faults: list[str] = []
    seen = read_floats("seen_scores", seen_scores, 3, faults, axes="(lags, trials, n_seen)")
    unseen = read_floats("unseen_scores", unseen_scores, 3, faults, axes="(lags, trials, n_unseen)")
    steps = read_floats("lags", lags, 1, faults)
    if seen is not None and unseen is not None and seen.shape[:2] != unseen.shape[:2]:
        faults.append(
            f"seen_scores have {seen.shape[0]} lags and {seen.shape[1]} trials, "
            f"unseen_scores {unseen.shape[0]} and {unseen.shape[1]}"
        )
    if seen is not None and steps is not None and seen.shape[0] != steps.size:
        faults.append(f"lags has {steps.size} entries for {seen.shape[0]} lags of scores")
    if steps is not None and np.any(np.diff(steps) <= 0):
        faults.append("lags are not strictly increasing")
    check_attack(success, fpr=fpr, confidence=confidence, rng=rng, draws=draws, faults=faults)
    clusters, sides = NO_GROUPS, (False, False)
    if seen is not None and unseen is not None:
        sizes = {"n_seen": seen.shape[2], "n_unseen": unseen.shape[2]}
        clusters = read_group_pair(groups, **sizes, trials=seen.shape[1], faults=faults)
        sides = read_shared(shared, seen=seen, unseen=unseen, labels=clusters, faults=faults)
    require(faults)
    if seen is None or unseen is None or steps is None:
        raise InvalidInput("seen_scores, unseen_scores and lags must be arrays of numbers.")
    at_fpr = success in ("precision", "tpr")
    if at_fpr and unseen.shape[2] < unseen_needed(fpr):
        raise NotEnoughEvidence(
            f"{unseen.shape[2]} unseen scores a trial cannot place a threshold at FPR {fpr:g}; "
            f"it takes at least {unseen_needed(fpr)}.",
            hint="Score more controls in each trial, or ask for a larger fpr.",
        )
    measured = measure(
        seen=seen,
        unseen=unseen,
        success=success,
        fpr=float(fpr),
        draws=draws,
        rng=rng,
        groups=clusters,
        shared=sides,
    )
    low, high = measured.ends(float(confidence))
    per_trial = measured.evidence.value
    return ForgettingCurve(
        lags=steps.copy(),
        value=per_trial.mean(axis=1),
        low=low,
        high=high,
        per_trial=per_trial,
        success=success,
        fpr=float(fpr) if at_fpr else None,
        confidence=float(confidence),
        trials=seen.shape[1],
        n_seen=seen.shape[2],
        n_unseen=unseen.shape[2],
        chance=chance_level(success, float(fpr)),
        method=describe(seen.shape[1], draws, clustered=measured.clustered, shared=measured.shared),
        draws=int(draws),
        evidence=measured,
        control_at_zero=bool(control_at_zero),
    )
