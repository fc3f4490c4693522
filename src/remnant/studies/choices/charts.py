"""The charts of pages about training choices and about defences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

from remnant.report.charts.figure import TONES
from remnant.report.charts.shapes import Chart, Dot, Dots, Line, Rule
from remnant.report.numerals import bits_number, bits_text, count_text
from remnant.studies.choices.formats import interval_bits
from remnant.studies.choices.result import (
    Defences,
    Interval,
    MeasuredVariant,
    Through,
    TrainingChoices,
)

_MOST_MARKED = 120  # uses of a canary that can still be distinguished
_REMEDY_GROUPS = (
    ("As planned", "second", ("as planned",)),
    ("Holds the limit", "main", ("holds",)),
    ("Does not, or is not shown to", "control", ("fails", "not shown")),
    ("Useless model", "chance", ("useless model",)),
)


def variants_chart(training: TrainingChoices) -> Chart:
    """One dot a canary: against how often it was planted, or against the variant's number."""
    planted = training.by_insertions
    places = [
        float(variant.planted or 0) if planted else float(number)
        for number, variant in enumerate(training.variants, start=1)
    ]
    placed = sorted(zip(places, training.variants, strict=True), key=lambda pair: pair[0])
    means = _line(
        "Mean over models",
        "second",
        tuple(x for x, _ in placed),
        [variant.mean_exposure for _, variant in placed],
        places="dashes",
    )
    dots = tuple(
        Dot(x, bits, f"{variant.label}: {bits_text(bits)}")
        for x, variant in zip(places, training.variants, strict=True)
        for bits in variant.each
    )
    title = "Exposure against the number of times planted"
    return Chart(
        title=title if planted else "Exposure of every variant",
        description=" ".join(
            f"{variant.label}: {interval_bits(variant.mean_exposure)}."
            for variant in training.variants
        ),
        x_label="Times planted, log scale" if planted else "Variant, by its number in the table",
        y_label="Exposure (bits)",
        lines=(means,) if planted and len(set(places)) == len(places) else (),
        rules=_rules(training),
        dots=(Dots("One canary in one model", "main", dots),),
        x_kind="apart" if planted else "linear",
        x_word="planted" if planted else "variant",
        x_ticks=tuple(sorted(set(places))),
        unnamed=("Mean over models",),
    )


def front_chart(training: TrainingChoices) -> Chart:
    """Exposure against usefulness, one dot a variant, and the Pareto front."""
    on_front = [variant.label in training.pareto for variant in training.variants]
    groups = (
        ("On the Pareto front of the means", "main", on_front),
        ("Not on it", "control", [not on for on in on_front]),
    )
    return _front(training, training.variants, groups, rules=_rules(training, ceiling=False))


def remedies_front_chart(defences: Defences) -> Chart:
    """Exposure against usefulness, one numbered dot a remedy, and the Pareto front."""
    groups = [
        (label, tone, [remedy.status in statuses for remedy in defences.remedies])
        for label, tone, statuses in _REMEDY_GROUPS
    ]
    limit, null = defences.limit, defences.null_mean_bits
    rules = (
        Rule(f"Limit {bits_number(limit)}", "limit", limit),
        Rule(f"Chance {bits_number(null)}", "chance", null),
    )
    return _front(defences, defences.remedies, groups, rules=rules, numbered=True)


def _front(
    choices: TrainingChoices | Defences,
    variants: Sequence[MeasuredVariant],
    groups: Sequence[tuple[str, str, list[bool]]],
    *,
    rules: tuple[Rule, ...],
    numbered: bool = False,
) -> Chart:
    """Exposure against usefulness.

    Args:
        choices: With the labels on the front, and what a token is.
        variants: One dot each, with both intervals.
        groups: Label, tone, and whether each variant belongs to it.
        rules: Lines across the chart.
        numbered: Whether dots have their number in the table.
    """
    token = choices.token
    words = [
        f"{variant.label}: {interval_bits(variant.validation)} a {token}, exposure "
        f"{interval_bits(variant.mean_exposure)}"
        for variant in variants
    ]
    dots = [
        _front_dot(variant, text, mark=number if numbered else 0)
        for number, (variant, text) in enumerate(zip(variants, words, strict=True), start=1)
    ]
    places = {variant.label: place for place, variant in enumerate(variants)}
    front = [places[label] for label in choices.pareto]
    line = Line(
        "The front",
        "main",
        tuple(variants[place].validation_bits[0] for place in front),
        tuple(variants[place].exposure[0] for place in front),
        places="none",
    )
    ends = [end for variant in variants for end in variant.validation_bits if end is not None]
    return Chart(
        title="Exposure against usefulness",
        description=" ".join(f"{words[place]}." for place in front),
        x_label=f"Bits a {token} of held-out text: fewer are more useful",
        y_label="Exposure (bits)",
        lines=(line,) if len(front) > 1 else (),
        rules=rules,
        dots=tuple(
            Dots(label, tone, tuple(itertools.compress(dots, chosen)))
            for label, tone, chosen in groups
            if any(chosen)
        ),
        x_form="number",
        x_digits=axis_digits(ends),
        x_word="validation bits",
        unnamed=("The front",),
    )


