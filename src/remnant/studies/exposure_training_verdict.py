"""Which variants of a training differ in exposure, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures.paired_difference import PairedDifference, paired_difference
from remnant.records import Record, finding_row
from remnant.studies.differences import adjust_for_number
from remnant.studies.variants import difference
from remnant.studies.wording import counted, times

if TYPE_CHECKING:
    from remnant.studies.exposure_training import ExposureTrainingStudy
    from remnant.studies.exposure_training_population import Run

Floats = NDArray[np.float64]
_FEWEST = 5  # trials, below which many comparisons rest on tails that nobody has seen


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Mean exposure of each trial's canaries.

    Attributes:
        least: What it is, or is at least where a canary is saturated.
        highest: The most it can be.
    """

    least: Floats
    highest: Floats

    @property
    def at_least(self) -> bool:
        """Whether some trial is known from below only."""
        return bool((self.highest > self.least).any())

    def above(self, base: Levels, *, most: float, confidence: float) -> PairedDifference:
        """Return how far these lie above others, trial by trial."""
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

    A saturated canary has between the lower end of its interval and all the bits there are.
    """
    bits, saturated = record.array(f"{name}.bits"), record.array(f"{name}.saturated")
    floor = record.array(f"{name}.low") if saturated.any() else bits
    return Levels(
        np.where(saturated, floor, bits).mean(axis=1), np.where(saturated, most, bits).mean(axis=1)
    )


def verdict_fields(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, Run]
) -> dict[str, Any]:
    """Find which variants differ from the first in exposure, and what follows from it.

    Each trial of a variant and the first's make a pair, and p-values are corrected for the number
    of variants by Holm. There is no limit on harm, so there is no outcome: the row is a finding.
    With fewer than five trials and several variants no difference is called significant: a paired
    test that assumes no distribution cannot have a p-value below 2^(1 - trials).

    Guarantees:
        The headline of two variants does not depend on their order.

    Returns:
        A finding row, with one row a variant under ``"differences"``.
    """
    confidence, most = study.measure.confidence, math.log2(study.secret.planted.space)
    base = exposure_levels(record, "primary", most)
    rows: list[dict[str, Any]] = []
    for name, run in list(runs.items())[1:]:
        own = exposure_levels(record, name, most)
        gap = own.above(base, most=most, confidence=confidence)
        rows.append(
            {
                "label": run.study.label,
                "difference": [gap.value, gap.low, gap.high],
                "at_least": own.at_least or base.at_least,
                "p_value": gap.p_value,
                "adjusted_p_value": None,
                "differs": False,
            }
        )
    adjust_for_number(rows)
    enough = len(rows) == 1 or study.plan.trials >= _FEWEST
    for row in rows:
        adjusted = row["adjusted_p_value"]
        row["differs"] = adjusted is not None and adjusted <= 1.0 - confidence and enough
    words = [_instead(runs["primary"], run) for run in list(runs.values())[1:]]
    return finding_words(
        rows,
        words,
        base=study.label,
        level=_level(base, most),
        trials=study.plan.trials,
        confidence=confidence,
    ) | {"differences": rows}


def finding_words(
    rows: list[dict[str, Any]],
    words: list[str],
    *,
    base: str,
    level: str,
    trials: int,
    confidence: float,
) -> dict[str, Any]:
    """The finding about variants and the first one, in words.

    Args:
        rows: One a variant: ``label``, ``difference`` from the first with its two ends,
            ``at_least``, ``adjusted_p_value`` and ``differs``.
        words: One a variant: what is done instead of what.
        base: The first variant's label.
        level: Its exposure, as a sentence.
        trials: Trainings of each variant.
        confidence: Of the intervals.
    """
    if not rows:
        return finding_row(
            headline="There is one variant, so nothing is compared",
            sentence=level,
            advice="Add a [[compare]] table to the recipe for each training choice to compare.",
        )
    if trials == 1:
        return finding_row(
            headline="One training of each variant cannot show a difference",
            sentence=level,
            advice=f"Set plan.trials to {_FEWEST} or more.",
        )
    differ = [(row, word) for row, word in zip(rows, words, strict=True) if row["differs"]]
    if not differ:
        widest = max(rows, key=_reach)
        upto = "" if math.isinf(_reach(widest)) else f" It may still be {_reach(widest):.1f} bits."
        return finding_row(
            headline="No difference in exposure was detected between the training choices",
            sentence=f"{level} {_none_of(rows)} significantly from it in {trials} trials.{upto}",
            advice=f"Run {max(_FEWEST, 2 * trials)} trials or more to detect smaller differences; "
            "do not take the choices for equal.",
        )
    differ.sort(key=lambda pair: -abs(pair[0]["difference"][0]))
    shown = {id(row): word for row, word in (_first(differ, 1), _first(differ, -1)) if row}
    changes = [
        f"{shown[id(row)]} {_change(row, confidence=confidence, several=len(rows) > 1)}"
        for row, _ in differ
        if id(row) in shown
    ]
    counts = ""
    if len(rows) > 1:
        counts = f" {len(differ)} of {counted(len(rows), 'variant')} {_differs(len(differ))} "
        counts += f"significantly from {base!r}."
    lower = [row for row, _ in differ if row["difference"][0] < 0]
    keep = lower[0]["label"] if lower else base
    return finding_row(
        headline="Training choices change exposure",
        sentence=f"{' '.join(changes)}{counts}",
        advice=f"Prefer {keep!r} if its validation bits are good enough: a variant that learns "
        "less also exposes less.",
    )


def _first(differ: list[tuple[dict[str, Any], str]], sign: int) -> tuple[dict[str, Any], str]:
    """The largest difference of one sign, or an empty row."""
    for row, word in differ:
        if row["difference"][0] * sign > 0:
            return row, word
    return {}, ""


def _instead(first: Run, other: Run) -> str:
    """What a variant does instead of what, as the subject of a sentence."""
    plain, changed = ({**one.study.to_dict()} for one in (first, other))
    for name in ("label", "title", "compare", "grid"):
        plain.pop(name, None)
        changed.pop(name, None)
    own, base = set(other.plan.repeats), set(first.plan.repeats)
    if list(difference(plain, changed)) == ["plan"] and len(own) == len(base) == 1:
        fields = difference(plain, changed)["plan"]
        if list(fields) == ["repeats"]:
            return f"Planting {times(*own)} instead of {times(*base)}"
    return f"{other.study.label!r} instead of {first.study.label!r}"


def _level(base: Levels, most: float) -> str:
    least = "at least " if base.at_least else ""
    return f"The mean exposure is {least}{base.least.mean():.1f} bits of {most:.1f} possible."


def _change(row: dict[str, Any], *, confidence: float, several: bool) -> str:
    """By how much, with the interval; the interval alone where one side is "at least"."""
    value, low, high = row["difference"]
    sure = f"{100 * confidence:.0f} % CI"
    verb = "adds" if value > 0 else "removes"
    small, large = sorted((abs(low), abs(high))) if low is not None and high is not None else (0, 0)
    tested = f"; Holm-adjusted p = {row['adjusted_p_value']:.2g}" if several else ""
    if row["at_least"]:
        return f"{verb} {small:.1f} to {large:.1f} bits ({sure}{tested})."
    return f"{verb} {abs(value):.1f} bits ({sure} {small:.1f} to {large:.1f}{tested})."


def _reach(row: dict[str, Any]) -> float:
    """The largest difference that the interval allows, in bits; infinite where there is none."""
    _, low, high = row["difference"]
    return math.inf if low is None or high is None else max(abs(low), abs(high))


def _differs(many: int) -> str:
    return "differs" if many == 1 else "differ"


def _none_of(rows: list[dict[str, Any]]) -> str:
    return "The other variant does not differ" if len(rows) == 1 else "No other variant differs"
