"""What can be read out, what a search costs and how far an estimate is off, by exposure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_BITS = 4.0


def by_exposure(
    variants: Iterable[Mapping[str, Any]], *, space_bits: float
) -> list[dict[str, Any]]:
    """Gather canaries of all variants, as ``training_fields`` tells them, in steps of four bits.

    The last row is of those ranked first, which have all the bits of the space. Canaries known as
    "at least" only are in none. Estimates are held against exact ranks alone; extraction and nodes
    are of models that were searched.

    Example:
        >>> seen = {"each": [1.0, 8.0], "exact_each": [True, True], "skew_normal": [1.5, 6.0]}
        >>> one = seen | {"extracted_each": [False, True], "nodes_each": [900, 50]}
        >>> rows = by_exposure([one], space_bits=8.0)
        >>> [(row["low"], row["read_out"], row["error"]) for row in rows]
        [(0.0, 0, [0.5, 0.5, 0.5]), (8.0, 1, [-2.0, -2.0, -2.0])]
    """
    bits, exact, read, nodes, guess = _columns(variants)
    first = bits >= space_bits - 1e-9  # never of NaN
    made = []
    edges = [*np.arange(0.0, space_bits, _BITS).tolist(), space_bits]
    for low, high in [*itertools.pairwise(edges), (space_bits, space_bits)]:
        inside = first if low == high else (bits >= low) & (bits < high) & ~first
        if inside.any():
            error = (guess - bits)[inside & exact & np.isfinite(guess)]
            searched = inside & np.isfinite(nodes)
            made.append(
                {
                    "low": low,
                    "high": high,
                    "canaries": int(inside.sum()),
                    "searched": int(searched.sum()),
                    "read_out": int(read[searched].sum()),
                    "nodes": float(np.median(nodes[searched])) if searched.any() else None,
                    "estimated": int(error.size),
                    "error": [float(error.mean()), float(error.min()), float(error.max())]
                    if error.size
                    else None,
                }
            )
    return made


def _columns(variants: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Bits, whether exact, whether read out, nodes and estimates of all; NaN where not known."""
    parts = []
    for one in variants:
        many = len(one["each"])
        unknown = [math.nan] * many
        nodes = one.get("nodes_each")
        saturated = one.get("saturated_each") or [False] * many
        parts.append(
            (
                np.where(saturated, math.nan, one["each"]),
                one["exact_each"],
                one.get("extracted_each") or [False] * many,
                np.repeat(nodes, many // len(nodes)) if nodes else unknown,
                one.get("skew_normal") or unknown,
            )
        )
    kinds = (float, bool, bool, float, float)
    return [
        np.concatenate([np.asarray(column, dtype=kind) for column in columns])
        for kind, columns in zip(kinds, zip(*parts, strict=True), strict=True)
    ]
