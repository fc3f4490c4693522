"""The number that a headline rests on, as a small bar and in words."""

from __future__ import annotations

import math

from markupsafe import Markup

from remnant.report.blocks import Reading
from remnant.report.charts.svg import tag

_WIDTH, _HEIGHT, _EDGE = 260.0, 26.0, 8.0


def reading_text(reading: Reading) -> str:
    """Return the number in words, such as ``Exposure: 12.1 bits (9.0 to 14.2), limit 10 bits``."""
    shown = reading.show
    text = f"{reading.name}: {shown(reading.value)}"
    if reading.low is not None and reading.high is not None:
        text += f" ({shown(reading.low)} to {shown(reading.high)})"
    elif reading.low is not None:
        text += f" (at least {shown(reading.low)})"
    elif reading.high is not None:
        text += f" (at most {shown(reading.high)})"
    return text if reading.limit is None else f"{text}, limit {shown(reading.limit)}"


def gauge(reading: Reading) -> Markup:
    """Draw the number: a dot for the value, a bar for the interval, a tick for the limit.

    An interval with one end runs to the other end of the scale. What lies outside the scale is
    drawn at its end.
    """
    middle = _HEIGHT / 2
    parts = [_line("track", _EDGE, _WIDTH - _EDGE, middle)]
    if reading.low is not None or reading.high is not None:
        low = reading.lowest if reading.low is None else reading.low
        high = reading.highest if reading.high is None else reading.high
        parts.append(_line("span", _place(reading, low), _place(reading, high), middle))
    if reading.limit is not None:
        at = _place(reading, reading.limit)
        parts.append(tag("line", x1=at, x2=at, y1=2.0, y2=_HEIGHT - 2.0, class_="tick"))
    parts.append(tag("circle", cx=_place(reading, reading.value), cy=middle, r=5.0, class_="value"))
    return tag(
        "svg",
        Markup("").join(parts),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        role="img",
        aria_label=reading_text(reading),
        class_="gauge",
    )


def _line(kind: str, left: float, right: float, y: float) -> Markup:
    return tag("line", x1=left, x2=right, y1=y, y2=y, class_=kind)


def _place(reading: Reading, value: float) -> float:
    span = reading.highest - reading.lowest
    share = (value - reading.lowest) / span if span > 0 else 0.5
    share = 0.5 if math.isnan(share) else min(1.0, max(0.0, share))
    return _EDGE + share * (_WIDTH - 2 * _EDGE)
