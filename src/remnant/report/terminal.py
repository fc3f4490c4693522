"""Pages -> lines for a terminal: what comes after a run, and what ``remnant show`` adds."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from remnant.report.blocks import (
    Bar,
    Block,
    Cell,
    Check,
    Column,
    Depth,
    Missing,
    Outcome,
    Page,
    Prose,
    Reading,
    Scope,
    Table,
    Tiles,
    row_value,
    walk,
)
from remnant.report.first_screen import judged, outcome_of
from remnant.report.gauge import reading_text
from remnant.report.numerals import PLAIN, counted, in_one_line, in_print
from remnant.report.paint import END, NO_MARKS, OF_OUTCOMES, RED

WIDTH = 100
"""Tables stay within as many columns where they can."""
_BAR, _SHORT_BAR = 40, 20
_CONTRADICTS = "contradicts"
_LEAST_WIDTH = 24
_INDENT = "  "
_IN_NUMBER = re.compile(r"(?<=\d) (?=%|\d{3}\b)")
_HELD = "\N{NARROW NO-BREAK SPACE}"
_OUTCOMES = re.compile(r"\b(?:FAIL|PASS|INCONCLUSIVE|FINDING)\b")


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text is shown.

    Attributes:
        width: Columns that text is wrapped to.
        box: Whether an outcome is framed; a pipe gets plain lines.
        colour: Whether outcomes are coloured.
    """

    width: int = 10**6
    box: bool = False
    colour: bool = False


PLAIN_TEXT = Screen()


def outcome(page: Page, screen: Screen = PLAIN_TEXT, *, named: bool = False) -> str:
    """Return the outcome with its number, controls, claim and what to do.

    Args:
        page: Of a run or of a command.
        screen: Where it is shown.
        named: Whether it is one of several: it says which run it is, and leaves out the controls
            that agree, the claim, and what to do after a PASS.
    """
    lines = _headline(page, named=named)
    return _framed(lines, screen, page.headline.outcome) if lines else ""


def one_line(page: Page, screen: Screen = PLAIN_TEXT, *, named: bool = False) -> str:
    """Return the outcome with its number.

    Its sentence stands in place of the number where nothing was measured, and where the number is
    within the limit of a FAIL, which something else decided.

    Only a terminal that is too narrow gets it on several lines.

    Args:
        page: Of a run or of a command.
        screen: Where it is shown.
        named: Whether it begins with the name of the run.
    """
    block = page.headline
    reading = block.reading
    number = block.sentence
    if reading is not None and not (block.outcome == "FAIL" and _is_within(reading)):
        number = reading_text(reading)
    name = f"{page.name}: " if named else ""
    line = _flat(f"{name}{block.outcome or 'no verdict'}: {in_print(number)}")
    return painted(_wrapped(line, screen.width) if screen.box else line, screen)


def _is_within(reading: Reading) -> bool:
    return reading.limit is not None and reading.value <= reading.limit


def counted_outcomes(pages: Sequence[Page]) -> str:
    """Return how many pages have which outcome, such as ``1 FAIL  4 PASS  2 findings``."""
    many = Counter(outcome_of(page) for page in pages if judged(page))
    words = [f"{many[name]} {name}" for name in ("FAIL", "PASS", "INCONCLUSIVE") if many[name]]
    words += [counted(many["FINDING"], "finding")] if many["FINDING"] else []
    words += [f"{many[None]} without a verdict"] if many[None] else []
    return "  ".join(words)


def painted(text: str, screen: Screen = PLAIN_TEXT) -> str:
    """Return the text with the names of outcomes in colour, where there is any."""
    if not screen.colour:
        return text
    return _OUTCOMES.sub(lambda match: f"{OF_OUTCOMES[match[0]]}{match[0]}{END}", text)


def summary(page: Page, screen: Screen = PLAIN_TEXT, *, named: bool = False) -> str:
    """Return the outcome and what it rests on: the blocks of depth ``summary``.

    Args:
        page: Of a run or of a command.
        screen: Where it is shown.
        named: Whether to say which run it is.
    """
    lines = [f"{_INDENT}{line}" for line in _blocks(page, "summary", screen)]
    rest = "\n".join(_wrapped(line, screen.width) for line in map(_flat, lines))
    return "\n".join(filter(None, (outcome(page, screen, named=named), rest)))


