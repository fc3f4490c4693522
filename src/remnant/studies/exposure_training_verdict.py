"""Which variants of a training differ in exposure, and what may be said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures.paired_difference import PairedDifference, paired_difference
from remnant.records import Record
from remnant.studies.differences import adjust_for_number

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
    """Say which variants differ from the first in exposure.

    Each trial of a variant and the first's make a pair, and p-values are corrected for the number
    of variants by Holm. FAIL where a variant raises exposure, PASS where one lowers it and none
    is seen to raise it, INCONCLUSIVE where none can be told from the first. With fewer than five
    trials several variants are not told apart: a paired test that knows no law cannot have a
    p-value below 2^(1 - trials), and smaller ones rest on tails that were never seen.
    """
    confidence, most = study.measure.confidence, math.log2(study.secret.planted.space)
    base = exposure_levels(record, "primary", most)
    rows: list[dict[str, Any]] = []
    for name, run in list(runs.items())[1:]:
        own = exposure_levels(record, name, most)
        found = own.above(base, most=most, confidence=confidence)
        rows.append(
            {
                "label": run.study.label,
                "difference": [found.value, found.low, found.high],
                "at_least": own.at_least or base.at_least,
                "p_value": found.p_value,
                "adjusted_p_value": None,
                "differs": False,
            }
        )
    adjust_for_number(rows)
    enough = len(rows) == 1 or study.plan.trials >= _FEWEST
    for row in rows:
        adjusted = row["adjusted_p_value"]
        row["differs"] = adjusted is not None and adjusted <= 1.0 - confidence and enough
    more = [row for row in rows if row["differs"] and row["difference"][0] > 0]
    less = [row for row in rows if row["differs"] and row["difference"][0] < 0]
    outcome = "FAIL" if more else "PASS" if less else "INCONCLUSIVE"
    return {
        "outcome": outcome,
        "sentence": _sentence(study, rows, more, less, base),
        "limit": None,
        "lag": None,
        "differences": rows,
    }


def _sentence(
    study: ExposureTrainingStudy,
    rows: list[dict[str, Any]],
    more: list[dict[str, Any]],
    less: list[dict[str, Any]],
    base: Levels,
) -> str:
    least = "at least " if base.at_least else ""
    begun = f"With {study.label!r} the canaries have an exposure of {least}"
    begun += f"{base.least.mean():.1f} bits on average"
    begun += f", of {math.log2(study.secret.planted.space):.1f} at most"
    if not rows:
        return f"{begun}; there is nothing to compare it with."
    if study.plan.trials == 1:
        return f"{begun}; one trial shows nothing of how trials differ, so run two or more."
    if not more and not less:
        few = len(rows) > 1 and study.plan.trials < _FEWEST
        hint = f" Run {_FEWEST} or more." if few else ""
        return (
            f"{begun}, and {_none_of(rows)} be told from it in {study.plan.trials} trials. "
            f"That is no proof that they are alike.{hint}"
        )
    parts = []
    for word, found in (("more", more), ("less", less)):
        if found:
            most = max(found, key=lambda row: abs(row["difference"][0]))
            told = f"{most['label']!r} ({_gap(most, alone=len(rows) > 1)})"
            if len(rows) == 1:
                parts.append(f"the other variant has {word}: {told}")
            else:
                has = "has" if len(found) == 1 else "have"
                parts.append(f"{len(found)} of {len(rows)} others {has} {word}, the most {told}")
    open_ends = [row["difference"][2] for row in rows if not row["differs"]]
    left = ""
    if open_ends and not more:
        reach = [end for end in open_ends if end is not None]
        upto = f", and may have up to {max(reach):.1f} bits more" if reach else ""
        left = f"; {_not_told(len(open_ends))} from it{upto}"
    return f"{begun}; {' and '.join(parts)}{left}."


def _gap(row: dict[str, Any], *, alone: bool) -> str:
    """A difference with its interval; the interval only, where one side is "at least"."""
    value, low, high = row["difference"]
    if low is None or high is None:
        return f"{value:+.1f} bits"
    if row["at_least"]:
        return f"{low:+.1f} to {high:+.1f} bits"
    return f"{value:+.1f} bits, {'by itself' if alone else 'interval'} {low:+.1f} to {high:+.1f}"


def _not_told(many: int) -> str:
    return "one other cannot be told" if many == 1 else f"{many} others cannot be told"


def _none_of(rows: list[dict[str, Any]]) -> str:
    return "the other variant cannot" if len(rows) == 1 else f"none of {len(rows)} others can"
