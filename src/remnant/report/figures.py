"""Which charts a forgetting report has: from curves to lines, rules and marks."""

from __future__ import annotations

from remnant.report.curve import Curve, lag_text, percent
from remnant.report.figure import HALF, TONES, Figure, figure_of
from remnant.report.forgetting_view import Comparison, ForgettingView, Traditional
from remnant.report.run_view import NotMeasured, Verdict
from remnant.report.scale import Kind, lag_scale_kind
from remnant.report.shapes import Chart, Line, Rule
from remnant.report.words import describe

_LAG = "Steps since planting (lag)"


def curve_figure(
    curve: Curve,
    *,
    title: str,
    label: str,
    control: Curve | None = None,
    limit: float | None = None,
    ident: str = "",
) -> Figure:
    """The forgetting curve with its band, chance, the limit and the A/A twins."""
    lines = [_line(label, "main", curve)]
    if any(point is not None for point in curve.smoothed):
        lags = tuple(point.lag for point in curve.points)
        smoothed = Line(
            f"{label}, smoothed", "main", lags, curve.smoothed, places="none", stroke="dashed"
        )
        lines.append(smoothed)
    text = describe(curve)
    if control is not None:
        lines.append(_line("A/A twins", "control", control))
        text += f" For the A/A twins: {describe(control)}"
    rules = _chance(curve)
    if limit is not None:
        rules.append(Rule(f"Limit {curve.show(limit)}", "limit", limit))
    chart = Chart(
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
    return figure_of(chart, f"{ident}curve")


def main_figure(view: ForgettingView, ident: str = "") -> Figure | None:
    """The report's first chart, or None where there is no curve."""
    if isinstance(view.curve, NotMeasured):
        return None
    return curve_figure(
        view.curve,
        control=view.control if isinstance(view.control, Curve) else None,
        limit=view.verdict.limit if isinstance(view.verdict, Verdict) else None,
        title="Attack success against steps since planting",
        label="Planted twins",
        ident=ident,
    )


def comparison_figure(comparison: Comparison | NotMeasured, ident: str = "") -> Figure | None:
    """Several curves in one chart."""
    if isinstance(comparison, NotMeasured):
        return None
    first = comparison.curves[0][1]
    chart = Chart(
        title=comparison.title,
        description=" ".join(f"{label}: {describe(curve)}" for label, curve in comparison.curves),
        x_label=_x_label(kind := _kind(first)),
        y_label=first.label[:1].upper() + first.label[1:],
        lines=tuple(
            _line(label, TONES[i % len(TONES)], curve)
            for i, (label, curve) in enumerate(comparison.curves)
        ),
        rules=tuple(_chance(first)),
        mark=(0.0, "planted"),
        shares=first.is_share,
        x_kind=kind,
    )
    return figure_of(chart, f"{ident}compare")


def traditional_figures(found: Traditional | NotMeasured, ident: str = "") -> list[Figure]:
    """Accuracy and loss on the canaries, seen and unseen, where measured."""
    if isinstance(found, NotMeasured):
        return []
    figures = []
    for name, seen, unseen, shares in (
        ("Accuracy on the canaries", found.seen_accuracy, found.unseen_accuracy, True),
        ("Loss on the canaries", found.seen_loss, found.unseen_loss, False),
    ):
        lines = [
            Line(label, tone, found.lags, column)
            for label, tone, column in (
                ("Twin that saw them", "main", seen),
                ("Twin that did not", "control", unseen),
            )
            if column is not None
        ]
        if not lines:
            continue
        chart = Chart(
            title=name,
            description=" ".join(_ends(line, shares) for line in lines),
            x_label=_x_label(kind := lag_scale_kind(list(found.lags))),
            y_label=name + ("" if shares else " (nats)"),
            lines=tuple(lines),
            mark=(0.0, "planted"),
            shares=shares,
            x_kind=kind,
        )
        figures.append(figure_of(chart, f"{ident}{name.split()[0].lower()}", HALF))
    return figures


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
