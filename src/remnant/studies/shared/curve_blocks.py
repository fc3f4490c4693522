"""What pages show of curves: their numbers, curves side by side, accuracy and loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Beside,
    Block,
    Cell,
    Column,
    Figure,
    Missing,
    Reading,
    Section,
    Table,
    Tile,
    prose,
    section,
)
from remnant.report.numerals import counted, lag_text, percent, pvalue_text
from remnant.studies.shared.curve_charts import (
    comparison_chart,
    curve_chart,
    describe,
    traditional_charts,
)
from remnant.studies.shared.curves import (
    Comparison,
    Curve,
    CurveResult,
    Difference,
    Ends,
    Point,
    Traditional,
)

_ROWS = 20


def curve_page(result: CurveResult, title: str = "") -> Iterator[Block]:
    """A curve that stands alone, such as the one of ``remnant curve``.

    Args:
        result: The curve.
        title: Of the chart; what the curve shows, if not given.
    """
    curve = result.shown()
    heading = title or f"{curve.label} against lag"
    yield prose(describe(curve))
    chart = curve_chart(curve, title=heading, label="Attack success")
    yield Figure(chart, key="curve", caption=measured_by(curve))
    yield from curve_tables(curve)


def measured_by(curve: Curve) -> str:
    """How many trials and scores a curve rests on, and how its interval was made."""
    facts = []
    if curve.trials is not None:
        facts.append(f"{curve.trials} {'trial' if curve.trials == 1 else 'trials'}")
    if curve.n_seen is not None and curve.n_unseen is not None:
        facts.append(f"{curve.n_seen} seen and {curve.n_unseen} unseen scores")
    if curve.method:
        facts.append(curve.method)
    return "; ".join(facts)


def bands(curve: Curve) -> str:
    """What the bands of a chart are; nothing where the confidence is not known."""
    return "" if curve.confidence is None else f"Bands: {percent(curve.confidence, 0)} intervals. "


def end_reading(
    curve: Curve, *, limit: float | None, highest: float, n: str, name: str = ""
) -> Reading | None:
    """The last lag of a curve beside the limit; None where it was not measured.

    Args:
        curve: What was judged.
        limit: Of the gate.
        highest: The end of the scale, which begins at 0, or for AUC at 0.5 or below.
        n: How much evidence there is.
        name: What is measured; the curve's label if not given.
    """
    end = curve.end
    if end.value is None:
        return None
    return Reading(
        name=f"{name or curve.label} after {lag_text(end.lag)} steps",
        value=end.value,
        low=end.low,
        high=end.high,
        limit=limit,
        lowest=min(0.5, end.value if end.low is None else end.low)
        if curve.success == "auc"
        else 0.0,
        highest=highest,
        show=curve.show,
        n=n,
    )


def after_planting(point: Point) -> str:
    """When a point was measured, such as ``after 1 step``."""
    if point.lag == 0:
        return "right after planting"
    return f"after {lag_text(point.lag)} {'step' if point.lag == 1 else 'steps'}"


def point_tile(name: str, curve: Curve, point: Point, *, value: str = "", remark: str = "") -> Tile:
    """A tile with a curve's value, its interval and a remark; ``value`` prints it otherwise."""
    remarks = (curve.show_interval(point), remark)
    return Tile(name, value or curve.show(point.value), "; ".join(filter(None, remarks)))


def evidence_text(trials: int | None, canaries: int | None) -> str:
    """How many trainings and canaries there are, as far as that is known."""
    facts = [] if trials is None else [counted(trials, "training")]
    if canaries is not None:
        facts.append(f"{counted(canaries, 'canary', 'canaries')} each")
    return ", ".join(facts)