def detail(page: Page, screen: Screen = PLAIN_TEXT) -> str:
    """Return what ``remnant show`` adds to the summary: the blocks of depth ``show``.

    Empty where there is none; tables stand apart from what comes before them.
    """
    return "\n".join(
        _wrapped(line, screen.width) for line in map(_flat, _blocks(page, "show", screen))
    )


def _blocks(page: Page, depth: Depth, screen: Screen) -> list[str]:
    room = min(WIDTH, screen.width) if screen.box else WIDTH
    room -= len(_INDENT) if depth == "summary" else 0
    lines: list[str] = []
    for block in walk(page.blocks):
        if judged(page) and _is_notice(block):  # it is beside the outcome
            continue
        more = _block(block, depth, room)
        apart = depth == "show" and lines and more and isinstance(block, Table)
        lines += ["", *more] if apart else more
    return lines


def _headline(page: Page, *, named: bool) -> list[str]:
    """The outcome with its sentence; the number; controls; the claim and what to do."""
    if not judged(page):
        return []
    block = page.headline
    run = [f"study {page.name}: {_lower(page.title)}"] if named else []
    if block.outcome is None:
        return [f"no verdict: {block.sentence}", *run]
    title = f"{block.title}. " if block.outcome == "FINDING" else ""
    brief = named and block.outcome == "PASS"
    under = (
        ("controls", "" if named else _joined(block.supporting)),
        (_CONTRADICTS, _joined(block.contrary)),
        ("claim", "" if named else block.claim),
        ("what to do", "" if brief else block.advice),
    )
    return [
        in_print(f"{block.outcome}: {title}{block.sentence}"),
        *run,
        *([] if block.reading is None else [_number(block.reading)]),
        *(in_print(f"{name}: {text}") for name, text in under if text),
        *(block.text for block in walk(page.blocks) if _is_notice(block)),
    ]


def _is_notice(block: Block) -> TypeGuard[Prose]:
    """Whether a block warns of something, such as secrets that are shown; it is never left out."""
    return isinstance(block, Prose) and block.tone == "notice" and block.depth == "summary"


def _joined(checks: Sequence[Check]) -> str:
    return "; ".join(check.text for check in checks)


def _number(reading: Reading) -> str:
    """The number that a headline rests on, with its interval, the limit and its n."""
    return f"{reading_text(reading)}; {reading.n}"


def _framed(lines: Sequence[str], screen: Screen, outcome: Outcome | None) -> str:
    """The lines, wrapped; in a box that is open at the right where the screen has one."""
    first, *rest = map(_flat, lines)
    if not screen.box:
        indented = [_wrapped(f"{_INDENT}{line}", screen.width) for line in rest]
        return "\n".join([_wrapped(first, screen.width), *indented])
    name, _, sentence = first.partition(": ")
    mark = OF_OUTCOMES.get(outcome or "", "") if screen.colour else ""

    def paint(drawn: str) -> str:
        return f"{mark}{drawn}{END}" if mark else drawn

    inner = screen.width - len(_INDENT)
    framed = [paint(f"┌ {name} {'─' * (inner - len(name) - 1)}")]
    for line in (sentence, *rest):
        parts = _wrapped(line, inner, under="" if line is sentence else _INDENT).split("\n")
        if line.startswith(f"{_CONTRADICTS}: ") and screen.colour:
            parts = [f"{RED}{part}{END}" for part in parts]
        framed += [f"{paint('│')} {part}" for part in parts]
    return "\n".join([*framed, paint(f"└{'─' * (screen.width - 1)}")])


def _wrapped(line: str, width: int, *, under: str = _INDENT) -> str:
    """A line, broken between words; its other lines stand under the first word and further in.

    Numbers stay whole: no line ends inside ``1 318`` or ``95 %``. So do rows of tables, in which
    blanks set columns apart.
    """
    start = len(line) - len(line.lstrip())
    if len(line) <= width or "  " in line[start:]:
        return line
    indent = line[:start]
    filled = textwrap.fill(
        _IN_NUMBER.sub(_HELD, line.strip()),
        max(width, _LEAST_WIDTH),
        initial_indent=indent,
        subsequent_indent=f"{indent}{under}",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_HELD, " ")


