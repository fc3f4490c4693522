"""Which charts a report about training choices has."""

from __future__ import annotations

import math

from remnant.report.figure import HALF, TONES, Figure, figure_of
from remnant.report.numerals import bits_number, bits_text, count_text
from remnant.report.run_view import NotMeasured
from remnant.report.shapes import Chart, Dot, Dots, Line, Rule
from remnant.report.training_view import Interval, Through, Training, TrainingView
from remnant.report.training_words import interval_bits

_MOST_MARKED = 120  # uses of a canary that can still be told apart


def training_figures(
    view: TrainingView, ident: str = ""
) -> dict[str, Figure | list[Figure] | None]:
    """All charts of the view by name, None where there is nothing to draw."""
    found = view.training
    if isinstance(found, NotMeasured):
        return {"variants": None, "front": None, "through": [], "nodes": None, "estimate": None}
    several = len(found.variants) > 2  # two make no front to look at
    return {
        "variants": variants_figure(found, ident),
        "front": front_figure(found, ident) if several else None,
        "through": through_figures(found, ident) if found.followed else [],
        "nodes": nodes_figure(found, ident) if found.searched else None,
        "estimate": estimate_figure(found, ident) if found.estimated else None,
    }


def variants_figure(found: Training, ident: str = "") -> Figure:
    """One dot a canary: against how often it was planted, or against the variant's number."""
    planted = found.by_insertions
    places = [
        float(one.planted or 0) if planted else float(number)
        for number, one in enumerate(found.variants, start=1)
    ]
    dots = tuple(
        Dot(x, bits, f"{one.label}: {bits_text(bits)}")
        for x, one in zip(places, found.variants, strict=True)
        for bits in one.each
    )
    order = sorted(range(len(places)), key=lambda i: places[i])
    means = Line(
        "Mean over models",
        "second",
        tuple(places[i] for i in order),
        tuple(found.variants[i].exposure.value for i in order),
        tuple(found.variants[i].exposure.low for i in order),
        tuple(found.variants[i].exposure.high for i in order),
        places="dashes",
    )
    chart = Chart(
        title="Exposure against the number of times planted"
        if planted
        else "Exposure of every variant",
        description=" ".join(
            f"{one.label}: {interval_bits(one.exposure)}." for one in found.variants
        ),
        x_label="Times planted, log scale" if planted else "Variant, by its number in the table",
        y_label="Exposure (bits)",
        lines=(means,) if planted and len(set(places)) == len(places) else (),
        rules=_rules(found),
        dots=(Dots("One canary in one model", "main", dots),),
        x_kind="apart" if planted else "linear",
        x_word="planted" if planted else "variant",
        x_ticks=tuple(sorted(set(places))),
        unnamed=("Mean over models",),
    )
    return figure_of(chart, f"{ident}variants")


def front_figure(found: Training, ident: str = "") -> Figure:
    """Usefulness against exposure, one dot a variant, and the front of those nothing beats."""
    groups = []
    for label, tone, chosen in (
        ("On the Pareto front of the means", "main", True),
        ("Not on it", "control", False),
    ):
        dots = tuple(
            Dot(
                one.validation.value,
                one.exposure.value,
                f"{one.label}: {interval_bits(one.validation)} a {found.token}, exposure "
                f"{interval_bits(one.exposure)}",
                one.exposure.low,
                one.exposure.high,
                left=one.validation.low,
                right=one.validation.high,
            )
            for one in found.variants
            if (one.label in found.front) is chosen
        )
        if dots:
            groups.append(Dots(label, tone, dots))
    named = {one.label: one for one in found.variants}
    front = [named[label] for label in found.front]
    line = Line(
        "The front",
        "main",
        tuple(one.validation.value for one in front),
        tuple(one.exposure.value for one in front),
        places="none",
    )
    chart = Chart(
        title="Exposure against usefulness",
        description=" ".join(
            f"{one.label}: {interval_bits(one.validation)} a {found.token} and an exposure of "
            f"{interval_bits(one.exposure)}."
            for one in front
        ),
        x_label=f"Bits a {found.token}, held-out text",
        y_label="Exposure (bits)",
        lines=(line,) if len(front) > 1 else (),
        rules=_rules(found, ceiling=False),
        dots=tuple(groups),
        x_form="number",
        x_digits=_digits([end for one in found.variants for end in _reach(one.validation)]),
        x_word="validation bits",
        unnamed=("The front",),
    )
    return figure_of(chart, f"{ident}front")


