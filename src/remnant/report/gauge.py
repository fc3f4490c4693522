"""The number that a headline rests on, as a small bar with its scale and in words."""

from __future__ import annotations

import math

from markupsafe import Markup

from remnant.report.blocks import Reading
from remnant.report.charts.svg import tag, text

_EDGE = 8.0
_HEIGHT, _BARE = 52.0, 38.0  # with room for the limit's name, and without
_LETTER = 6.0


def reading_text(reading: Reading) -> str:
    """Return the number in words, such as ``Exposure: 12.1 bits (9.0 to 14.2), limit 10 bits``."""
    shown = f"{reading.name}: {value_text(reading)}"
    return shown if reading.limit is None else f"{shown}, limit {reading.show(reading.limit)}"


def value_text(reading: Reading) -> str:
    """The number with its interval, such as ``12.1 bits (9.0 bits to 14.2 bits)``."""
    interval = interval_text(reading)
    return (
        f"{reading.show(reading.value)} ({interval})" if interval else reading.show(reading.value)
    )


def interval_text(reading: Reading) -> str:
    """The interval, such as ``9.0 bits to 14.2 bits``; empty where there is none."""
    shown = reading.show
    if reading.low is not None and reading.high is not None:
        return f"{shown(reading.low)} to {shown(reading.high)}"
    if reading.low is not None:
        return f"at least {shown(reading.low)}"
    return "" if reading.high is None else f"at most {shown(reading.high)}"


def gauge(reading: Reading, *, width: float = 300.0) -> Markup:
    """Draw the number: a dot for the value, a bar for the interval, a tick for the limit.

    The ends of the scale and the limit are named. An interval with one end runs to the other end of
    the scale. What lies outside the scale is drawn at its end.

    Args:
        reading: What to draw.
        width: In pixels.
    """
    limited = reading.limit is not None
    height = _HEIGHT if limited else _BARE
    middle = height - 25.0
    right = width - _EDGE
    parts = [tag("title", reading_text(reading)), _line("track", _EDGE, right, middle)]
    if reading.low is not None or reading.high is not None:
        low = reading.lowest if reading.low is None else reading.low
        high = reading.highest if reading.high is None else reading.high
        ends = _place(reading, low, right), _place(reading, high, right)
        parts.append(_line("span", *ends, middle))
    if reading.limit is not None:
        at, name = _place(reading, reading.limit, right), f"limit {reading.show(reading.limit)}"
        parts.append(tag("line", x1=at, x2=at, y1=middle - 10, y2=middle + 10, class_="tick"))
        half = len(name) * _LETTER / 2
        parts.append(text(name, min(max(at, half), width - half), middle - 15, "limit middle"))
    at = _place(reading, reading.value, right)
    parts.append(tag("circle", cx=at, cy=middle, r=5.0, class_="value"))
    parts.append(text(reading.show(reading.lowest), 2.0, height - 4, "scale"))
    parts.append(text(reading.show(reading.highest), width - 2, height - 4, "scale end"))
    return tag(
        "svg",
        Markup("").join(parts),
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        role="img",
        aria_label=reading_text(reading),
        class_="gauge",
    )


def _line(kind: str, left: float, right: float, y: float) -> Markup:
    return tag("line", x1=left, x2=right, y1=y, y2=y, class_=kind)


def _place(reading: Reading, value: float, right: float) -> float:
    span = reading.highest - reading.lowest
    share = (value - reading.lowest) / span if span > 0 else 0.5
    share = 0.5 if math.isnan(share) else min(1.0, max(0.0, share))
    return _EDGE + share * (right - _EDGE)