def _block(block: Block, depth: Depth, room: int) -> list[str]:
    """The lines of a block of exactly this depth; none for one of another."""
    if not isinstance(block, Tiles | Prose | Missing | Table | Scope) or block.depth != depth:
        return []
    if isinstance(block, Tiles):
        return [
            f"{tile.name}: {tile.value}{f' ({tile.remark})' if tile.remark else ''}"
            for tile in block.tiles
        ]
    if isinstance(block, Prose):
        return [block.text]
    if isinstance(block, Missing):
        return [f"{block.what}: not measured: {block.reason}"]
    if isinstance(block, Scope):
        return [*_listed("tested", block.tested), *_listed("not tested", block.not_tested)]
    return _table(block, depth, room=room)


def _listed(name: str, lines: Sequence[str]) -> list[str]:
    return [f"{name}:", *(f"- {line}" for line in lines)] if lines else []


def _table(block: Table, depth: Depth, *, room: int) -> list[str]:
    """A table with a bar after each row where it has one.

    ``●`` is the value, ``─`` its interval, ``┊`` the mark. Where the room is not enough the bar
    gets shorter, and then is left out.
    """
    rows = block.rows[: block.limit]
    if not rows:
        return []
    columns = block.columns_at(depth)
    cells = [[_line(column.name) for column in columns]]
    cells += [[_cell(column.cell(row)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    align = [_is_text(column, rows) for column in columns]
    lines = [_aligned(row, widths, align) for row in cells]
    length = min(_BAR, room - sum(widths) - len(_INDENT) * len(widths))
    if block.bar is not None and length >= _SHORT_BAR:
        drawn = _bars(block.bar, rows, length)
        lines = [f"{line}{_INDENT}{bar}" for line, bar in zip(lines, drawn, strict=True)]
        if block.bar.mark is not None:
            name, place = block.bar.mark
            lines.append(f"┊ {name}, {block.bar.show(place)}")
    more = len(block.rows) - len(rows)
    lines += [f"{more} more {block.more}"] if more else []
    return [block.caption, *lines, *([block.note] if block.note else [])]


def _bars(bar: Bar, rows: Sequence[Any], length: int) -> Iterator[str]:
    """The scale, and then a bar a row."""
    mark = None if bar.mark is None else bar.mark[1]
    spans = [tuple(_of(get, row) for get in (bar.value, bar.low, bar.high)) for row in rows]
    known = [number for span in spans for number in span if number is not None]
    known += [number for number in (mark, bar.floor) if number is not None]
    lowest, highest = min(known, default=0.0), max(known, default=1.0)
    low, high = bar.show(lowest), bar.show(highest)
    yield f"{low}{high:>{max(length - len(low), len(high) + 1)}}"

    def place(number: float) -> int:
        return round((number - lowest) / ((highest - lowest) or 1.0) * (length - 1))

    for value, first, last in spans:
        drawn = [" "] * length
        if mark is not None:
            drawn[place(mark)] = "┊"
        if first is not None and last is not None:
            drawn[place(first) : place(last) + 1] = "─" * (place(last) + 1 - place(first))
        if value is not None:
            drawn[place(value)] = "●"
        yield "".join(drawn)


def _of(get: str | Callable[[Any], float | None] | None, row: Any) -> float | None:
    if get is None:
        return None
    value: float | None = row_value(row, get)
    return value


def _is_text(column: Column, rows: Sequence[Any]) -> bool:
    return any(isinstance(column.of(row), str) for row in rows)


def _aligned(row: list[str], widths: list[int], texts: list[bool]) -> str:
    """Text at the left of its column, numbers at the right."""
    return _INDENT.join(
        f"{cell:<{width}}" if text else f"{cell:>{width}}"
        for cell, width, text in zip(row, widths, texts, strict=True)
    )


def _cell(cell: Cell) -> str:
    return _line(f"{cell.main} ({cell.small})" if cell.small else cell.main)


def _line(text: str) -> str:
    return in_one_line(text).strip()


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _flat(line: str) -> str:
    """A line without breaks, without marks of colours and without spaces that may not show."""
    plain = line.translate(PLAIN).translate(NO_MARKS)
    return plain.replace("\r", " ").replace("\n", " ").rstrip()
