"""Which charts an exposure report has: from canaries and costs to dots, bars and flags."""

from __future__ import annotations

import math
from itertools import pairwise

from remnant.report.curve import lag_text
from remnant.report.exposure_view import (
    CanaryExposure,
    Costs,
    Exposure,
    ExposureView,
    Level,
    MarkedCanary,
    SkewNormalFit,
)
from remnant.report.exposure_words import (
    exposure_text,
    interval_text,
    mean_number,
    rank_text,
)
from remnant.report.figure import Figure, figure_of
from remnant.report.numerals import bits_number, bits_text, count_text, counted, times_text
from remnant.report.run_view import NotMeasured, Verdict
from remnant.report.shapes import Bars, Chart, Dot, Dots, Flag, Line, Rule

_LONGEST_NAME = 16
_FINE = 4  # points of the density a bin


def exposure_figures(view: ExposureView, ident: str = "") -> dict[str, Figure | None]:
    """All charts of the view by name, None where there is nothing to draw."""
    limit = view.verdict.limit if isinstance(view.verdict, Verdict) else None
    found, costs = view.exposure, view.costs
    levels = () if isinstance(view.repeats, NotMeasured) else view.repeats
    return {
        "exposure": None
        if isinstance(found, NotMeasured)
        else repeats_figure(found, levels, limit=limit, ident=ident),
        "costs": None if isinstance(costs, NotMeasured) else costs_figure(costs, ident),
    }


def repeats_figure(
    found: Exposure, levels: tuple[Level, ...], *, limit: float | None = None, ident: str = ""
) -> Figure:
    """One dot a canary against how often it was planted; controls apart."""
    dots = [
        Dots(label, tone, tuple(_dot(one) for one in group))
        for label, tone, group in (
            ("One canary", "main", found.canaries),
            ("One control", "control", found.controls),
        )
        if group
    ]
    planted = [level for level in levels if level.repeats > 0]
    never = [level for level in levels if level.repeats == 0]
    lines = []
    if planted:
        lines.append(_means("Planted, mean", "main", planted, twin=False))
    if any(level.twin_mean_bits is not None for level in planted):
        lines.append(_means("Twin, mean", "second", planted, twin=True))
    if never:
        lines.append(_means("Controls, mean", "chance", never, twin=False))
    rules = [Rule(f"Chance {bits_number(found.null_mean)}", "chance", found.null_mean)]
    if found.ceiling_in_sight:
        rules.append(Rule(f"Ceiling {bits_number(found.ceiling)}", "ceiling", found.ceiling))
    if limit is not None:
        rules.append(Rule(f"Limit {limit:g}", "limit", limit))
    chart = Chart(
        title="Exposure against the number of times planted",
        description=_repeats_description(found, planted),
        x_label="Times planted, log scale",
        y_label="Exposure (bits)",
        lines=tuple(lines),
        rules=tuple(rules),
        dots=tuple(dots),
        x_kind="apart",
        x_word="planted",
        x_ticks=tuple(sorted({dot.x for group in dots for dot in group.dots})),
        unnamed=("Controls, mean",),
    )
    return figure_of(chart, f"{ident}exposure")


def costs_figure(costs: Costs, ident: str = "") -> Figure:
    """The references' costs with the canaries among them."""
    lines = []
    if costs.skew_normal is not None:
        x, y = density(costs.skew_normal, costs.edges, costs.n_references)
        lines.append(Line("Skew-normal law", "second", x, y, places="none"))
    chart = Chart(
        title="Costs of the references, and of the canaries among them",
        description=_costs_description(costs),
        x_label="Cost (bits)",
        y_label="References",
        lines=tuple(lines),
        bars=Bars("References", "control", costs.edges, tuple(map(float, costs.counts))),
        flags=tuple(
            Flag(
                one.cost,
                f"{_short(one.name)}, {count_text(one.repeats)}×",
                "main",
                f"{one.name}, planted {times_text(one.repeats)}: costs {bits_text(one.cost)}, "
                f"exposure {_marked_text(one)}",
            )
            for one in costs.named
        ),
        unnamed=("Skew-normal law",),
    )
    return figure_of(chart, f"{ident}costs", flags="A canary, and how often it was planted")


def density(
    law: SkewNormalFit, edges: tuple[float, ...], n: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The references that a skew-normal law expects in a bin around each of some costs.

    With ``z = (x - location) / scale`` the density is ``2/scale φ(z) Φ(shape z)``.
    """
    xs, ys = [], []
    for first, last in pairwise(edges):
        for k in range(_FINE):
            x = first + (last - first) * (k + 0.5) / _FINE
            z = (x - law.location) / law.scale
            pdf = math.exp(-0.5 * z * z) * math.erfc(-law.shape * z / math.sqrt(2))
            xs.append(x)
            ys.append(n * (last - first) * pdf / (law.scale * math.sqrt(2 * math.pi)))
    return tuple(xs), tuple(ys)


def _dot(one: CanaryExposure) -> Dot:
    often = "never planted" if one.repeats == 0 else f"planted {times_text(one.repeats)}"
    tip = f"{one.name}, {often}: {exposure_text(one)}"
    if one.rank is not None:
        tip += f", rank {rank_text(one)}"
    elif one.low is not None:
        tip += f" ({interval_text(one)})"
    return Dot(float(one.repeats), one.told, tip, one.low, one.high, one.saturated)


def _marked_text(one: MarkedCanary) -> str:
    return bits_text(one.bits) if one.at_least is None else f"at least {bits_text(one.at_least)}"


def _means(label: str, tone: str, levels: list[Level], *, twin: bool) -> Line:
    return Line(
        label,
        tone,
        tuple(float(level.repeats) for level in levels),
        tuple(level.twin_mean_bits if twin else level.told for level in levels),
        places="dashes",
    )


def _repeats_description(found: Exposure, planted: list[Level]) -> str:
    sentences = [
        f"Planted {times_text(level.repeats)}: {mean_number(level)} bits on average over "
        f"{counted(level.n, 'canary', 'canaries')}."
        for level in planted
        if level.mean_bits is not None
    ]
    if found.controls_mean is not None:
        least = "at least " if found.controls_at_least else ""
        sentences.append(f"Never planted: {least}{bits_text(found.controls_mean)} on average.")
    return " ".join(
        [
            *sentences,
            f"Chance gives {bits_text(found.null_mean)}.",
            f"The ceiling is {bits_text(found.ceiling)}.",
        ]
    )


def _costs_description(costs: Costs) -> str:
    spans = zip(costs.counts, costs.edges, costs.edges[1:], strict=False)
    filled = [(low, high) for count, low, high in spans if count]
    sentences = [
        f"{counted(costs.n_references, 'reference')} cost between {lag_text(filled[0][0])} and "
        f"{lag_text(filled[-1][1])} bits.",
        *(
            f"{one.name}, planted {times_text(one.repeats)}, costs {bits_text(one.cost)}."
            for one in costs.marked
        ),
    ]
    return " ".join(sentences)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
