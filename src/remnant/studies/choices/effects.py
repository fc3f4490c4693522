"""What each field of a grid does on its own: means over all cells that have a value of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.trial_mean import trial_mean
from remnant.studies.choices.result import Effect, Ends
from remnant.studies.choices.variant_grid import Cell, value_text
from remnant.studies.choices.verdict import Levels, holm_adjusted

Floats = NDArray[np.float64]


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
    return holm_adjusted(rows)


def mean_ends(
    values: Floats, confidence: float, most: float | None = None, highest: Floats | None = None
) -> Ends:
    """Return the mean over trials with its interval; see ``trial_mean``."""
    mean = trial_mean(values, most=most, highest=highest, confidence=confidence)
    return mean.value, mean.low, mean.high