def _front_dot(variant: MeasuredVariant, words: str, mark: int) -> Dot:
    cost, left, right = variant.validation_bits
    bits, low, high = variant.exposure
    tip = f"{mark}. {words}" if mark else words
    return Dot(cost, bits, tip, low, high, left=left, right=right, mark=mark)


def through_charts(training: TrainingChoices) -> tuple[Chart, Chart]:
    """Exposure against epochs, and bits a token; as many variants as there are colours."""
    exposures, costs = [], []
    chosen = training.followed[: len(TONES)]
    for tone, (variant, through) in zip(TONES, chosen, strict=False):
        label, epoch, looks = variant.label, through.epoch, through.looks
        exposures.append(_line(label, tone, epoch, [look.exposure for look in looks]))
        costs.append(_line(f"{label}, held-out", tone, epoch, [look.validation for look in looks]))
        trained = tuple(look.training.value for look in looks)
        costs.append(Line(f"{label}, trained on", tone, epoch, trained, stroke="dashed"))
    return (
        Chart(
            title="Exposure through training",
            description=" ".join(map(_line_ends, exposures)),
            x_label="Epochs",
            y_label="Exposure (bits)",
            lines=tuple(exposures),
            rules=_rules(training, ceiling=False),
            x_form="number",
            x_word="epoch",
            seams=_used(chosen[0][1]),
            unnamed=tuple(line.label for line in exposures),
        ),
        Chart(
            title=f"Bits a {training.token} through training",
            description=" ".join(map(_line_ends, costs)),
            x_label="Epochs",
            y_label=f"Bits a {training.token}",
            lines=tuple(costs),
            x_form="number",
            x_word="epoch",
            unnamed=tuple(line.label for line in costs),
        ),
    )


def nodes_chart(training: TrainingChoices) -> Chart:
    """The nodes of each search, and whether it extracted the canary, against exposure."""
    groups = []
    for label, tone, wanted in (("Extracted", "main", True), ("Not extracted", "control", False)):
        dots = tuple(
            Dot(
                bits,
                math.log10(nodes),
                f"{variant.label}: {bits_text(bits)}, {count_text(round(nodes))} nodes",
            )
            for variant in training.searched
            for bits, extracted, nodes in variant.searches
            if extracted is wanted and nodes > 0
        )
        groups += [Dots(label, tone, dots)] if dots else []
    return Chart(
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


def estimate_chart(training: TrainingChoices) -> Chart:
    """The skew-normal estimate less the exact exposure, against the exact one."""
    dots = tuple(
        Dot(
            bits,
            estimate - bits,
            f"{variant.label}: exact {bits_text(bits)}, estimated {bits_text(estimate)}",
        )
        for variant in training.estimated
        for bits, estimate in variant.estimates
    )
    return Chart(
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


def _line(
    label: str,
    tone: str,
    x: tuple[float, ...],
    points: Sequence[Interval],
    places: Literal["dots", "dashes"] = "dots",
) -> Line:
    return Line(
        label,
        tone,
        x,
        tuple(point.value for point in points),
        tuple(point.low for point in points),
        tuple(point.high for point in points),
        places=places,
    )


def _used(through: Through) -> tuple[float, ...]:
    """When the first canary was used, in epochs; nothing where that is nearly always."""
    epoch_steps = through.epoch_steps
    if epoch_steps is None or len(through.uses) > _MOST_MARKED:
        return ()
    return tuple(step / epoch_steps for step in through.uses)


def _rules(training: TrainingChoices, *, ceiling: bool = True) -> tuple[Rule, ...]:
    null, most = training.null_mean_bits, training.space_bits
    rules = [Rule(f"Chance {bits_number(null)}", "chance", null)]
    if ceiling and max(bits for variant in training.variants for bits in variant.each) > most / 3:
        rules.append(Rule(f"Ceiling {bits_number(most)}", "ceiling", most))
    return tuple(rules)


def axis_digits(values: list[float]) -> int:
    """Return the digits that distinguish numbers on an axis: three, or more if they are close."""
    span, most = max(values) - min(values), max(map(abs, values))
    return 3 if span <= 0 else max(3, min(9, 2 + math.ceil(math.log10(most / span))))


def _line_ends(line: Line) -> str:
    known = [y for y in line.y if y is not None]
    return f"{line.label}: from {bits_text(known[0])} to {bits_text(known[-1])}."
