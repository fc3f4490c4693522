"""PASS, FAIL or INCONCLUSIVE: one limit, held against one operating point named beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from scipy import stats

from remnant.measures.forgetting.control import Control
from remnant.measures.statistics.skewed_trials import Skew, unseen_trainings, upper_quantile

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]
REVERSED = "that is below chance, so the reversed attack succeeds"
CHECK_SIGN = "Check that higher scores mean more likely seen."
PLANT_MORE = "Plant more canaries, plant them more often, or use another kind."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the bounds say about a limit.

    Attributes:
        outcome: "PASS", "FAIL" or "INCONCLUSIVE".
        sentence: What was measured and why that is the outcome.
        claim: The strongest statement the evidence supports, in one sentence: a bound with its n
            and confidence, and what so many trainings cannot exclude.
        limit: The largest success allowed.
        lag: The lag that was judged.
        detected: Whether the canaries are detected where they were judged, whatever the outcome:
            the lower bound is above chance there, or a search of the same run found them. The
            positive control is another lag, and does not enter.
    """

    outcome: Outcome
    sentence: str
    claim: str
    limit: float
    lag: float
    detected: bool = False


class JudgedCurve(Protocol):
    """A curve that judges itself."""

    def verdict(self, limit: float) -> Verdict:
        """Hold the last lag against a limit."""
        ...


def forgetting_verdict(curve: JudgedCurve, limit: float) -> Verdict:
    """The same as ``curve.verdict(limit)``."""
    return curve.verdict(limit)


