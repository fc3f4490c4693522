"""Which variants of a training differ in exposure, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from remnant.measures.statistics.sign_flips import FEWEST_PAIRS
from remnant.records import Record
from remnant.records.outcomes import RULES
from remnant.studies.choices.differences import Levels, differences, exposure_levels
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.recipe import ExposureTrainingStudy, changes_of
from remnant.studies.choices.result import Difference, TrainingFinding
from remnant.studies.shared.wording import counted, times

_FEWEST = FEWEST_PAIRS  # trials that a comparison needs


def compare_variants(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant]
) -> TrainingFinding:
    """Find which variants differ from the first in exposure, and what to do about it.

    Each trial of a variant is paired with the same trial of the first, and p-values are corrected
    for the number of variants by Holm. There is no limit, so the result is a finding, not an
    outcome. With fewer than six trials there is no p-value, and no difference is called
    significant: a paired test that holds for any law cannot have one below 2^(1 - trials).

    Guarantees:
        The headline of two variants does not depend on their order.
    """
    confidence, most = study.measure.confidence, math.log2(study.secret.planted.space)
    base = exposure_levels(record, "primary", most)
    first, *others = runs.values()
    levels = [exposure_levels(record, name, most) for name in list(runs)[1:]]
    rows = differences(
        [own.above(base, most=most, confidence=confidence) for own in levels],
        at_least=[own.at_least or base.at_least for own in levels],
        confidence=confidence,
        labels=[run.study.label for run in others],
    )
    return finding_of(
        rows,
        [_instead(first, run) for run in others],
        base=study.label,
        level=_level(base, most),
        trials=study.plan.trials,
        confidence=confidence,
    )


def finding_of(
    rows: list[Difference],
    words: list[str],
    *,
    base: str,
    level: str,
    trials: int,
    confidence: float,
) -> TrainingFinding:
    """The finding about variants and the first one.

    Args:
        rows: One per variant.
        words: One per variant: what is done instead of what.
        base: The first variant's label.
        level: Its exposure, as a sentence.
        trials: Trainings of each variant.
        confidence: Of the intervals.
    """

    def finding(headline: str, sentence: str, advice: str) -> TrainingFinding:
        return TrainingFinding(
            headline=headline,
            sentence=sentence,
            advice=advice,
            rules=RULES,
            differences=tuple(rows),
        )

    if not rows:
        return finding(
            headline="There is one variant, so nothing is compared",
            sentence=level,
            advice="Add a [[compare]] table to the recipe for each training choice to compare.",
        )
    if trials == 1:
        return finding(
            headline="One training of each variant cannot show a difference",
            sentence=level,
            advice=f"Set plan.trials to {_FEWEST} or more.",
        )
    differ = [pair for pair in zip(rows, words, strict=True) if pair[0].differs]
    if not differ:
        reach = max(map(_reach, rows))
        upto = "" if math.isinf(reach) else f" It may still be {reach:.1f} bits."
        return finding(
            headline="No difference in exposure was detected between the training choices",
            sentence=f"{level} {_none_of(rows)} significantly from it in {trials} trials.{upto}",
            advice=f"Run {max(_FEWEST, 2 * trials)} trials or more to detect smaller differences; "
            "do not take the choices for equal.",
        )
    differ.sort(key=lambda pair: -abs(pair[0].difference[0]))
    lower = [row for row, _ in differ if row.difference[0] < 0]
    keep = lower[0].label if lower else base
    return finding(
        headline="Training choices change exposure",
        sentence=_differ_sentence(differ, base=base, variants=len(rows), confidence=confidence),
        advice=f"Prefer {keep!r} if its validation bits are good enough: a variant that learns "
        "less also exposes less.",
    )


def _differ_sentence(
    differ: list[tuple[Difference, str]], *, base: str, variants: int, confidence: float
) -> str:
    """The largest change each way, and how many variants differ.

    Args:
        differ: The variants that differ, with what is done instead of what; the largest first.
        base: The first variant's label.
        variants: How many were compared with it.
        confidence: Of the intervals.
    """
    signs = [row.difference[0] > 0 for row, _ in differ]
    shown = sorted({signs.index(sign) for sign in (True, False) if sign in signs})
    changes = [
        f"{words} {_change(row, confidence=confidence, several=variants > 1)}"
        for row, words in (differ[place] for place in shown)
    ]
    if variants > 1:
        differs = "differs" if len(differ) == 1 else "differ"
        changes.append(
            f"{len(differ)} of {counted(variants, 'variant')} {differs} "
            f"significantly from {base!r}."
        )
    return " ".join(changes)


def _instead(first: PreparedVariant, other: PreparedVariant) -> str:
    """What a variant does instead of what, as the subject of a sentence."""
    changes = changes_of(first.study.to_dict(), other.study)
    own, base = set(other.plan.repeats), set(first.plan.repeats)
    only_repeats = list(changes) == ["plan"] and list(changes["plan"]) == ["repeats"]
    if only_repeats and len(own) == len(base) == 1:
        return f"Planting {times(*own)} instead of {times(*base)}"
    return f"{other.study.label!r} instead of {first.study.label!r}"


def _level(base: Levels, most: float) -> str:
    least = "at least " if base.at_least else ""
    return f"The mean exposure is {least}{base.least.mean():.1f} bits of {most:.1f} possible."


def _change(row: Difference, *, confidence: float, several: bool) -> str:
    """By how much, with the interval; the interval alone if one side is a lower bound."""
    value, low, high = row.difference
    sure = f"{100 * confidence:.0f} % CI"
    ends = () if low is None or high is None else (low, high)
    tested = f"Holm-adjusted p = {row.adjusted_p_value:.2g}" if several else ""
    interval = " to ".join(map(_signed, ends))
    shown = _signed(value) if not ends or not row.at_least else interval
    of = sure if row.at_least else f"{sure} {interval}" * bool(ends)
    inner = "; ".join(filter(None, (of, tested)))
    return f"makes a difference: {shown} bits in the mean{f' ({inner})' * bool(inner)}."


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _reach(row: Difference) -> float:
    """The largest difference that the interval allows, in bits; infinite if there is none."""
    _, low, high = row.difference
    return math.inf if low is None or high is None else max(abs(low), abs(high))


def _none_of(rows: list[Difference]) -> str:
    return "The other variant does not differ" if len(rows) == 1 else "No other variant differs"
