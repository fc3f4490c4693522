"""The report in a few lines, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remnant.report.curve import SPACE, Curve, lag_text, percent, require_curve
from remnant.report.view import NotMeasured, View

_BAR = 40


def summary_text(view: View, *, report: str | Path | None = None) -> str:
    """The verdict, both ends of the curve, the A/A twins, and where the report lies.

    Args:
        view: The run.
        report: The HTML report's path, named in the last line.
    """
    if isinstance(view.verdict, NotMeasured):
        lines = [f"no verdict: {view.verdict.reason}"]
    else:
        lines = [f"{view.verdict.outcome}: {view.verdict.sentence}"]
    if isinstance(view.curve, NotMeasured):
        lines.append(f"  forgetting curve  not measured: {view.curve.reason}")
    else:
        lines += _ends(view.curve)
    if isinstance(view.control, NotMeasured):
        lines.append(f"  A/A twins  not measured: {view.control.reason}")
    else:
        lines.append(f"  A/A twins, {_end(view.control)} (neither saw the canaries)")
    if report is not None:
        lines.append(f"report: {report}")
    return "\n".join(lines).replace(SPACE, " ")


def curve_text(curve: Mapping[str, Any]) -> str:
    """A curve as a small table with a bar per lag.

    The bar runs from the lowest to the highest value shown: ``─`` is the interval, ``●`` the
    value, ``┊`` chance.

    Args:
        curve: The JSON form of a curve: ``lags``, ``value``, ``low``, ``high``, ``success``, ….

    Raises:
        InvalidInput: The curve is absent or malformed.
    """
    found = require_curve(curve)
    points = found.chosen(20)
    known = [v for p in points for v in (p.value, p.low, p.high) if v is not None]
    known += [] if found.chance is None else [found.chance]
    low, high = min(known, default=0.0), max(known, default=1.0)

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (_BAR - 1))

    title = (
        found.label
        if found.confidence is None
        else (f"{found.label}, {percent(found.confidence, 0)} interval")
    )
    rows = [
        (lag_text(p.lag), found.show(p.value), found.show(p.low), found.show(p.high))
        for p in points
    ]
    head = ("lag", "value", "low", "high")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(4)]
    scale = f"{found.show(low)}{found.show(high):>{_BAR - len(found.show(low))}}"
    lines = [title, _columns(head, widths) + "  " + scale]
    for point, row in zip(points, rows, strict=True):
        bar = [" "] * _BAR
        if found.chance is not None:
            bar[place(found.chance)] = "┊"
        if point.low is not None and point.high is not None:
            first, last = place(point.low), place(point.high)
            bar[first : last + 1] = "─" * (last + 1 - first)
        if point.value is not None:
            bar[place(point.value)] = "●"
        lines.append(f"{_columns(row, widths)}  {''.join(bar)}".rstrip())
    if found.chance is not None:
        lines.append(f"┊ chance, {found.show(found.chance)}")
    return "\n".join(lines).replace(SPACE, " ")


def _columns(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def _ends(curve: Curve) -> list[str]:
    chance = "" if curve.chance is None else f" (chance {curve.show(curve.chance)})"
    lines = [f"  {curve.label}{chance}"]
    for point in (curve.start, curve.end):
        interval = curve.show_interval(point)
        shown = f"  [{interval}]" if interval else ""
        lines.append(f"    lag {lag_text(point.lag):>7}  {curve.show(point.value)}{shown}")
    return lines


def _end(curve: Curve) -> str:
    interval = curve.show_interval(curve.end)
    shown = f" [{interval}]" if interval else ""
    return f"lag {lag_text(curve.end.lag)}: {curve.show(curve.end.value)}{shown}"
