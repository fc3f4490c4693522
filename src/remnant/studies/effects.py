"""What each field of a grid does on its own: means over all cells that have one of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures.trial_mean import trial_mean
from remnant.studies.differences import adjust_for_number
from remnant.studies.exposure_training_verdict import Levels
from remnant.studies.variant_grid import Cell, told

Floats = NDArray[np.float64]


def main_effects(
    cells: Sequence[Cell],
    exposure: Sequence[Levels],
    validation: Sequence[Floats],
    *,
    most: float,
    along: Mapping[str, Sequence[str]] | None = None,
    confidence: float = 0.95,
) -> list[dict[str, Any]]:
    """Return a row for each value of each field, where a grid has two fields or more.

    A trial has every cell, so its mean over the cells with a value is one number, and values are
    compared trial by trial with the field's first. P-values are corrected by Holm for all of them.

    Args:
        cells: The grid's, whole.
        exposure, validation: Of each cell, one number a trial.
        most: The most exposure there is.
        along: Fields that move with others, by the others' names.
        confidence: Of the intervals.
    """
    axes = {
        name: list(dict.fromkeys(told(cell.values[name]) for cell in cells))
        for name in (cells[0].values if cells else ())
    }
    if sum(len(levels) > 1 for levels in axes.values()) < 2:
        return []
    rows: list[dict[str, Any]] = []
    for name, levels in axes.items():
        if len(levels) < 2:
            continue
        base: Levels | None = None
        for level in levels:
            own = [i for i, cell in enumerate(cells) if told(cell.values[name]) == level]
            bits = Levels(
                np.mean([exposure[i].least for i in own], axis=0),
                np.mean([exposure[i].highest for i in own], axis=0),
            )
            mean = trial_mean(bits.least, most=most, highest=bits.highest, confidence=confidence)
            cost = np.mean([validation[i] for i in own], axis=0)
            row: dict[str, Any] = {
                "field": name,
                "value": level,
                "cells": len(own),
                "along": list((along or {}).get(name, ())),
                "exposure": _ends(mean),
                "at_least": bits.at_least,
                "validation_bits": _ends(trial_mean(cost, confidence=confidence)),
                "difference": None,
                "difference_at_least": False,
                "p_value": None,
                "adjusted_p_value": None,
            }
            if base is None:
                base = bits
            else:
                gap = bits.above(base, most=most, confidence=confidence)
                row |= {"difference": _ends(gap), "p_value": gap.p_value}
                row["difference_at_least"] = bits.at_least or base.at_least
            rows.append(row)
    adjust_for_number(rows)
    return rows


def _ends(found: Any) -> list[float | None]:
    return [found.value, found.low, found.high]
