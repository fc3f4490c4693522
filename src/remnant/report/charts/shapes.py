"""What a chart is made of, in the units of its axes; ``chart.draw`` puts it on paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remnant.report.charts.scale import Kind

Stroke = Literal["full", "dashed", "dotted", "chain", "thin"]
STROKES: tuple[Stroke, ...] = ("full", "dashed", "dotted", "chain", "thin")
Form = Literal["steps", "share", "number"]


@dataclass(frozen=True, slots=True)
class Line:
    """One series; None leaves a gap. The band is drawn where both ends are known.

    Attributes:
        tone: Name of its colour in the style sheet.
        places: How each place is marked; dashes, which are for means, lie over all dots.
        stroke: Full, or one of the thin ones for lines in the background: these have no band, and
            their places and intervals show when they are pointed at.
    """

    label: str
    tone: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    places: Literal["dots", "dashes", "none"] = "dots"
    stroke: Stroke = "full"

    @property
    def band(self) -> tuple[tuple[float, float, float] | None, ...]:
        """Lag, low and high at each place, or None in a gap."""
        ends = zip(self.x, self.low, self.high, strict=False)
        return tuple(None if lo is None or hi is None else (x, lo, hi) for x, lo, hi in ends)


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line with a meaning, such as chance or the limit."""

    label: str
    tone: str
    y: float


@dataclass(frozen=True, slots=True)
class Dot:
    """One place, with its interval where that is wider than the dot.

    Attributes:
        tip: Words shown when it is pointed at.
        low, high: Ends of the interval; a high of None with a low runs to the top.
        left, right: Ends of the horizontal interval; None where there is none.
        open_end: The true value may be higher; drawn hollow.
        mark: A number written beside it; 0 for none. Dots that lie together are marked together.
    """

    x: float
    y: float
    tip: str
    low: float | None = None
    high: float | None = None
    open_end: bool = False
    left: float | None = None
    right: float | None = None
    mark: int = 0


@dataclass(frozen=True, slots=True)
class Dots:
    """Places that belong together; those that would cover each other stand side by side."""

    label: str
    tone: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram: one bar between each two edges."""

    label: str
    tone: str
    edges: tuple[float, ...]
    heights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """A vertical line with its name above the plot."""

    x: float
    label: str
    tone: str
    tip: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw.

    Attributes:
        title, description: What a screen reader says in place of the picture.
        mark: Where a vertical line stands, such as the planting, and what it says; or None.
        shares: Whether y is a share, printed in percent and kept between 0 and 1.
        y_kind: A log scale begins at the smallest positive value.
        y_from: A number that the vertical axis reaches down to; None for 0 below dots, and for
            what lines need.
        x_word: What an x is, in the words shown when a place is pointed at.
        x_ticks: Numbers worth a tick; None leaves it to the scale.
        x_form: How an x is printed: as steps, as a share in percent, or as any number.
        x_digits: Of any number.
        seams: Where thin vertical lines stand, behind everything.
        unnamed: Labels that the legend has and the right margin has not.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...] = ()
    rules: tuple[Rule, ...] = ()
    mark: tuple[float, str] | None = None
    shares: bool = False
    y_kind: Kind = "linear"
    y_from: float | None = None
    x_kind: Kind = "linear"
    x_word: str = "lag"
    x_ticks: tuple[float, ...] | None = None
    x_form: Form = "steps"
    x_digits: int = 3
    dots: tuple[Dots, ...] = ()
    bars: Bars | None = None
    flags: tuple[Flag, ...] = ()
    seams: tuple[float, ...] = ()
    unnamed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StripRow:
    """One row of a strip: a block, a line from its end to the right edge, and dots on that line.

    Attributes:
        tone: Name of its colour in the style sheet.
        block: Where the block begins and ends, with the words shown when it is pointed at; None
            for a row that is a line alone.
        dots: Place of each dot, with the words shown when it is pointed at.
        stroke: How the line is drawn.
    """

    name: str
    tone: str
    block: tuple[float, float, str] | None = None
    dots: tuple[tuple[float, str], ...] = ()
    stroke: Stroke = "full"


@dataclass(frozen=True, slots=True)
class Strip:
    """Named rows along one horizontal axis, which begins at 0.

    Attributes:
        title, description: What a screen reader says in place of the picture.
        length: Where the axis ends.
        blocks, dots: What they are, for the legend.
        key_tone: Colour of the legend's entries.
    """

    title: str
    description: str
    x_label: str
    length: float
    rows: tuple[StripRow, ...]
    blocks: str
    dots: str
    key_tone: str
