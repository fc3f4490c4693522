"""Charts of curves: one with its control, several side by side, accuracy and loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remnant.report.charts.figure import TONES
from remnant.report.charts.scale import Kind, lag_scale_kind
from remnant.report.charts.shapes import Chart, Line, Rule
from remnant.report.numerals import lag_text, percent
from remnant.studies.shared.curves import Curve, Numbers, Traditional

_LAG = "Steps since planting (lag)"


def curve_chart(
    curve: Curve,
    *,
    title: str,
    label: str,
    control: Curve | None = None,
    control_name: str = "A/A twins",
    others: Sequence[tuple[str, Curve]] = (),
    limit: float | None = None,
) -> Chart:
    """A curve with its band, chance, the limit, its negative control and other curves."""
    lines = [_line(label, "main", curve)]
    if any(value is not None for value in curve.smoothed):
        lags = tuple(point.lag for point in curve.points)
        smoothed = Line(
            f"{label}, smoothed", "main", lags, curve.smoothed, places="none", stroke="dashed"
        )
        lines.append(smoothed)
    text = describe(curve)
    if control is not None:
        lines.append(_line(control_name, "control", control))
        text += f" {control_name}: {describe(control)}"
    for (name, other), tone in zip(others, TONES[1:], strict=False):
        lines.append(_line(name, tone, other))
        text += f" {name}: {describe(other)}"
    rules = _chance(curve)
    if limit is not None:
        rules.append(Rule(f"Limit {curve.show(limit)}", "limit", limit))
    return Chart(
        title=title,
        description=text,
        x_label=_x_label(kind := _kind(curve)),
        y_label=curve.label,
        lines=tuple(lines),
        rules=tuple(rules),
        mark=(0.0, "planted"),
        shares=curve.is_share,
        x_kind=kind,
        unnamed=tuple(line.label for line in lines if line.stroke != "full"),
    )


def comparison_chart(title: str, curves: Sequence[tuple[str, Curve]]) -> Chart:
    """Several curves in one chart, each with its label."""
    first = curves[0][1]
    return Chart(
        title=title,
        description=" ".join(f"{label}: {describe(curve)}" for label, curve in curves),
        x_label=_x_label(kind := _kind(first)),
        y_label=first.label[:1].upper() + first.label[1:],
        lines=tuple(
            _line(label, TONES[place % len(TONES)], curve)
            for place, (label, curve) in enumerate(curves)
        ),
        rules=tuple(_chance(first)),
        mark=(0.0, "planted"),
        shares=first.is_share,
        x_kind=kind,
    )


def traditional_charts(traditional: Traditional) -> Iterator[Chart]:
    """Accuracy and loss on the canaries, seen and unseen, where they were measured."""
    for name, seen, unseen, shares in (
        (
            "Accuracy on the canaries",
            traditional.seen_accuracy,
            traditional.unseen_accuracy,
            True,
        ),
        ("Loss on the canaries", traditional.seen_loss, traditional.unseen_loss, False),
    ):
        sides: tuple[tuple[str, str, Numbers | None], ...] = (
            ("Planted model", "main", seen),
            ("Unplanted twin", "control", unseen),
        )
        lines = tuple(
            Line(label, tone, traditional.lags, column)
            for label, tone, column in sides
            if column is not None
        )
        if not lines:
            continue
        yield Chart(
            title=name,
            description=" ".join(_ends(line, shares) for line in lines),
            x_label=_x_label(kind := lag_scale_kind(list(traditional.lags))),
            y_label=name + ("" if shares else " (nats)"),
            lines=lines,
            mark=(0.0, "planted"),
            shares=shares,
            x_kind=kind,
        )


def describe(curve: Curve) -> str:
    """The curve in one sentence, for those who cannot see it."""
    return (
        f"{curve.label} goes from {curve.show_point(curve.start)} at lag "
        f"{lag_text(curve.start.lag)} to {curve.show_point(curve.end)} at lag "
        f"{lag_text(curve.end.lag)}."
    )


def _line(label: str, tone: str, curve: Curve) -> Line:
    return Line(
        label,
        tone,
        tuple(point.lag for point in curve.points),
        tuple(point.value for point in curve.points),
        tuple(point.low for point in curve.points),
        tuple(point.high for point in curve.points),
    )


def _chance(curve: Curve) -> list[Rule]:
    if curve.chance is None:
        return []
    return [Rule(f"Chance {curve.show(curve.chance)}", "chance", curve.chance)]


def _kind(curve: Curve) -> Kind:
    return lag_scale_kind([point.lag for point in curve.points])


def _x_label(kind: Kind) -> str:
    return f"{_LAG}, log scale" if kind == "symlog" else _LAG


def _ends(line: Line, shares: bool) -> str:
    known = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
    if not known:
        return f"{line.label}: not measured."
    texts = [
        f"{percent(y) if shares else f'{y:.3f}'} at lag {lag_text(x)}"
        for x, y in (known[0], known[-1])
    ]
    return f"{line.label}: {texts[0]}, {texts[1]}."
