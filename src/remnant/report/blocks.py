"""What a page is made of. Renderers know these types and no question."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from remnant.report.charts.figure import Key
from remnant.report.charts.shapes import Chart, Strip
from remnant.report.numerals import plain_spaces

Depth = Literal["summary", "show", "page"]
"""How far a block travels: into the lines after a run, into ``remnant show``, or the page only."""
Tone = Literal["plain", "lead", "note", "notice", "small", "proven", "open"]
Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE", "FINDING"]
Status = Literal[
    "found", "not found", "at chance", "not at chance", "agrees", "disagrees", "not measured"
]


Part = Literal["", "method", "provenance"]


@dataclass(frozen=True, slots=True)
class Code:
    """Text set as code within prose; never interpreted."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The one number that a headline rests on, for the bar on the first screen.

    Attributes:
        name: What is measured, such as ``"Highest exposure"``.
        value, low, high: The number and the ends of its interval; None where there is none.
        limit: What it is compared with; None for a finding.
        lowest, highest: The ends of the scale that the bar is drawn on.
        show: Prints a value on that scale.
        n: How much evidence there is, such as ``"8 trainings"``.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    limit: float | None
    lowest: float
    highest: float
    show: Callable[[float], str]
    n: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A control or a second test beside an outcome.

    Attributes:
        name: Of the control or test.
        status: What it showed.
        text: The same in a few words, with its number.
        contradicts: Whether it speaks against the outcome, by its own interval or test.
    """

    name: str
    status: Status
    text: str
    contradicts: bool = False


def checks_json(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Checks as plain data, with plain spaces."""
    rows = [dataclasses.asdict(check) for check in checks]
    return [row | {"text": plain_spaces(row["text"])} for row in rows]


@dataclass(frozen=True, slots=True)
class Headline:
    """The outcome of a gate, or a finding, in a few words and in a sentence.

    Attributes:
        outcome: None where there is no verdict; ``sentence`` is then the reason.
        claim: What a gate claims; empty where the sentence says it.
        advice: What to do.
        reading: The number it rests on; None where nothing was measured.
        checks: The controls beside it, and what contradicts it.
    """

    outcome: Outcome | None
    title: str
    sentence: str
    claim: str = ""
    advice: str = ""
    reading: Reading | None = None
    checks: tuple[Check, ...] = ()

    @property
    def contrary(self) -> tuple[Check, ...]:
        """The checks that contradict it."""
        return tuple(check for check in self.checks if check.contradicts)

    @property
    def supporting(self) -> tuple[Check, ...]:
        """The other checks."""
        return tuple(check for check in self.checks if not check.contradicts)


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its name and a remark, which may be empty.

    Attributes:
        tone: ``"harm"`` where the number says that secrets came out; else empty.
    """

    name: str
    value: str
    remark: str = ""
    tone: Literal["", "harm"] = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The few numbers that matter most."""

    tiles: tuple[Tile, ...]
    depth: Depth = "summary"


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph of text and code."""

    parts: tuple[str | Code, ...]
    tone: Tone = "plain"
    depth: Depth = "page"

    @property
    def text(self) -> str:
        """The paragraph without any setting."""
        return "".join(part.text if isinstance(part, Code) else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Missing:
    """What was not measured, and why (without a full stop)."""

    what: str
    reason: str
    depth: Depth = "page"


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows of one value: the main text, and a remark in small print."""

    main: str
    small: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its head.
        value: Attribute of a row, such as ``"n"`` or ``"models.n"``, or a function of the row. CSV
            holds what it gives: of a value with ``value``, ``low`` and ``high`` all three.
        show: Prints a value that is not None; a dash stands for None.
        strong: Whether the main text is bold.
        group: Head above several columns; neighbours with the same one share it.
        optional: Leave the column out where every value is None.
        depth: How far the column travels; the terminal has little room.
    """

    name: str
    value: str | Callable[[Any], Any]
    show: Callable[[Any], str | Cell] = str
    strong: bool = False
    group: str = ""
    optional: bool = False
    depth: Depth = "show"

    def of(self, row: Any) -> Any:
        """The row's value as it was measured."""
        return row_value(row, self.value)

    def cell(self, row: Any) -> Cell:
        """The row's value as it is shown."""
        value = self.of(row)
        shown = "–" if value is None else self.show(value)
        cell = shown if isinstance(shown, Cell) else Cell(shown)
        return dataclasses.replace(cell, strong=True) if self.strong and value is not None else cell


