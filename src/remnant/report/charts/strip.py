"""A strip on paper: named rows of blocks and dots along one horizontal axis."""

from __future__ import annotations

from markupsafe import Markup

from remnant.report.charts.frame import LETTER
from remnant.report.charts.label_layout import fitted
from remnant.report.charts.scale import Scale
from remnant.report.charts.shapes import Strip, StripRow
from remnant.report.charts.svg import tag, text
from remnant.report.numerals import lag_text

_NAMES = 0.4  # of the width, at most, for the rows' names
_ROW, _TOP = 20.0, 6.0  # height of a row, and room above the first, in pixels


def draw_strip(strip: Strip, *, ident: str, width: int) -> Markup:
    """Draw a strip as SVG; its height follows from the number of rows.

    Args:
        strip: What to draw.
        ident: Prefix of the element ids, unique in the page.
        width: In pixels.
    """
    longest = max(len(row.name) for row in strip.rows) * LETTER
    left, right = min(longest, _NAMES * width) + 12, width - 18.0
    bottom = _TOP + _ROW * len(strip.rows)
    scale = Scale(0.0, max(strip.length, 1.0), left, right)
    parts = [
        tag("title", strip.title, id=f"{ident}-title"),
        tag("desc", strip.description, id=f"{ident}-desc"),
        *_axis(strip, scale, bottom),
    ]
    for number, row in enumerate(strip.rows):
        y = _TOP + _ROW * (number + 0.5)
        parts.append(text(fitted(row.name, left - 12, LETTER), left - 8, y + 4, "tick end"))
        parts += _row(row, scale, y)
    return tag(
        "svg",
        Markup("\n").join(parts),
        viewBox=f"0 0 {width} {bottom + 46:g}",
        width=width,
        height=f"{bottom + 46:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )


def _axis(strip: Strip, scale: Scale, bottom: float) -> list[Markup]:
    left, right = scale.first, scale.last
    wide, high = right - left, bottom - _TOP
    parts = [tag("rect", x=left, y=_TOP, width=wide, height=high, class_="plot")]
    for tick in scale.ticks(max(3, int((right - left) / 75))):
        x = scale(tick)
        parts.append(tag("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid"))
        parts.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(text(lag_text(tick), x, bottom + 19, "tick middle"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(text(strip.x_label, (left + right) / 2, bottom + 38, "name middle"))
    return parts


def _row(row: StripRow, scale: Scale, y: float) -> list[Markup]:
    begin, end, tip = (0.0, 0.0, "") if row.block is None else row.block
    first, last = scale(begin), scale(end)
    kind = "" if row.stroke == "full" else f" {row.stroke}"
    parts = [
        tag(
            "path",
            d=f"M{last:.1f} {y:.1f}H{scale.last:.1f}",
            class_=f"line tone-{row.tone}{kind}",
        )
    ]
    if row.block is not None:
        block = {"x": first, "y": y - 6, "width": last - first, "height": 12.0}
        parts.append(tag("rect", tag("title", tip), **block, class_=f"bar tone-{row.tone}"))
    for place, words in row.dots:
        circle = {"cx": scale(place), "cy": y, "r": 2.6}
        parts.append(tag("circle", tag("title", words), **circle, class_=f"dot tone-{row.tone}"))
    return parts
