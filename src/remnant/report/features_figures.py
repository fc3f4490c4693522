"""Which charts a report on unique features has: canaries, training, influence, units."""

from __future__ import annotations

import math
from collections.abc import Iterable

from remnant.report.curve import percent, short_percent
from remnant.report.features_numerals import correlation_text, estimate_text, number_text
from remnant.report.features_view import (
    Activations,
    Canary,
    Change,
    Features,
    FeaturesView,
    ThroughTraining,
    Variant,
)
from remnant.report.figure import Figure, Size, figure_of
from remnant.report.numerals import counted, power_text, pvalue_text
from remnant.report.prediction_numerals import epochs_text
from remnant.report.prediction_view import Estimate
from remnant.report.run_view import NotMeasured
from remnant.report.scale import Kind, lag_scale_kind
from remnant.report.shapes import Chart, Dot, Dots, Line, Rule

NAMES = ("by_canary", "through", "influence", "changes", "activations")
_WIDE = Size(880, 340, direct_labels=False)
_NAMED = Size(880, 320, direct_labels=True)
_SQUARE = Size(430, 360, direct_labels=False)
_ASIDE = 0.17  # of the way to the next canary
_PLAIN_NATS = 0.05
_DECADE = 20.0
_ROUNDING = 1e-12


def features_figures(view: FeaturesView, ident: str = "") -> list[dict[str, Figure | None]]:
    """The charts of every variant by name, None where there is nothing to draw."""
    found = view.features
    if isinstance(found, NotMeasured):
        return []
    return [
        variant_figures(found, variant, f"{ident}v{i}-" if i else ident)
        for i, variant in enumerate(found.variants)
    ]


def variant_figures(found: Features, variant: Variant, ident: str = "") -> dict[str, Figure | None]:
    """All charts of one way to train."""
    figures: dict[str, Figure | None] = dict.fromkeys(NAMES)
    if variant.canaries:
        figures["by_canary"] = canary_figure(found, variant, ident)
    if variant.through is not None and variant.through.epoch:
        figures["through"] = through_figure(variant.through, ident)
    if any(one.influence is not None for one in variant.canaries):
        figures["influence"] = influence_figure(variant, ident)
    if variant.influence is not None and any(map(_has_change, variant.influence.changes)):
        figures["changes"] = changes_figure(variant.influence.changes, ident)
    if variant.activations is not None and variant.activations.letter:
        figures["activations"] = activations_figure(variant.activations, ident)
    return figures


def canary_figure(found: Features, variant: Variant, ident: str = "") -> Figure:
    """One dot a model: those of a canary's seeds, and beside them their twins."""
    rows = by_mean(variant.canaries)
    factor, unit = unit_of(v for one in rows for v in (*one.m, *one.twin_m))
    limit = short_percent(found.significance)
    planted: dict[bool, list[Dot]] = {True: [], False: []}
    twins = []
    for place, one in enumerate(rows, start=1):
        name = f"Example {one.example}, label {one.label}"
        for seed, (m, p) in enumerate(zip(one.m, one.p, strict=True), start=1):
            tip = f"{name}, seed {seed}: M {number_text(m)}, p {pvalue_text(p)}"
            stands_out = p <= found.significance + _ROUNDING
            planted[stands_out].append(Dot(place - _ASIDE, factor * m, tip))
        for seed, m in enumerate(one.twin_m, start=1):
            tip = f"Nothing planted, seed {seed}: M {number_text(m)}"
            twins.append(Dot(place + _ASIDE, factor * m, tip))
    groups = (
        (f"Planted, stands out (p ≤ {limit})", "main", planted[True]),
        ("Planted, does not stand out", "second", planted[False]),
        ("Twin of the same seed, nothing planted", "control", twins),
    )
    chart = Chart(
        title="M of every model, by canary",
        description=_canaries_told(rows),
        x_label="Canary, the highest mean first",
        y_label=f"M ({unit})",
        dots=tuple(Dots(label, tone, tuple(dots)) for label, tone, dots in groups if dots),
        rules=(Rule("M = 0", "chance", 0.0),),
        x_word="canary",
        x_ticks=tuple(float(place) for place in range(1, len(rows) + 1)),
        x_form="number",
    )
    return figure_of(chart, f"{ident}by-canary", _WIDE)