def through_figures(found: Training, ident: str = "") -> list[Figure]:
    """Exposure against epochs, and what a token costs; as many variants as there are colours."""
    chosen = found.followed[: len(TONES)]
    exposures, costs = [], []
    for tone, one in zip(TONES, chosen, strict=False):
        if one.through is None:
            continue
        exposures.append(_line(one.label, tone, one.through, one.through.exposure))
        costs.append(_line(f"{one.label}, kept back", tone, one.through, one.through.validation))
        costs.append(
            Line(
                f"{one.label}, trained on",
                tone,
                one.through.epoch,
                tuple(point.value for point in one.through.training),
                stroke="dashed",
            )
        )
    first = chosen[0].through
    made = []
    for title, key, unit, lines in (
        ("Exposure through training", "through", "Exposure (bits)", exposures),
        ("What a token costs through training", "costs", f"Bits a {found.token}", costs),
    ):
        chart = Chart(
            title=title,
            description=" ".join(_ends(line) for line in lines),
            x_label="Epochs",
            y_label=unit,
            lines=tuple(lines),
            rules=_rules(found, ceiling=False) if key == "through" else (),
            x_form="number",
            x_word="epoch",
            seams=_used(first) if key == "through" else (),
            unnamed=tuple(line.label for line in lines),
        )
        made.append(figure_of(chart, f"{ident}{key}", HALF))
    return made


def nodes_figure(found: Training, ident: str = "") -> Figure:
    """How many nodes the search took, and whether it found the canary, against exposure."""
    groups = []
    for label, tone, hit in (("Read out", "main", True), ("Not read out", "control", False)):
        dots = []
        for one in found.searched:
            share = len(one.each) // max(len(one.nodes_each), 1)
            for i, (bits, out) in enumerate(zip(one.each, one.read_out, strict=True)):
                nodes = one.nodes_each[i // share]
                if out is hit and nodes > 0:
                    tip = f"{one.label}: {bits_text(bits)}, {count_text(round(nodes))} nodes"
                    dots.append(Dot(bits, math.log10(nodes), tip))
        if dots:
            groups.append(Dots(label, tone, tuple(dots)))
    chart = Chart(
        title="Nodes of the search against exposure",
        description=" ".join(
            f"{group.label}: {len(group.dots)} canaries, exposures from "
            f"{bits_number(min(dot.x for dot in group.dots))} to "
            f"{bits_number(max(dot.x for dot in group.dots))}."
            for group in groups
        ),
        x_label="Exposure (bits)",
        y_label="Nodes, power of ten",
        dots=tuple(groups),
        x_form="number",
        x_word="exposure",
    )
    return figure_of(chart, f"{ident}nodes", HALF)


def estimate_figure(found: Training, ident: str = "") -> Figure:
    """The skew-normal estimate less the exact exposure, against the exact one."""
    dots = tuple(
        Dot(
            bits,
            guess - bits,
            f"{one.label}: exact {bits_text(bits)}, estimated {bits_text(guess)}",
        )
        for one in found.estimated
        for bits, guess in one.estimates
    )
    chart = Chart(
        title="Skew-normal estimate less the exact exposure",
        description=f"{len(dots)} canaries; errors from {min(dot.y for dot in dots):.2f} to "
        f"{max(dot.y for dot in dots):.2f} bits.",
        x_label="Exact exposure (bits)",
        y_label="Estimate − exact (bits)",
        rules=(Rule("No error", "chance", 0.0),),
        dots=(Dots("One canary in one model", "main", dots),),
        x_form="number",
        x_word="exposure",
    )
    return figure_of(chart, f"{ident}estimate", HALF)


def _line(label: str, tone: str, through: Through, points: tuple[Interval, ...]) -> Line:
    return Line(
        label,
        tone,
        through.epoch,
        tuple(point.value for point in points),
        tuple(point.low for point in points),
        tuple(point.high for point in points),
    )


def _used(through: Through | None) -> tuple[float, ...]:
    """When the first canary was used, in epochs; nothing where that is nearly always."""
    if through is None or through.epoch_steps is None or len(through.uses) > _MOST_MARKED:
        return ()
    return tuple(step / through.epoch_steps for step in through.uses)


def _rules(found: Training, *, ceiling: bool = True) -> tuple[Rule, ...]:
    rules = [Rule(f"Chance {bits_number(found.null_mean)}", "chance", found.null_mean)]
    if ceiling and max(bits for one in found.variants for bits in one.each) > found.space_bits / 3:
        rules.append(Rule(f"Ceiling {bits_number(found.space_bits)}", "ceiling", found.space_bits))
    return tuple(rules)


def _reach(one: Interval) -> list[float]:
    return [end for end in (one.value, one.low, one.high) if end is not None]


def _digits(values: list[float]) -> int:
    """How many digits tell numbers on an axis apart: three, or more where they lie close."""
    span, most = max(values) - min(values), max(map(abs, values))
    return 3 if span <= 0 else max(3, min(9, 2 + math.ceil(math.log10(most / span))))


def _ends(line: Line) -> str:
    known = [y for y in line.y if y is not None]
    return f"{line.label}: from {bits_text(known[0])} to {bits_text(known[-1])}."
