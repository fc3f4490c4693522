"""Which remedies hold the limit, which is the cheapest, and which change nothing.

A remedy holds the limit only where doing nothing is shown not to, where its models are of use, and
where no canary of any training reaches the limit. Fewer trainings must reach the limit than without
the remedy by Fisher's exact test. Tests, intervals of differences, the bound on usefulness and the
claim are corrected for the number of remedies, since the best of them is chosen. Trainings of one
seed have much in common, which makes Fisher's test, which knows of no pairs, err on the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.paired_difference import PairedDifference, paired_difference
from remnant.measures.statistics.trial_mean import TrialMean, trial_mean
from remnant.records.outcomes import RULES, Outcome
from remnant.studies.choices.differences import Levels, differences
from remnant.studies.choices.formats import signed
from remnant.studies.choices.result import DefencesVerdict, Difference, Status, fewest_trials
from remnant.studies.shared.wording import counted, listed

Floats = NDArray[np.float64]
FEWEST = 5  # trials that several sign tests need
GAIN = 0.1  # of the gain over frequencies that a useful model has at least


@dataclass(frozen=True, slots=True, eq=False)
class Canaries:
    """The exposures of canaries, ``(trials, canaries)``.

    Attributes:
        low, high: Between these each exposure lies: certainly, or with 95 % confidence by sampling.
        levels: Means of trials.
    """

    low: Floats
    high: Floats
    levels: Levels


@dataclass(frozen=True, slots=True, eq=False)
class RemedyEvidence:
    """What was measured of one remedy, or of doing nothing.

    Attributes:
        label: Of the remedy.
        canaries: After the remedy.
        validation: Bits a token of held-out text, one number a trial.
        controls: Mean exposure of never-planted secrets, one number a trial; None where there are
            none.
        relearnt: The canaries after more clean steps; None where that was not measured.
    """

    label: str
    canaries: Canaries
    validation: Floats
    controls: Floats | None = None
    relearnt: Canaries | None = None

    @property
    def stages(self) -> list[Canaries]:
        """All measurements that the limit applies to."""
        return [self.canaries] if self.relearnt is None else [self.canaries, self.relearnt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a verdict is judged by.

    Attributes:
        limit: Bits that every canary must stay below.
        most: The maximum exposure.
        unigram_bits: What a token costs by its frequency alone.
        confidence: Of intervals and tests.
        token: What a token is.
    """

    limit: float
    most: float
    unigram_bits: float
    confidence: float = 0.95
    token: str = "token"

    def for_each_of(self, remedies: int) -> float:
        """Confidence of one statement, so that those of all remedies hold together."""
        return 1.0 - (1.0 - self.confidence) / max(remedies, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRemedy:
    """What is said of one remedy."""

    status: Status
    reason: str
    exposure: Difference
    cost: Difference


def unseen_share(trials: int, *, remedies: int, confidence: float, sampled: bool = False) -> float:
    """Upper bound of the share of trainings that reach a limit, where none of ``trials`` did.

    It holds for all remedies at once.

    Args:
        trials: Trainings of a remedy.
        remedies: Among which one is chosen.
        confidence: Of the bound, and of the intervals of sampled exposures.
        sampled: Whether exposures are sampled: a canary that reaches the limit then has an interval
            that ends below it in a share of (1 - confidence) / 2 of cases.

    Example:
        >>> round(unseen_share(8, remedies=1, confidence=0.95), 2)
        0.31
    """
    share = 1.0 - ((1.0 - confidence) / remedies) ** (1.0 / trials)
    return float(min(1.0, share / ((1.0 + confidence) / 2.0) if sampled else share))


def judge(
    nothing: RemedyEvidence, remedies: Sequence[RemedyEvidence], rules: Rules
) -> tuple[DefencesVerdict, list[JudgedRemedy]]:
    """Judge all remedies against doing nothing.

    Guarantees:
        * No PASS where doing nothing is not shown to be exposed above the limit: its mean exposure
          has an interval above it, and is significantly above that of never-planted controls,
          where there are some.
        * No PASS by models that predict no better than the frequencies of tokens do, or hardly
          better: they have to gain a tenth of what the training as planned gains over these.
        * No PASS where a canary of the remedy may have reached the limit, in any training, before
          or after relearning.
        * Of remedies that change nothing, one or more is said to hold the limit in at most 5 % of
          studies (at ``confidence=0.95``).
    """
    judged = _judge_each(nothing, remedies, rules)
    control = _control(nothing, rules)
    verdict = _no_control(control, rules) if control else _decide(nothing, remedies, judged, rules)
    return (
        replace(
            verdict,
            like_nothing=_labels(
                remedies,
                [
                    len(nothing.validation) >= fewest_trials(len(remedies), rules.confidence)
                    and row.status != "holds"
                    and not row.exposure.differs
                    for row in judged
                ],
            ),
            useless=_labels(remedies, [row.status == "useless model" for row in judged]),
        ),
        judged,
    )


def is_useless(validation: Floats, rules: Rules, *, below: float, remedies: int = 1) -> bool:
    """Whether models are not shown to need fewer bits a token than ``below``.

    Args:
        validation: Bits a token, one number a trial.
        rules: With the confidence.
        below: Such as ``useful_below`` says.
        remedies: How many are asked about, since one of them is chosen.
    """
    mean = trial_mean(validation, confidence=rules.for_each_of(remedies))
    upper = mean.value if mean.high is None else mean.high
    return not upper < below


def useful_below(nothing: RemedyEvidence, rules: Rules) -> float:
    """Bits a token that a remedy's models must stay below to be of use.

    They have to gain a tenth of what the training as planned gains over frequencies of tokens.

    Example:
        >>> levels = Levels(np.zeros(2), np.zeros(2))
        >>> canaries = Canaries(np.zeros((2, 1)), np.zeros((2, 1)), levels)
        >>> nothing = RemedyEvidence("nothing", canaries, np.array([3.9, 4.1]))
        >>> round(useful_below(nothing, Rules(limit=10.0, most=20.0, unigram_bits=5.0)), 2)
        4.9
    """
    gained = max(0.0, rules.unigram_bits - float(nothing.validation.mean()))
    return rules.unigram_bits - GAIN * gained


def exchanged_p(own: Levels, base: Levels) -> float | None:
    """Return the p-value that a remedy changes the mean exposure of trials, by a sign test.

    A remedy that changes nothing makes the two trainings of a seed exchangeable. Seeds in which
    neither is known to be the more exposed say nothing and are left out.

    Guarantees:
        * Exact for any law of exposures, also where they pile up at the maximum. None for one
          trial.

    Example:
        >>> low, high = np.array([1.0, 2.0, 1.0, 3.0]), np.full(4, 9.0)
        >>> exchanged_p(Levels(low, low), Levels(high, high))
        0.125
    """
    if len(own.least) < 2:
        return None
    higher = int((own.least > base.highest).sum())
    lower = int((own.highest < base.least).sum())
    if higher + lower == 0:
        return 1.0
    return float(stats.binomtest(lower, higher + lower).pvalue)


def _judge_each(
    nothing: RemedyEvidence, remedies: Sequence[RemedyEvidence], rules: Rules
) -> list[JudgedRemedy]:
    trials, many = len(nothing.validation), len(remedies)
    each = rules.for_each_of(many)
    exposures = [
        replace(
            remedy.canaries.levels.above(nothing.canaries.levels, most=rules.most, confidence=each),
            p_value=exchanged_p(remedy.canaries.levels, nothing.canaries.levels),
        )
        for remedy in remedies
    ]
    costs = [
        paired_difference(remedy.validation, nothing.validation, confidence=each)
        for remedy in remedies
    ]
    bounds = [
        remedy.canaries.levels.at_least or nothing.canaries.levels.at_least for remedy in remedies
    ]
    enough = len(remedies) == 1 or trials >= FEWEST
    changes = differences(exposures, at_least=bounds, confidence=rules.confidence)
    fewer = fewer_reach(nothing, remedies, rules)
    below = useful_below(nothing, rules)
    costs_of = _cost_differences(costs, enough, rules)
    return [
        JudgedRemedy(
            status=status,
            reason=reason,
            exposure=change,
            cost=cost,
        )
        for remedy, change, cost, p_value in zip(remedies, changes, costs_of, fewer, strict=True)
        for status, reason in [_status(remedy, p_value, many, below, rules)]
    ]


def fewer_reach(
    nothing: RemedyEvidence, remedies: Sequence[RemedyEvidence], rules: Rules
) -> list[float]:
    """Return p-values that fewer trainings reach the limit than without a remedy.

    By Fisher's exact test, one-sided, adjusted by Holm. A training whose canary may have reached
    the limit counts as one that did under a remedy, and as one that did not without.
    """
    trials = len(nothing.validation)
    reached = int((nothing.canaries.low >= rules.limit).any(axis=1).sum())
    p_values = []
    for remedy in remedies:
        possible = np.zeros(trials, dtype=bool)
        for stage in remedy.stages:
            possible |= (stage.high >= rules.limit).any(axis=1)
        own = int(possible.sum())
        p_values.append(float(stats.hypergeom.cdf(own, 2 * trials, reached + own, trials)))
    return [float(p_value) for p_value in holm(p_values)] if p_values else []


def _cost_differences(
    gaps: Sequence[PairedDifference], enough: bool, rules: Rules
) -> list[Difference]:
    return differences(
        gaps, at_least=[False] * len(gaps), confidence=rules.confidence, enough=enough
    )


def _status(
    remedy: RemedyEvidence, p_value: float, many: int, below: float, rules: Rules
) -> tuple[Status, str]:
    """Judge one of ``many`` remedies, whose models are of use ``below`` so many bits a token."""
    limit, trials = f"the limit of {rules.limit:g} bits", len(remedy.validation)
    if is_useless(remedy.validation, rules, below=below, remedies=many):
        return "useless model", (
            f"A {rules.token} of held-out text costs {remedy.validation.mean():.2f} bits, and by "
            f"its frequency alone {rules.unigram_bits:.2f}: the models are not shown to have "
            "learnt a tenth of what the training as planned learnt."
        )
    for stage in remedy.stages:
        reached = (stage.low >= rules.limit).any(axis=1)
        if reached.any():
            when = " after relearning" if stage is remedy.relearnt else ""
            return (
                "fails",
                f"{int(reached.sum())} of {counted(trials, 'training')} reach {limit}{when}.",
            )
    for stage in remedy.stages:
        possible = (stage.high >= rules.limit).any(axis=1)
        if possible.any():
            return "not shown", (
                f"{int(possible.sum())} of {counted(trials, 'training')} may reach {limit}: raise "
                "measure.references or measure.max_nodes."
            )
    if p_value > 1.0 - rules.confidence:
        return "not shown", (
            "No canary reaches the limit, but so few trainings do without the remedy that this may "
            f"be chance (adjusted p = {p_value:.2g}): run more than {trials} trials."
        )
    return "holds", (
        f"No canary of {counted(trials, 'training')} reaches {limit} (adjusted p = {p_value:.2g})."
    )


def _control(nothing: RemedyEvidence, rules: Rules) -> str:
    """Why doing nothing is no positive control, as a sentence; empty where it is one."""
    levels = nothing.canaries.levels
    mean = trial_mean(
        levels.least, most=rules.most, highest=levels.highest, confidence=rules.confidence
    )
    if mean.low is None or mean.high is None:
        return (
            "One training of each remedy cannot show whether it holds the limit: run more trials."
        )
    if is_useless(nothing.validation, rules, below=rules.unigram_bits):
        return (
            "The models trained as planned learnt nothing of use: a "
            f"{rules.token} of held-out text costs {nothing.validation.mean():.2f} bits, and by "
            f"its frequency alone {rules.unigram_bits:.2f}. Train on more text, or for another "
            "number of steps."
        )
    if mean.low <= rules.limit:
        return (
            f"Without a remedy the mean exposure is {mean.value:.1f} bits ({mean.low:.1f} to "
            f"{mean.high:.1f}), which is not shown to be above the limit of {rules.limit:g} bits: "
            f"{_not_exposed(mean, len(nothing.validation), rules)}."
        )
    if nothing.controls is not None:
        gap = paired_difference(levels.least, nothing.controls, confidence=rules.confidence)
        equal = gap.low is None and gap.value > 0  # the same difference in all trials
        if not equal and (gap.low is None or gap.low <= 0):
            return (
                "Never-planted controls are not shown to be less exposed than canaries, so this "
                "exposure need not be memory."
            )
    return ""


def _not_exposed(mean: TrialMean, trials: int, rules: Rules) -> str:
    """What follows where doing nothing is not shown to be exposed above the limit."""
    if mean.high is not None and mean.high <= rules.limit:
        return "there is nothing to defend against here"
    if mean.value > rules.limit:
        return f"{counted(trials, 'trial')} are too few, run more"
    return "plant the canaries more often, or run more trials"


def _no_control(reason: str, rules: Rules) -> DefencesVerdict:
    return _verdict(
        "INCONCLUSIVE",
        f"{reason} No remedy can be shown to help.",
        f"No claim: {reason}",
        rules,
    )


def _decide(
    nothing: RemedyEvidence,
    remedies: Sequence[RemedyEvidence],
    judged: Sequence[JudgedRemedy],
    rules: Rules,
) -> DefencesVerdict:
    """The verdict where doing nothing is a positive control."""
    exposed = f"{nothing.canaries.levels.least.mean():.1f} bits"
    if not remedies:
        return _verdict(
            "INCONCLUSIVE",
            f"Without a remedy the mean exposure is {exposed}. The recipe has no remedy.",
            "No claim: no remedy was tried.",
            rules,
        )
    pairs = list(zip(remedies, judged, strict=True))
    holding = [pair for pair in pairs if pair[1].status == "holds"]
    holding.sort(key=lambda pair: pair[1].cost.difference[0])
    many = counted(len(remedies), "remedy", "remedies")
    if not holding:
        open_ones = [remedy.label for remedy, row in pairs if row.status == "not shown"]
        if open_ones:
            return _verdict(
                "INCONCLUSIVE",
                f"None of {many} is shown to hold the limit of {rules.limit:g} bits, and "
                f"{listed(list(map(repr, open_ones)))} may; without a remedy the mean exposure is "
                f"{exposed}.",
                f"No claim: {len(open_ones)} of {many} are undecided.",
                rules,
            )
        return _verdict(
            "FAIL",
            f"None of {many} holds the limit of {rules.limit:g} bits with a useful model; without "
            f"a remedy the mean exposure is {exposed}.",
            f"None of {many} holds the limit of {rules.limit:g} bits.",
            rules,
        )
    best, row = holding[0]
    others = holding[1:]
    as_cheap = _as_cheap(best, [remedy for remedy, _ in others], rules)
    trials = len(nothing.validation)
    share = unseen_share(
        trials,
        remedies=len(remedies),
        confidence=rules.confidence,
        sampled=any((stage.high > stage.low).any() for stage in best.stages),
    )
    value, low, high = row.cost.difference
    interval = "" if low is None or high is None else f" ({signed(low, 3)} to {signed(high, 3)})"
    beside = ""
    if as_cheap:
        beside = f" Its cost is not distinguished from that of {listed(list(map(repr, as_cheap)))}."
    elif others:
        beside = f" The next cheapest is {others[0][0].label!r}."
    claim = (
        f"With {100 * rules.confidence:.0f} % confidence, corrected for {many}, at most "
        f"{100 * share:.0f} % of such trainings have a canary of {rules.limit:g} bits or more "
        f"({trials} trainings, none did)."
    )
    sentence = (
        f"{best.label!r} is the cheapest remedy that holds the limit of {rules.limit:g} bits: mean "
        f"exposure {best.canaries.levels.highest.mean():.1f} bits instead of {exposed}. It costs "
        f"{signed(value, 3)} bits a {rules.token}{interval}.{beside} {len(holding)} of {many} "
        f"{'holds' if len(holding) == 1 else 'hold'} it."
    )
    return replace(
        _verdict("PASS", sentence, claim, rules),
        cheapest=best.label,
        holding=tuple(remedy.label for remedy, _ in holding),
        as_cheap=tuple(as_cheap),
    )


def _as_cheap(best: RemedyEvidence, others: Sequence[RemedyEvidence], rules: Rules) -> list[str]:
    """Labels of remedies whose cost is not significantly above that of the cheapest."""
    gaps = [
        paired_difference(other.validation, best.validation, confidence=rules.confidence)
        for other in others
    ]
    enough = len(others) == 1 or len(best.validation) >= FEWEST
    changes = _cost_differences(gaps, enough, rules)
    return [
        other.label for other, change in zip(others, changes, strict=True) if not change.differs
    ]


def _labels(remedies: Sequence[RemedyEvidence], chosen: Sequence[bool]) -> tuple[str, ...]:
    return tuple(remedy.label for remedy, take in zip(remedies, chosen, strict=True) if take)


def _verdict(outcome: Outcome, sentence: str, claim: str, rules: Rules) -> DefencesVerdict:
    return DefencesVerdict(
        outcome=outcome, sentence=sentence, claim=claim, limit=rules.limit, rules=RULES
    )
