"""Which variants of a training differ in exposure, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.paired_difference import PairedDifference, paired_difference
from remnant.measures.statistics.sign_flips import FEWEST_PAIRS
from remnant.records import Record
from remnant.records.outcomes import RULES
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.recipe import ExposureTrainingStudy, changes_of
from remnant.studies.choices.result import Difference, Effect, TrainingFinding
from remnant.studies.shared.wording import counted, times

Floats = NDArray[np.float64]
Row = TypeVar("Row", Difference, Effect)
_FEWEST = FEWEST_PAIRS  # trials that a comparison needs


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Mean exposure of each trial's canaries.

    Attributes:
        least: The mean; a lower bound if a canary is saturated.
        highest: The highest value that the mean can have.
    """

    least: Floats
    highest: Floats

    @property
    def at_least(self) -> bool:
        """Whether the mean of some trial is only a lower bound."""
        return bool((self.highest > self.least).any())

    def above(self, base: Levels, *, most: float, confidence: float) -> PairedDifference:
        """Return how far these are above ``base``, trial by trial."""
        return paired_difference(
            self.least,
            base.least,
            most=most,
            highest=self.highest,
            base_highest=base.highest,
            confidence=confidence,
        )


def exposure_levels(record: Record, name: str, most: float) -> Levels:
    """Read a variant's exposures.

    A saturated canary has at least the lower end of its interval, and at most ``most`` bits.
    """
    bits, saturated = record.array(f"{name}.bits"), record.array(f"{name}.saturated")
    lower = record.array(f"{name}.low") if saturated.any() else bits
    return Levels(
        np.where(saturated, lower, bits).mean(axis=1), np.where(saturated, most, bits).mean(axis=1)
    )


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
    rows = []
    for name, run in list(runs.items())[1:]:
        own = exposure_levels(record, name, most)
        gap = own.above(base, most=most, confidence=confidence)
        rows.append(
            Difference(
                label=run.study.label,
                difference=(gap.value, gap.low, gap.high),
                at_least=own.at_least or base.at_least,
                p_value=gap.p_value,
                adjusted_p_value=None,
                differs=False,
            )
        )
    rows = [
        replace(row, differs=row.adjusted_p_value <= 1.0 - confidence)
        if row.adjusted_p_value is not None
        else row
        for row in holm_adjusted(rows)
    ]
    return finding_of(
        rows,
        [_instead(first, run) for run in others],
        base=study.label,
        level=_level(base, most),
        trials=study.plan.trials,
        confidence=confidence,
    )


def holm_adjusted(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with p-values corrected for their number; rows without one stay."""
    p_values = [row.p_value for row in rows if row.p_value is not None]
    adjusted = iter(holm(p_values) if p_values else ())
    return [
        row if row.p_value is None else replace(row, adjusted_p_value=float(next(adjusted)))
        for row in rows
    ]


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