def through_figure(through: ThroughTraining, ident: str = "") -> Figure:
    """Mean M of the planted models and of the others while they train."""
    columns = {"Planted": through.planted, "Nothing planted": through.unplanted}
    factor, unit = unit_of(
        end for column in columns.values() for one in column for end in (one.low, one.high)
    )
    kind = lag_scale_kind(list(through.epoch))
    chart = Chart(
        title="Mean M against epochs",
        description=" ".join(
            f"{name}: {estimate_text(column[0])} after {epochs_text(through.epoch[0])}, "
            f"{estimate_text(column[-1])} after {epochs_text(through.epoch[-1])}."
            for name, column in columns.items()
        ),
        x_label="Epochs of training" + (", log scale" if kind == "symlog" else ""),
        y_label=f"Mean M ({unit})",
        lines=tuple(
            _band(name, tone, through.epoch, column, factor)
            for (name, column), tone in zip(columns.items(), ("main", "control"), strict=True)
        ),
        rules=(Rule("M = 0", "chance", 0.0),),
        x_kind=kind,
        x_word="epoch",
        x_form="number",
    )
    return figure_of(chart, f"{ident}through", _NAMED)


def influence_figure(variant: Variant, ident: str = "") -> Figure:
    """A canary's mean M against its self-influence."""
    rows = [one for one in variant.canaries if one.influence is not None]
    factor, unit = unit_of(one.mean for one in rows)
    kind = _log_kind([one.influence or 0.0 for one in rows])
    found = variant.influence
    told = "" if found is None else correlation_sentence(found.pearson, found.spearman)
    chart = Chart(
        title="Mean M of a canary against its self-influence",
        description=f"{counted(len(rows), 'canary', 'canaries')}. {told}".strip(),
        x_label=f"Self-influence{_log_word(kind)}",
        y_label=f"Mean M ({unit})",
        dots=_by_choice(
            (
                one.high,
                Dot(
                    one.influence or 0.0,
                    factor * one.mean,
                    f"Example {one.example}: M {number_text(one.mean)}, self-influence "
                    f"{number_text(one.influence)}",
                ),
            )
            for one in rows
        ),
        rules=(Rule("M = 0", "chance", 0.0),),
        x_kind=kind,
        x_form="number",
    )
    return figure_of(chart, f"{ident}influence", _SQUARE)


def changes_figure(changes: tuple[Change, ...], ident: str = "") -> Figure:
    """By how many powers of ten the patch raised a canary's self-influence."""
    rows = [one for one in changes if _has_change(one)]
    kind = _log_kind([one.before for one in rows])
    powers = [math.log10(one.after) - math.log10(one.before) for one in rows]
    chart = Chart(
        title="What the patch does to self-influence",
        description=(
            f"{counted(len(rows), 'canary', 'canaries')}. The patch changes self-influence by "
            f"{number_text(min(powers))} to {number_text(max(powers))} powers of ten."
        ),
        x_label=f"Self-influence without the patch{_log_word(kind)}",
        y_label="Raised by (powers of ten)",
        dots=_by_choice(
            (
                one.high,
                Dot(
                    one.before,
                    power,
                    f"Example {one.example}: {number_text(one.before)} before, "
                    f"{number_text(one.after)} with the patch",
                ),
            )
            for one, power in zip(rows, powers, strict=True)
        ),
        rules=(Rule("Unchanged", "chance", 0.0),),
        x_kind=kind,
        x_form="number",
    )
    return figure_of(chart, f"{ident}changes", _SQUARE)


