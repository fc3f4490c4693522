"""Small tables for a terminal, with a bar at the end of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remnant.report.curve import Curve, Point, percent

BAR = 40


def ruler(low: float, high: float) -> Callable[[float], int]:
    """Where a value falls in a bar that runs from low to high."""
    return lambda value: round((value - low) / ((high - low) or 1.0) * (BAR - 1))


def columns(row: tuple[str, ...], widths: list[int]) -> str:
    """The cells of a row, each at the right of its column."""
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def interval_table(
    curve: Curve, head: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], Point]]
) -> list[str]:
    """Values with their intervals: ``─`` is the interval, ``●`` the value, ``┊`` chance.

    The bar runs from the lowest to the highest value shown.

    Args:
        curve: What is shown, and how.
        head: Names of the columns that come before value, low and high.
        rows: Cells of these columns, and the point.
    """
    known = [v for _, p in rows for v in (p.value, p.low, p.high) if v is not None]
    known += [] if curve.chance is None else [curve.chance]
    low, high = min(known, default=0.0), max(known, default=1.0)
    place = ruler(low, high)
    head = (*head, "value", "low", "high")
    cells = [(*first, *map(curve.show, (p.value, p.low, p.high))) for first, p in rows]
    widths = [max(len(row[i]) for row in (head, *cells)) for i in range(len(head))]
    title = curve.label
    if curve.confidence is not None:
        title += f", {percent(curve.confidence, 0)} interval"
    scale = f"{curve.show(low)}{curve.show(high):>{BAR - len(curve.show(low))}}"
    lines = [title, f"{columns(head, widths)}  {scale}"]
    for row, (_, point) in zip(cells, rows, strict=True):
        lines.append(f"{columns(row, widths)}  {_bar(curve, point, place)}".rstrip())
    if curve.chance is not None:
        lines.append(f"┊ chance, {curve.show(curve.chance)}")
    return lines


def _bar(curve: Curve, point: Point, place: Callable[[float], int]) -> str:
    bar = [" "] * BAR
    if curve.chance is not None:
        bar[place(curve.chance)] = "┊"
    if point.low is not None and point.high is not None:
        first, last = place(point.low), place(point.high)
        bar[first : last + 1] = "─" * (last + 1 - first)
    if point.value is not None:
        bar[place(point.value)] = "●"
    return "".join(bar)
