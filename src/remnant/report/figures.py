"""Which charts a report has: from curves to lines, rules and marks."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from remnant.report.chart import Chart, Line, Rule, draw
from remnant.report.curve import Curve, lag_text, percent
from remnant.report.scale import Kind, lag_scale_kind
from remnant.report.view import Comparison, NotMeasured, Traditional, Verdict, View
from remnant.report.words import describe

_TONES = ("main", "second", "third", "fourth", "fifth")
_WIDE = {"width": 880, "height": 400, "direct_labels": True}
_HALF = {"width": 430, "height": 290, "direct_labels": False}
_NARROW = {"width": 350, "height": 300, "direct_labels": False}
_LAG = "Steps since planting (lag)"


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend, of the kind ``line`` (no band), ``banded`` or ``rule``."""

    label: str
    tone: str
    kind: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart drawn twice, for a wide and for a narrow page, with its legend."""

    title: str
    wide: Markup
    narrow: Markup
    keys: tuple[Key, ...]


def curve_figure(
    curve: Curve,
    *,
    title: str,
    label: str,
    control: Curve | None = None,
    limit: float | None = None,
) -> Figure:
    """The forgetting curve with its band, chance, the limit and the A/A twins."""
    lines = [_line(label, "main", curve)]
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
    )
    return _figure(chart, "curve", _WIDE)


def main_figure(view: View) -> Figure | None:
    """The report's first chart, or None where there is no curve."""
    if isinstance(view.curve, NotMeasured):
        return None
    return curve_figure(
        view.curve,
        control=view.control if isinstance(view.control, Curve) else None,
        limit=view.verdict.limit if isinstance(view.verdict, Verdict) else None,
        title="Attack success against steps since planting",
        label="Planted twins",
    )


def comparison_figure(comparison: Comparison | NotMeasured) -> Figure | None:
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
            _line(label, _TONES[i % len(_TONES)], curve)
            for i, (label, curve) in enumerate(comparison.curves)
        ),
        rules=tuple(_chance(first)),
        mark=(0.0, "planted"),
        shares=first.is_share,
        x_kind=kind,
    )
    return _figure(chart, "compare", _WIDE)


def traditional_figures(found: Traditional | NotMeasured) -> list[Figure]:
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
        figures.append(_figure(chart, name.split()[0].lower(), _HALF))
    return figures


def _figure(chart: Chart, ident: str, wide: dict[str, int]) -> Figure:
    return Figure(
        title=chart.title,
        wide=_draw(chart, f"{ident}-wide", wide),
        narrow=_draw(chart, f"{ident}-narrow", _NARROW),
        keys=(
            *(
                Key(line.label, line.tone, "banded" if any(line.band) else "line")
                for line in chart.lines
            ),
            *(Key(rule.label, rule.tone, "rule") for rule in chart.rules),
        ),
    )


def _draw(chart: Chart, ident: str, size: dict[str, int]) -> Markup:
    return draw(
        chart,
        ident=ident,
        width=size["width"],
        height=size["height"],
        direct_labels=bool(size["direct_labels"]),
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