def curve_tables(
    curve: Curve,
    control: Curve | None = None,
    *,
    control_name: str = "A/A twins",
    medians: Mapping[float, float | None] | None = None,
) -> Iterator[Table]:
    """The numbers of a curve: at chosen lags, at every lag if these are more, and by level.

    Args:
        curve: Of means over canaries or of success.
        control: Its negative control.
        control_name: What that is called.
        medians: The median canary by lag, beside the mean.
    """
    columns = _lag_columns(curve, control, control_name, medians)
    chosen = curve.chosen(_ROWS)
    interval = "" if curve.confidence is None else f", {percent(curve.confidence, 0)} interval"
    whole = len(chosen) == len(curve.points)
    yield Table(
        caption=f"{curve.label} at {'every lag' if whole else 'chosen lags'}{interval}",
        key="lags",
        rows=chosen,
        columns=columns,
        bar=Bar(
            value="value",
            low="low",
            high="high",
            show=curve.show,
            mark=None if curve.chance is None else ("chance", curve.chance),
        ),
        depth="show",
    )
    if not whole:
        yield Table(
            caption=f"{curve.label} at every lag{interval}",
            key="all-lags",
            rows=curve.points,
            columns=columns,
            fold=f"All {len(curve.points)} lags",
        )
    if curve.steps_to:
        yield Table(
            caption=f"Steps until {_quantity(curve).lower()} falls to a level",
            key="levels",
            rows=curve.steps_to,
            columns=(
                Column("Level", lambda row: row[0], curve.show),
                Column("Steps since planting", lambda row: _steps(row[1], curve)),
            ),
        )


def _lag_columns(
    curve: Curve,
    control: Curve | None,
    control_name: str,
    medians: Mapping[float, float | None] | None,
) -> tuple[Column, ...]:
    columns: tuple[Column, ...] = (
        Column("Lag", "lag", lag_text),
        Column("Mean" if medians else _quantity(curve), "value", curve.show, strong=True),
        Column("Low", "low", curve.show),
        Column("High", "high", curve.show),
    )
    if medians:
        columns += (Column("Median", lambda point: medians.get(point.lag), curve.show),)
    if control is None:
        return columns

    def beside(point: Point) -> float | None:
        twin = control.at(point.lag)
        return None if twin is None else twin.value

    return (*columns, Column(control_name, beside, control.show))


def _quantity(curve: Curve) -> str:
    return "Exposure" if curve.success == "exposure" else "Success"


def _steps(lag: float | None, curve: Curve) -> str:
    if lag is None:
        return f"not reached in the {lag_text(curve.end.lag)} steps watched"
    return lag_text(round(lag))


@dataclass(frozen=True, slots=True)
class ComparedCurve:
    """A curve beside others, and how far it lies above the first one."""

    label: str
    curve: Curve
    difference: Difference | None


def point_column(name: str, curve: Curve, *, end: bool, strong: bool = True) -> Column:
    """A column with a curve's first or last value; rows have a ``curve`` of the same measure."""

    def value(row: ComparedCurve) -> Point:
        return row.curve.end if end else row.curve.start

    def show(point: Point) -> Cell:
        return Cell(curve.show(point.value), curve.show_interval(point))

    return Column(name, value, show, strong=strong, depth="summary" if end else "page")


def comparison_section(
    comparison: Comparison, primary: Curve | None, *, key: str, start: bool = False
) -> Section:
    """The study beside its variants: a chart, the values at the end, and the differences.

    Args:
        comparison: The curves, the study's own first.
        primary: The study's own, for its measure and chance.
        key: Of chart and table.
        start: Whether the table also shows the values at the start.
    """
    curves = comparison.curves(primary)
    return section(comparison.title, _compared(comparison, curves, key=key, start=start))


def _compared(
    comparison: Comparison, curves: tuple[tuple[str, Curve], ...], *, key: str, start: bool
) -> Iterator[Block]:
    base, first = curves[0]
    yield Figure(comparison_chart(comparison.title, curves), key=key)
    known = comparison.known
    yield Table(
        caption=f"{comparison.title}: {first.label} at the end"
        + (f", and difference from “{base}”" if known else ""),
        key=key,
        rows=[ComparedCurve(label, curve, known.get(label)) for label, curve in curves],
        columns=(
            Column("Variant", "label", depth="summary"),
            *([point_column("At the start", first, end=False)] if start else []),
            point_column("At the end", first, end=True),
            Column(
                "Difference (interval)",
                lambda row: None if row.difference is None else row.difference.ends,
                lambda ends: difference_text(ends, first),
                optional=True,
                depth="summary",
            ),
            Column(
                "p-value",
                lambda row: None if row.difference is None else row.difference.adjusted_p_value,
                pvalue_text,
                optional=True,
                depth="summary",
            ),
        ),
        note=""
        if not known
        else f"Difference: how far each lies above “{base}”, trial by trial, on average over the "
        "lags after 0, by paired Student t. The p-value is of a sign-flip test that the two have "
        "one law (six trials or more), by Holm’s correction for all variants: a small one shows "
        "that they differ, not that their means do.",
        depth="summary",
    )
    for difference in comparison.unknown:
        yield Missing("Difference", difference.reason)