def row_value(row: Any, value: str | Callable[[Any], Any]) -> Any:
    """Return what a column, or a bar, takes from a row: an attribute, or a function's value."""
    return attrgetter(value)(row) if isinstance(value, str) else value(row)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar after each row, for the terminal: a value, perhaps with ends, beside a mark.

    Attributes:
        value, low, high: Attributes or functions of the row, as in ``Column``.
        show: Prints the ends of the scale.
        mark: Name and place of a mark on the scale, such as chance.
        floor: A number that the scale reaches down to; None leaves it to the values.
    """

    value: str | Callable[[Any], float | None]
    show: Callable[[float], str]
    low: str | Callable[[Any], float | None] | None = None
    high: str | Callable[[Any], float | None] | None = None
    mark: tuple[str, float] | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of a typed result; the first column names the row.

    Attributes:
        key: Name of its CSV file, unique on the page; only letters, digits and ``-``.
        fold: Text of the fold that the table is behind; empty where it is open.
        names: Whether cells must not be wrapped, since they hold names.
        note: Small print under it.
        sortable: Whether a long table may be sorted and filtered.
        limit: Rows shown on the page; CSV has all of them. None for all.
        more: What the terminal says of the others, after how many more there are.
    """

    caption: str
    key: str
    rows: Sequence[Any]
    columns: tuple[Column, ...]
    bar: Bar | None = None
    fold: str = ""
    names: bool = False
    note: str = ""
    depth: Depth = "page"
    limit: int | None = None
    sortable: bool = True
    more: str = "rows are in the record"

    def shown(self) -> tuple[Column, ...]:
        """The columns that hold something."""
        return tuple(
            column
            for column in self.columns
            if not column.optional or any(column.of(row) is not None for row in self.rows)
        )

    def columns_at(self, depth: Depth) -> list[Column]:
        """The columns for a depth; those of the next one where the table has none of its own."""
        shown = self.shown()
        if depth == "summary":
            own = [column for column in shown if column.depth == "summary"]
            if own:
                return own
        return [column for column in shown if column.depth != "page"] or list(shown)


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its caption.

    Attributes:
        key: Prefix of its element ids, unique on the page.
        flags: What the chart's flags are, for the legend.
        half: Whether it stands beside another one.
        line_keys: Entries for the lines in the legend; None for one a line.
        height: Of the drawing on a wide page, in pixels; None for the usual one.
    """

    chart: Chart | Strip
    key: str
    caption: str = ""
    flags: str = ""
    half: bool = False
    line_keys: tuple[Key, ...] | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms and what they mean."""

    entries: tuple[tuple[str, str | Prose], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What was tested and what was not, side by side."""

    tested: tuple[str, ...]
    not_tested: tuple[str, ...]
    depth: Depth = "page"


@dataclass(frozen=True, slots=True)
class Facts:
    """Small tables of names and values."""

    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as PNG, with the text for those who do not see it."""

    png: bytes
    alt: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Pictures:
    """Images in a row under one title."""

    title: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Sound:
    """A WAV file to listen to, and what is heard."""

    wav: bytes
    caption: str


@dataclass(frozen=True, slots=True)
class Sounds:
    """Sounds under one title, each with its caption."""

    title: str
    sounds: tuple[Sound, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading; a section within another one has a smaller heading.

    Attributes:
        part: ``"method"`` where it says how something was done or controlled, ``"provenance"``
            where it says what was run; empty for results. A page has it at its top level only.
    """

    title: str
    blocks: tuple[Block, ...]
    part: Part = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Blocks side by side where there is room."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks one under another, such as in a column of ``Beside``."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a line that opens them."""

    title: str
    blocks: tuple[Block, ...]


Block = (
    Headline
    | Tiles
    | Prose
    | Missing
    | Table
    | Figure
    | Terms
    | Scope
    | Facts
    | Pictures
    | Sounds
    | Section
    | Beside
    | Stack
    | Fold
)
_HOLDERS = (Section, Beside, Stack, Fold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A run's page.

    Attributes:
        title: The question as a heading, such as ``"Exposure and extraction"``.
        question: Its name in recipes and records; empty for a command's result.
        name: The run folder's name.
        fingerprint, data_fingerprint: Of the plan and of the data; empty where there is none.
        audited: What was audited, as names and values: model, data, date, version.
        command: The command that repeats the run; empty where it is not known.
        options: Those of its options that change numbers, such as ``"--threads 1"``.
        recipe: The recipe that the command reads, as TOML; empty where there is none.
        private: Whether only the owner may read a file with this page.
    """

    title: str
    question: str
    name: str
    fingerprint: str
    complete: bool
    blocks: tuple[Block, ...]
    audited: tuple[tuple[str, str], ...] = ()
    command: str = ""
    options: str = ""
    recipe: str = ""
    private: bool = False
    data_fingerprint: str = ""

    @property
    def headline(self) -> Headline:
        """The page's headline; a page without one says that there is no verdict."""
        headlines = (block for block in self.blocks if isinstance(block, Headline))
        return next(headlines, Headline(None, "No verdict", "nothing was measured"))


def walk(blocks: Iterable[Block]) -> Iterable[Block]:
    """Yield all blocks, those within others too, in the order of the page."""
    for block in blocks:
        yield block
        if isinstance(block, _HOLDERS):
            yield from walk(block.blocks)


def prose(*parts: str | Code, tone: Tone = "plain", depth: Depth = "page") -> Prose:
    """A paragraph of text and code."""
    return Prose(parts, tone, depth)


def section(title: str, blocks: Iterable[Block | None], *, part: Part = "") -> Section:
    """Blocks under a heading; None is passed over."""
    return Section(title, tuple(block for block in blocks if block is not None), part)
