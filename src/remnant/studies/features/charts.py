"""The charts of a page on unique features: canaries, training, influence, units."""

from __future__ import annotations

import math
from collections.abc import Iterable

from remnant.report.charts.scale import Kind, lag_scale_kind
from remnant.report.charts.shapes import Chart, Dot, Dots, Line, Rule
from remnant.report.numerals import (
    counted,
    epochs_text,
    percent,
    power_text,
    pvalue_text,
    short_percent,
)
from remnant.studies.features.result import (
    Activations,
    Canary,
    InfluenceChange,
    Through,
    VariantResult,
)
from remnant.studies.features.sentences import (
    correlation_sentence,
    estimate_text,
    number_text,
)
from remnant.studies.shared.estimates import Estimate

_ASIDE = 0.17  # of the way to the next canary
_PLAIN_NATS = 0.05
_DECADE = 20.0
_ROUNDING = 1e-12
_NO_EFFECT = (Rule("M = 0", "chance", 0.0),)


def canary_chart(variant: VariantResult, *, significance: float) -> Chart:
    """One dot a model: the models of a canary, one a seed, and beside them their twins."""
    canaries = variant.canaries_by_mean
    factor, unit = unit_of(m for canary in canaries for m in (*canary.m, *canary.twin_m))
    planted: dict[bool, list[Dot]] = {True: [], False: []}
    twins = []
    for place, canary in enumerate(canaries, start=1):
        name = f"Example {canary.example}, label {canary.label}"
        for seed, (m, p) in enumerate(zip(canary.m, canary.p, strict=True), start=1):
            tip = f"{name}, seed {seed}: M {number_text(m)}, p {pvalue_text(p)}"
            reacts = p <= significance + _ROUNDING
            planted[reacts].append(Dot(place - _ASIDE, factor * m, tip))
        for seed, m in enumerate(canary.twin_m, start=1):
            tip = f"Nothing planted, seed {seed}: M {number_text(m)}"
            twins.append(Dot(place + _ASIDE, factor * m, tip))
    groups = (
        (f"Planted, reacts (p ≤ {short_percent(significance)})", "main", planted[True]),
        ("Planted, does not react", "second", planted[False]),
        ("Twin of the same seed, nothing planted", "control", twins),
    )
    return Chart(
        title="M of every model, by canary",
        description=_canaries_in_words(canaries),
        x_label="Canary, the highest mean first",
        y_label=f"M ({unit})",
        dots=tuple(Dots(label, tone, tuple(dots)) for label, tone, dots in groups if dots),
        rules=_NO_EFFECT,
        x_word="canary",
        x_ticks=tuple(float(place) for place in range(1, len(canaries) + 1)),
        x_form="number",
    )


def through_chart(through: Through) -> Chart:
    """Mean M of the planted models and of the others during training."""
    columns = {"Planted": through.planted, "Nothing planted": through.unplanted}
    factor, unit = unit_of(
        end for column in columns.values() for mean in column for end in (mean.low, mean.high)
    )
    kind = lag_scale_kind(list(through.epoch))
    return Chart(
        title="Mean M against epochs",
        description=" ".join(
            f"{name}: {estimate_text(column[0])} after {epochs_text(through.epoch[0])}, "
            f"{estimate_text(column[-1])} after {epochs_text(through.epoch[-1])}."
            for name, column in columns.items()
        ),
        x_label=f"Epochs of training{_log_word(kind)}",
        y_label=f"Mean M ({unit})",
        lines=tuple(
            _band(name, tone, through.epoch, column, factor)
            for (name, column), tone in zip(columns.items(), ("main", "control"), strict=True)
        ),
        rules=_NO_EFFECT,
        x_kind=kind,
        x_word="epoch",
        x_form="number",
    )


def influence_chart(variant: VariantResult) -> Chart | None:
    """A canary's mean M against its self-influence; None where that was not measured."""
    known = [(canary, canary.influence) for canary in variant.by_canary]
    rows = [(canary, influence) for canary, influence in known if influence is not None]
    if not rows:
        return None
    factor, unit = unit_of(canary.mean for canary, _ in rows)
    kind = _log_kind([influence for _, influence in rows])
    correlation = "" if variant.influence is None else correlation_sentence(variant.influence)
    return Chart(
        title="Mean M of a canary against its self-influence",
        description=f"{counted(len(rows), 'canary', 'canaries')}. {correlation}".strip(),
        x_label=f"Self-influence{_log_word(kind)}",
        y_label=f"Mean M ({unit})",
        dots=_by_choice(
            (
                canary.high,
                Dot(
                    influence,
                    factor * canary.mean,
                    f"Example {canary.example}: M {number_text(canary.mean)}, self-influence "
                    f"{number_text(influence)}",
                ),
            )
            for canary, influence in rows
        ),
        rules=_NO_EFFECT,
        x_kind=kind,
        x_form="number",
    )


def changes_chart(changes: tuple[InfluenceChange, ...]) -> Chart | None:
    """By how many powers of ten the patch raised self-influence; None where none is above 0."""
    rows = [change for change in changes if change.before > 0 and change.after > 0]
    if not rows:
        return None
    kind = _log_kind([change.before for change in rows])
    powers = [math.log10(change.after) - math.log10(change.before) for change in rows]
    return Chart(
        title="What the patch does to self-influence",
        description=(
            f"{counted(len(rows), 'canary', 'canaries')}. The patch changes self-influence by "
            f"{number_text(min(powers))} to {number_text(max(powers))} powers of ten."
        ),
        x_label=f"Self-influence without the patch{_log_word(kind)}",
        y_label="Raised by (powers of ten)",
        dots=_by_choice(
            (
                change.high,
                Dot(
                    change.before,
                    power,
                    f"Example {change.example}: {number_text(change.before)} before, "
                    f"{number_text(change.after)} with the patch",
                ),
            )
            for change, power in zip(rows, powers, strict=True)
        ),
        rules=(Rule("Unchanged", "chance", 0.0),),
        x_kind=kind,
        x_form="number",
    )


def activations_chart(activations: Activations) -> Chart:
    """How often each unit fires with the patch and not without it."""
    places = tuple(float(i) for i in range(1, len(activations.letter) + 1))
    columns = (
        ("The patch", "main", activations.letter),
        ("Random patches", "second", activations.random),
        ("The patch, never planted", "control", activations.unplanted),
    )
    return Chart(
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
    value, low, high = (tuple(factor * end for end in ends) for ends in zip(*column, strict=True))
    return Line(name, tone, epochs, value, low, high)


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


def _log_kind(values: list[float]) -> Kind:
    known = [value for value in values if value > 0]
    return "symlog" if known and max(known) >= _DECADE * min(known) else "linear"


def _log_word(kind: Kind) -> str:
    return ", log scale" if kind == "symlog" else ""


def _canaries_in_words(canaries: tuple[Canary, ...]) -> str:
    scores = [m for canary in canaries for m in canary.m]
    text = (
        f"{counted(len(canaries), 'canary', 'canaries')}, {counted(len(scores), 'planted model')}. "
        f"The canaries’ mean M ranges from {number_text(canaries[-1].mean)} to "
        f"{number_text(canaries[0].mean)}."
    )
    twins = [m for canary in canaries for m in canary.twin_m]
    if twins:
        text += f" M of the twins ranges from {number_text(min(twins))} to "
        text += f"{number_text(max(twins))}."
    return text