def difference_text(ends: Ends, curve: Curve) -> str:
    """How far a variant lies above the study, such as ``+10.2 points (+9.0 to +11.4)``."""
    scale, unit, digits = 1.0, "", 3
    if curve.is_share:
        scale, unit, digits = 100.0, " points", 1
    elif curve.success == "exposure":
        unit, digits = " bits", 2

    def signed(value: float | None) -> str:
        if value is None:
            return "–"
        return f"{scale * value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")

    return f"{signed(ends.value)}{unit} ({signed(ends.low)} to {signed(ends.high)})"


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number with its interval, and the cell that shows it."""

    value: float | None
    low: float | None
    high: float | None
    cell: Cell


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One measure of success: its name, chance, and its first and last value."""

    label: str
    chance: str
    start: ShownNumber
    end: ShownNumber


def measure_row(curve: Curve) -> MeasureRow:
    """A curve in a table of measures."""

    def shown(point: Point) -> ShownNumber:
        cell = Cell(curve.show(point.value), curve.show_interval(point), strong=True)
        return ShownNumber(point.value, point.low, point.high, cell)

    return MeasureRow(curve.label, curve.show(curve.chance), shown(curve.start), shown(curve.end))


def epsilon_row(curve: Curve) -> MeasureRow | None:
    """The heuristic epsilon of a curve in a table of measures; None where it has none."""
    if not curve.epsilon:
        return None

    def shown(point: Point) -> ShownNumber:
        value, low, high = (
            "not finite" if number is None else f"{number:.2f}"
            for number in (point.value, point.low, point.high)
        )
        return ShownNumber(point.value, point.low, point.high, Cell(f"{value} ({low} to {high})"))

    start = next(point for point in curve.epsilon if point.lag == curve.start.lag)
    name = "Heuristic ε in nats, ln(TPR/FPR); no bound"
    return MeasureRow(name, "0.00", shown(start), shown(curve.epsilon[-1]))


def measures_table(caption: str, rows: Sequence[MeasureRow], *, start: str) -> Table:
    """Measures of success with their first and last values; ``start`` names the first."""
    return Table(
        caption=caption,
        key="measures",
        rows=rows,
        columns=(
            Column("Measure", "label"),
            Column("Chance", "chance"),
            Column(start, "start", lambda number: number.cell),
            Column("At the end", "end", lambda number: number.cell),
        ),
    )


def control_count(control: Curve) -> tuple[int, int]:
    """At how many lags the interval of the A/A twins holds chance, and at how many it is known."""
    chance = control.chance
    if chance is None:
        return 0, 0
    known = [
        (point.low, point.high)
        for point in control.points
        if point.low is not None and point.high is not None
    ]
    return sum(low <= chance <= high for low, high in known), len(known)


def control_holds(control: Curve) -> bool:
    """Whether the interval of the A/A twins holds chance at nine lags in ten."""
    inside, lags = control_count(control)
    return lags > 0 and inside >= 0.9 * lags


def traditional_section(traditional: Traditional | Absent, introduction: str) -> Section:
    """Accuracy and loss on the canaries: two charts, and the numbers behind a fold."""
    return section("What accuracy and loss show", _traditional(traditional, introduction))


def _traditional(traditional: Traditional | Absent, introduction: str) -> Iterator[Block]:
    if isinstance(traditional, Absent):
        yield Missing("Accuracy and loss on the canaries", traditional.reason)
        return
    yield prose(introduction)
    yield Beside(
        tuple(
            Figure(chart, key=chart.title.split()[0].lower(), half=True)
            for chart in traditional_charts(traditional)
        )
    )
    nats = "{:.3f}".format
    yield Table(
        caption="Accuracy and loss on the canaries at every lag",
        key="accuracy-and-loss",
        rows=traditional.rows,
        columns=(
            Column("Lag", "lag", lag_text),
            Column("Saw them", "seen_accuracy", percent, group="Accuracy", optional=True),
            Column("Did not", "unseen_accuracy", percent, group="Accuracy", optional=True),
            Column("Saw them", "seen_loss", nats, group="Loss (nats)", optional=True),
            Column("Did not", "unseen_loss", nats, group="Loss (nats)", optional=True),
        ),
        fold="Accuracy and loss as numbers",
    )