def exposure_curve_verdict(curve: JudgedCurve, limit: float) -> Verdict:
    """The same as ``curve.verdict(limit)``."""
    return curve.verdict(limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLag:
    """What was measured at the last lag of a curve.

    Attributes:
        what: The measurement's name, such as "attack AUC".
        unit: Behind each number, such as " bits"; or empty.
        digits: Of each number.
        lag: Steps since the canaries were last used.
        value: The measurement.
        low, high: Its one-sided bounds, each of ``confidence``.
        chance: What a model without memory gives.
        confidence: Of each bound.
        trials: Trainings.
        canaries: Of each training, on the smaller side.
        sizes: Trainings and canaries in words.
        skew: The law that ``high`` allows for.
        per_trial: The measurement of each training; empty where it is not known.
        reversed: Whether the value is shown to be below chance.
    """

    what: str
    unit: str
    digits: int
    lag: float
    value: float
    low: float
    high: float
    chance: float
    confidence: float
    trials: int
    canaries: int
    sizes: str
    skew: Skew
    per_trial: tuple[float, ...] = ()
    reversed: bool = False

    def number(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.{self.digits}f}{self.unit}"

    @property
    def at_most(self) -> str:
        """The upper bound, rounded up."""
        return f"{rounded_up(self.high, self.digits)}{self.unit}"

    @property
    def at_least(self) -> str:
        """The lower bound, rounded down."""
        return f"{rounded_down(self.low, self.digits)}{self.unit}"


def judge(last: LastLag, limit: float, control: Control, *, doubt: str = "") -> Verdict:
    """Hold one measurement against a limit.

    Args:
        last: The measurement.
        limit: The largest value allowed.
        control: Whether the attack found the canaries at some lag.
        doubt: Why an upper bound under the limit proves nothing, whatever the control; empty where
            it does.

    Guarantees:
        * PASS only where the upper bound is at or under the limit and the control was found.
        * FAIL only where the lower bound is above the limit.
    """
    said = (
        f"{last.lag:g} steps after the canaries were last used, {last.what} is "
        f"{last.number(last.value)} (one-sided {percent(last.confidence)} bounds "
        f"{last.at_least} and {last.at_most})"
    )
    allowed = f"the limit of {limit:g}{last.unit}"

    def made(outcome: Outcome, sentence: str, claim: str) -> Verdict:
        return Verdict(outcome, sentence, claim, limit, last.lag, detected=last.low > last.chance)

    if last.low > limit:
        return made("FAIL", f"{said}: above {allowed}.", _at_least(last))
    if last.high > limit:
        advice = _advice(last, limit, control)
        sentence = f"{said}: {allowed} lies between the bounds. {advice}"
        return made("INCONCLUSIVE", sentence, _between(last))
    if doubt:
        sentence = f"{said}: under {allowed}, but {doubt}.{f' {CHECK_SIGN}' * (doubt == REVERSED)}"
        return made("INCONCLUSIVE", sentence, f"No claim: {doubt}.")
    if not control.found:
        sentence = f"{said}: under {allowed}. {control.reason} {PLANT_MORE}"
        claim = f"No claim: {control.reason[0].lower()}{control.reason[1:]}"
        return made("INCONCLUSIVE", sentence, claim)
    found = f"Positive control: the attack found them at lag {control.lag:g}."
    return made("PASS", f"{said}: under {allowed}. {found}", _at_most(last, limit))


def cannot_exclude(trials: int, *, above: int = 0) -> str:
    """What so many trainings leave open, as the end of a sentence.

    Args:
        trials: Trainings.
        above: How many of them are above the limit themselves. The share of trainings that may be
            has the exact (Clopper-Pearson) one-sided 95 % bound.

    Example:
        >>> cannot_exclude(8)
        '8 trainings cannot exclude that up to 31% of trainings behave otherwise'
        >>> cannot_exclude(8, above=1)
        '1 of 8 trainings is above the limit, so up to 47% of trainings may be (95% confidence)'
    """
    if trials == 1:
        return "one training does not show how trainings differ"
    share = 100.0 * unseen_trainings(trials, above=above)
    text = f"{share:.0f}" if share >= 9.95 else f"{share:.2g}"
    if above:
        return (
            f"{above} of {trials} trainings {'is' if above == 1 else 'are'} above the limit, so up "
            f"to {text}% of trainings may be (95% confidence)"
        )
    return f"{trials} trainings cannot exclude that up to {text}% of trainings behave otherwise"


def rounded_up(bound: float, digits: int = 3) -> str:
    """An upper bound in text that is no lower than the bound.

    Example:
        >>> rounded_up(0.6001), rounded_down(0.5999)
        ('0.601', '0.599')
    """
    return f"{math.ceil(bound * 10.0**digits - 1e-9) / 10.0**digits:.{digits}f}"


def rounded_down(bound: float, digits: int = 3) -> str:
    """A lower bound in text that is no higher than the bound."""
    return f"{math.floor(bound * 10.0**digits + 1e-9) / 10.0**digits:.{digits}f}"


def percent(confidence: float) -> str:
    """A confidence in percent, with all its digits.

    Example:
        >>> percent(0.95), percent(0.975), percent(0.999)
        ('95%', '97.5%', '99.9%')
    """
    return f"{100.0 * confidence:.6g}%"


def _where(last: LastLag) -> str:
    """Over what a bound is: one training says nothing of an average over trainings."""
    return "in this one training" if last.trials == 1 else "on average"


def _at_most(last: LastLag, limit: float) -> str:
    above = sum(value > limit for value in last.per_trial)
    still = ""
    if last.low > last.chance:
        still = (
            f", yet the canaries are still detectable (at least {last.at_least}, chance "
            f"{last.number(last.chance)})"
        )
    return (
        f"With {percent(last.confidence)} confidence, {last.lag:g} steps after last use "
        f"{last.what} is at most {last.at_most} {_where(last)} ({last.sizes}){still}; "
        f"{cannot_exclude(last.trials, above=above)}."
    )


def _at_least(last: LastLag) -> str:
    return (
        f"With {percent(last.confidence)} confidence, {last.lag:g} steps after last use "
        f"{last.what} is at least {last.at_least} {_where(last)} ({last.sizes}){_alone(last)}."
    )


def _between(last: LastLag) -> str:
    return (
        f"With {percent(last.confidence)} confidence each, {last.lag:g} steps after last use "
        f"{last.what} is at least {last.at_least} and at most {last.at_most} {_where(last)} "
        f"({last.sizes}){_alone(last)}."
    )


def _alone(last: LastLag) -> str:
    return f"; {cannot_exclude(1)}" if last.trials == 1 else ""


def _advice(last: LastLag, limit: float, control: Control) -> str:
    """How much more evidence would bring the nearer bound to the limit.

    Where the attack did not find the canaries at any lag, that alone would be no PASS, and the
    advice says so.

    None is named where the value is shown to be below chance, or is further below chance than the
    limit is above it: with more evidence the reversed attack would be shown to succeed.
    """
    if last.reversed or last.chance - last.value > limit - last.chance:
        return f"The value is below chance, as of a reversed attack. {CHECK_SIGN}"
    over = last.value > limit
    gap = abs(last.value - limit)
    reach = last.value - last.low if over else last.high - last.value
    end = "FAIL" if over else "PASS"
    hold = "would most likely make it FAIL" if over else "would make it PASS if the value holds"
    also = ""
    if not over and not control.found:
        hold = "would bring the upper bound under the limit if the value holds"
        also = f" That alone is no PASS. {control.reason} {PLANT_MORE}"
    begun = "The value itself is above the limit. " if over else ""
    if last.trials == 1:
        factor = math.inf if gap == 0.0 else (reach / gap) ** 2
        if factor <= 1e4:
            wanted = math.ceil(factor * last.canaries - 1e-9)
            return (
                f"{begun}About {wanted} canaries a side (here {last.canaries}) {hold}; one "
                f"training shows no difference between models, so run several as well.{also}"
            )
    else:
        needed = _trials_needed(last, reach=reach, gap=gap, end=end)
        if needed is not None:
            return f"{begun}About {needed} trainings (here {last.trials}) {hold}.{also}"
    return "The value is too near the limit for more evidence to decide; choose another limit."


def _trials_needed(last: LastLag, *, reach: float, gap: float, end: str) -> int | None:
    """The trainings with which the reach would shrink to the gap; None beyond ten thousand."""
    skew = last.skew if end == "PASS" else None
    now = _relative_reach(last.trials, last.confidence, skew)
    most = 10_000 * last.trials
    trials = last.trials + 1
    while trials <= most:
        if reach * _relative_reach(trials, last.confidence, skew) <= gap * now:
            return trials
        trials = max(trials + 1, math.ceil(trials * 1.02))
    return None


def _relative_reach(trials: int, confidence: float, skew: Skew | None) -> float:
    """A bound's distance from the mean, in deviations of one training."""
    tail = 1.0 - confidence
    if skew is None:
        return float(stats.t.isf(tail, trials - 1)) / math.sqrt(trials)
    return upper_quantile(trials, tail, skew) / math.sqrt(trials)