def activations_figure(found: Activations, ident: str = "") -> Figure:
    """How often each unit fires for the patch and not without it."""
    places = tuple(float(i) for i in range(1, len(found.letter) + 1))
    columns = (
        ("The patch", "main", found.letter),
        ("Random patches", "second", found.random),
        ("The patch, never planted", "control", found.unplanted),
    )
    chart = Chart(
        title="How often a unit fires for the patch only",
        description=" ".join(
            f"{name}: the first unit in {percent(column[0])}, the last one shown in "
            f"{percent(column[-1])}."
            for name, _, column in columns
        ),
        x_label="Unit, the one that fires most first",
        y_label="Share of cases",
        lines=tuple(Line(name, tone, places, column) for name, tone, column in columns),
        shares=True,
        x_word="unit",
        x_ticks=places,
        x_form="number",
    )
    return figure_of(chart, f"{ident}activations", _NAMED)


def by_mean(canaries: tuple[Canary, ...]) -> list[Canary]:
    """Canaries by their mean M, the highest first."""
    return sorted(canaries, key=lambda one: -one.mean)


def correlation_sentence(pearson: Estimate | None, spearman: Estimate | None) -> str:
    """Both correlations with their intervals; nothing where there is none."""
    told = [
        f"{name} {correlation_text(found)}"
        for name, found in (("Pearson", pearson), ("Spearman", spearman))
        if found is not None
    ]
    return f"Correlation of M and self-influence: {', '.join(told)}." if told else ""


def unit_of(values: Iterable[float]) -> tuple[float, str]:
    """A factor that makes small scores readable, and the unit that they then have.

    Example:
        >>> unit_of([0.2, -0.01]), unit_of([0.004])
        ((1.0, 'nats'), (1000.0, '10⁻³ nats'))
    """
    largest = max((abs(value) for value in values), default=0.0)
    if largest >= _PLAIN_NATS or largest < 1e-300:
        return 1.0, "nats"
    power = 3 * math.floor(math.log10(largest) / 3)
    return 10.0**-power, f"{power_text(10.0**power)} nats"


def _band(
    name: str, tone: str, epochs: tuple[float, ...], column: tuple[Estimate, ...], factor: float
) -> Line:
    return Line(
        name,
        tone,
        epochs,
        tuple(factor * one.value for one in column),
        tuple(factor * one.low for one in column),
        tuple(factor * one.high for one in column),
    )


def _by_choice(dots: Iterable[tuple[bool | None, Dot]]) -> tuple[Dots, ...]:
    """Dots by whether the canary is one of high self-influence."""
    groups: dict[bool | None, list[Dot]] = {True: [], False: [], None: []}
    for high, dot in dots:
        groups[high].append(dot)
    names = {
        True: ("High self-influence", "main"),
        False: ("Low self-influence", "second"),
        None: ("One canary", "main"),
    }
    return tuple(Dots(*names[high], tuple(mine)) for high, mine in groups.items() if mine)


def _has_change(one: Change) -> bool:
    return one.before > 0 and one.after > 0


def _log_kind(values: list[float]) -> Kind:
    known = [value for value in values if value > 0]
    return "symlog" if known and max(known) >= _DECADE * min(known) else "linear"


def _log_word(kind: Kind) -> str:
    return ", log scale" if kind == "symlog" else ""


def _canaries_told(rows: list[Canary]) -> str:
    first, last = rows[0], rows[-1]
    scores = [m for one in rows for m in one.m]
    told = (
        f"{counted(len(rows), 'canary', 'canaries')}, {counted(len(scores), 'planted model')}. "
        f"Mean M of a canary goes from {number_text(last.mean)} to {number_text(first.mean)}."
    )
    twins = [m for one in rows for m in one.twin_m]
    if twins:
        told += f" M of the twins goes from {number_text(min(twins))} to {number_text(max(twins))}."
    return told
