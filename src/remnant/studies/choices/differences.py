"""How exposed a variant is, and how far it is from the first: trial by trial, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.paired_difference import PairedDifference, paired_difference
from remnant.measures.statistics.trial_mean import trial_mean
from remnant.records import Record
from remnant.studies.choices.result import Difference, Effect, Ends
from remnant.studies.choices.variant_grid import Cell, value_text

Floats = NDArray[np.float64]


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


def mean_ends(
    values: Floats, confidence: float, most: float | None = None, highest: Floats | None = None
) -> Ends:
    """Return the mean over trials with its interval; see ``trial_mean``."""
    mean = trial_mean(values, most=most, highest=highest, confidence=confidence)
    return mean.value, mean.low, mean.high


def differences(
    gaps: Sequence[PairedDifference],
    *,
    at_least: Sequence[bool],
    confidence: float,
    labels: Sequence[str] | None = None,
    enough: bool = True,
) -> list[Difference]:
    """Return the differences of all variants from the first, p-values corrected for their number.

    Args:
        gaps: One a variant.
        at_least: Whether one side of each is a lower bound.
        confidence: A difference is significant where its corrected p-value is at most one less
            this.
        labels: Of the variants, where a difference is stored apart from its variant.
        enough: Whether there are enough trials to call any difference significant.
    """
    adjusted = holm_adjusted([gap.p_value for gap in gaps])
    return [
        Difference(
            label=None if labels is None else labels[place],
            difference=(gap.value, gap.low, gap.high),
            at_least=at_least[place],
            p_value=gap.p_value,
            adjusted_p_value=p_value,
            differs=enough and p_value is not None and p_value <= 1.0 - confidence,
        )
        for place, (gap, p_value) in enumerate(zip(gaps, adjusted, strict=True))
    ]


def holm_adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected by Holm for their number; None stays.

    Example:
        >>> holm_adjusted([0.01, None, 0.04])
        [0.02, None, 0.04]
    """
    known = [p_value for p_value in p_values if p_value is not None]
    adjusted = iter(holm(known) if known else ())
    return [None if p_value is None else float(next(adjusted)) for p_value in p_values]


def main_effects(
    cells: Sequence[Cell],
    exposure: Sequence[Levels],
    validation: Sequence[Floats],
    *,
    most: float,
    along: Mapping[str, Sequence[str]] | None = None,
    confidence: float = 0.95,
) -> list[Effect]:
    """Return a row for each value of each field, if a grid has two fields or more.

    A trial has every cell, so its mean over the cells with a value is one number, and values are
    compared trial by trial with the field's first. P-values are corrected by Holm for all of them.

    Args:
        cells: The grid's, whole.
        exposure, validation: Of each cell, one number per trial.
        most: The maximum exposure.
        along: Fields that change with others, by the names of the others.
        confidence: Of the intervals.
    """
    axes = {
        name: list(dict.fromkeys(value_text(cell.values[name]) for cell in cells))
        for name in (cells[0].values if cells else ())
    }
    if sum(len(levels) > 1 for levels in axes.values()) < 2:
        return []
    rows: list[Effect] = []
    for name, levels in axes.items():
        if len(levels) < 2:
            continue
        base: Levels | None = None
        for level in levels:
            own = [i for i, cell in enumerate(cells) if value_text(cell.values[name]) == level]
            bits = Levels(
                np.mean([exposure[i].least for i in own], axis=0),
                np.mean([exposure[i].highest for i in own], axis=0),
            )
            cost = np.mean([validation[i] for i in own], axis=0)
            gap = None if base is None else bits.above(base, most=most, confidence=confidence)
            rows.append(
                Effect(
                    field=name,
                    value=level,
                    cells=len(own),
                    along=tuple((along or {}).get(name, ())),
                    exposure=mean_ends(bits.least, confidence, most, bits.highest),
                    at_least=bits.at_least,
                    validation_bits=mean_ends(cost, confidence),
                    difference=None if gap is None else (gap.value, gap.low, gap.high),
                    difference_at_least=base is not None and (bits.at_least or base.at_least),
                    p_value=None if gap is None else gap.p_value,
                    adjusted_p_value=None,
                )
            )
            base = base or bits
    adjusted = holm_adjusted([row.p_value for row in rows])
    return [
        replace(row, adjusted_p_value=p_value) for row, p_value in zip(rows, adjusted, strict=True)
    ]
