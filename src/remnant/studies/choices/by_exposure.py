"""Extraction, its cost and the error of an estimate, by exposure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from remnant.studies.choices.result import Band, TrainedVariant

_BITS = 4.0


def by_exposure(variants: Iterable[TrainedVariant], *, space_bits: float) -> tuple[Band, ...]:
    """Count the canaries of all variants in bands of four bits.

    The last band has the canaries that are ranked first, which have all the bits of the space.
    Canaries whose exposure is a lower bound are in none. Estimates are compared with exact ranks
    alone; extraction and nodes are of models that were searched.

    Args:
        variants: All of one space.
        space_bits: The maximum exposure.
    """
    bits, exact, extracted, nodes, estimates = _columns(variants)
    first = bits >= space_bits - 1e-9  # never of NaN
    bands = []
    edges = [*np.arange(0.0, space_bits, _BITS).tolist(), space_bits]
    for low, high in [*itertools.pairwise(edges), (space_bits, space_bits)]:
        inside = first if low == high else (bits >= low) & (bits < high) & ~first
        if not inside.any():
            continue
        error = (estimates - bits)[inside & exact & np.isfinite(estimates)]
        searched = inside & np.isfinite(nodes)
        bands.append(
            Band(
                low=low,
                high=high,
                canaries=int(inside.sum()),
                searched=int(searched.sum()),
                read_out=int(extracted[searched].sum()),
                nodes=float(np.median(nodes[searched])) if searched.any() else None,
                estimated=int(error.size),
                error=(float(error.mean()), float(error.min()), float(error.max()))
                if error.size
                else None,
            )
        )
    return tuple(bands)


def _columns(variants: Iterable[TrainedVariant]) -> list[Any]:
    """Bits, whether exact, whether extracted, nodes and estimates of all; NaN where not known."""
    parts = []
    for variant in variants:
        many = len(variant.each)
        nodes = variant.nodes_each
        parts.append(
            (
                np.where(variant.saturated_each or [False] * many, math.nan, variant.each),
                variant.exact_each,
                variant.extracted_each or [False] * many,
                np.repeat(nodes, many // len(nodes)) if nodes else [math.nan] * many,
                variant.skew_normal or [math.nan] * many,
            )
        )
    kinds = (float, bool, bool, float, float)
    return [
        np.concatenate([np.asarray(column, dtype=kind) for column in columns])
        for kind, columns in zip(kinds, zip(*parts, strict=True), strict=True)
    ]
