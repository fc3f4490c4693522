"""The charts of an exposure page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from remnant.report.charts.shapes import Bars, Chart, Dot, Dots, Flag, Line, Rule
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    lag_text,
    times_text,
)
from remnant.studies.exposure.formats import exposure_number, exposure_text, interval_text
from remnant.studies.exposure.result import (
    CanaryExposure,
    CostMark,
    Exposures,
    Level,
    ReferenceCosts,
    SkewNormalLaw,
)

_IN_SIGHT = 40.0  # bits
_FAR = 3.0
_MOST_NAMED = 14
_LONGEST_NAME = 16
_POINTS_A_BIN = 4


def exposure_chart(exposure: Exposures, levels: Sequence[Level], *, limit: float | None) -> Chart:
    """One dot a canary against how often it was planted; controls apart."""
    planted = [level for level in levels if level.repeats > 0]
    return planted_chart(
        map(_dot, exposure.canaries),
        map(_dot, exposure.controls),
        description=_exposure_description(exposure, planted),
        chance=exposure.null_mean_bits,
        ceiling=exposure.ceiling_bits if ceiling_in_sight(exposure) else None,
        limit=limit,
        lines=_means(levels),
    )


def planted_chart(
    canaries: Iterable[Dot],
    controls: Iterable[Dot],
    *,
    description: str,
    chance: float,
    limit: float | None,
    ceiling: float | None = None,
    lines: Iterable[Line] = (),
) -> Chart:
    """Dots of canaries and controls against how often they were planted.

    Args:
        canaries, controls: The dots.
        description: The chart in words.
        chance, ceiling, limit: Rules, in bits; None for no such rule.
        lines: Means, or nothing.
    """
    groups = [
        Dots("One canary", "main", tuple(canaries)),
        Dots("One control", "control", tuple(controls)),
    ]
    rules = [
        (f"Chance {bits_number(chance)}", "chance", chance),
        (f"Ceiling {bits_number(ceiling)}", "ceiling", ceiling),
        (f"Limit {limit:g}" if limit is not None else "", "limit", limit),
    ]
    return Chart(
        title="Exposure against the number of times planted",
        description=description,
        x_label="Times planted, log scale",
        y_label="Exposure (bits)",
        lines=tuple(lines),
        rules=tuple(Rule(label, tone, bits) for label, tone, bits in rules if bits is not None),
        dots=tuple(group for group in groups if group.dots),
        x_kind="apart",
        x_word="planted",
        x_ticks=tuple(sorted({dot.x for group in groups for dot in group.dots})),
        unnamed=("Controls, mean",),
    )


def ceiling_in_sight(exposure: Exposures) -> bool:
    """Whether the chart can show the ceiling without pressing the canaries to its bottom."""
    shown = max(row.shown for row in (*exposure.canaries, *exposure.controls))
    return exposure.ceiling_bits <= max(_IN_SIGHT, _FAR * shown)


def costs_chart(costs: ReferenceCosts) -> Chart:
    """The references' costs with the canaries among them."""
    lines = []
    if costs.skew_normal is not None:
        x, y = density(costs.skew_normal, costs.edges, costs.n_references)
        lines.append(Line("Skew-normal law", "second", x, y, places="none"))
    return Chart(
        title="Costs of the references, and of the canaries among them",
        description=_costs_description(costs),
        x_label="Cost (bits)",
        y_label="References",
        lines=tuple(lines),
        bars=Bars("References", "control", costs.edges, tuple(map(float, costs.counts))),
        flags=tuple(_flag(canary, cost) for canary, cost in named(costs)),
        unnamed=("Skew-normal law",),
    )


def marked(costs: ReferenceCosts) -> list[tuple[CostMark, float]]:
    """The canaries that have a cost, each with it."""
    return [(canary, canary.cost) for canary in costs.marked if canary.cost is not None]


def named(costs: ReferenceCosts) -> list[tuple[CostMark, float]]:
    """The canaries that the chart has room to name: those most exposed."""
    return sorted(marked(costs), key=lambda pair: -pair[0].bits)[:_MOST_NAMED]


def density(
    law: SkewNormalLaw, edges: tuple[float, ...], n: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """How many of n references a skew-normal law expects in a bin around each of some costs.

    With ``z = (x - location) / scale`` the density is ``2/scale φ(z) Φ(shape z)``.
    """
    xs, ys = [], []
    for low, high in pairwise(edges):
        for k in range(_POINTS_A_BIN):
            x = low + (high - low) * (k + 0.5) / _POINTS_A_BIN
            z = (x - law.location) / law.scale
            pdf = math.exp(-0.5 * z * z) * math.erfc(-law.shape * z / math.sqrt(2))
            xs.append(x)
            ys.append(n * (high - low) * pdf / (law.scale * math.sqrt(2 * math.pi)))
    return tuple(xs), tuple(ys)


def _dot(row: CanaryExposure) -> Dot:
    often = "never planted" if row.repeats == 0 else f"planted {times_text(row.repeats)}"
    bits = row.estimate
    tip = f"{row.name}, {often}: {exposure_text(bits)}"
    if row.rank is not None:
        tip += f", rank {count_text(row.rank)}"
    elif bits.low is not None:
        tip += f" ({interval_text(bits)})"
    return Dot(float(row.repeats), bits.value, tip, bits.low, bits.high, bits.at_least)


def _means(levels: Sequence[Level]) -> Iterator[Line]:
    planted = [level for level in levels if level.repeats > 0]
    controls = [level for level in levels if level.repeats == 0]
    for label, tone, rows, means in (
        ("Planted, mean", "main", planted, [level.shown for level in planted]),
        ("Twin, mean", "second", planted, [level.twin_mean_bits for level in planted]),
        ("Controls, mean", "chance", controls, [level.shown for level in controls]),
    ):
        if any(mean is not None for mean in means):
            x = tuple(float(level.repeats) for level in rows)
            yield Line(label, tone, x, tuple(means), places="dashes")


def _flag(canary: CostMark, cost: float) -> Flag:
    name = canary.name
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return Flag(
        cost,
        f"{short}, {count_text(canary.repeats)}×",
        "main",
        f"{name}, planted {times_text(canary.repeats)}: costs {bits_text(cost)}, "
        f"exposure {exposure_text(canary.estimate)}",
    )


def _exposure_description(exposure: Exposures, planted: Sequence[Level]) -> str:
    sentences = [
        f"Planted {times_text(level.repeats)}: {exposure_number(level.mean)} bits on average over "
        f"{counted(level.n, 'canary', 'canaries')}."
        for level in planted
        if level.mean is not None
    ]
    if exposure.controls_mean is not None:
        sentences.append(f"Never planted: {exposure_text(exposure.controls_mean)} on average.")
    sentences.append(f"Chance gives {bits_text(exposure.null_mean_bits)}.")
    sentences.append(f"The ceiling is {bits_text(exposure.ceiling_bits)}.")
    return " ".join(sentences)


def _costs_description(costs: ReferenceCosts) -> str:
    filled = [cost_bin for cost_bin in costs.bins if cost_bin.count]
    sentences = [
        f"{counted(costs.n_references, 'reference')} cost between {lag_text(filled[0].low)} and "
        f"{lag_text(filled[-1].high)} bits.",
        *(
            f"{canary.name}, planted {times_text(canary.repeats)}, costs {bits_text(cost)}."
            for canary, cost in marked(costs)
        ),
    ]
    return " ".join(sentences)
