"""Pages -> lines for a terminal: what comes after a run, and what ``remnant show`` adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from remnant.report.blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Depth,
    Headline,
    Missing,
    Page,
    Prose,
    Scope,
    Table,
    Tiles,
    row_value,
    walk,
)
from remnant.report.quoting import PLAIN, in_one_line

WIDTH = 100
"""Tables stay within as many columns where they can."""
_BAR, _SHORT_BAR = 40, 20
_INDENT = "  "


def summary(page: Page, *, named: bool = False) -> str:
    """Return the outcome and what it rests on: the blocks of depth ``summary``.

    Args:
        page: Of a run or of a command.
        named: Whether to say which run it is.
    """
    lines = _headline(page)
    if named:
        lines.append(f"{_INDENT}run {page.name}, {_lower(page.title)}")
    for block in walk(page.blocks):
        lines += [f"{_INDENT}{line}" for line in _block(block, "summary")]
    return _text(lines)


def detail(page: Page) -> str:
    """Return what ``remnant show`` adds to the summary: the blocks of depth ``show``.

    Empty where there is none; tables stand apart from what comes before them.
    """
    lines: list[str] = []
    for block in walk(page.blocks):
        more = _block(block, "show")
        lines += ["", *more] if lines and more and isinstance(block, Table) else more
    return _text(lines)


def summaries(pages: Sequence[Page], *, report: str | Path | None = None) -> str:
    """Return the summaries of several pages; each of several says which run it is.

    Args:
        pages: In this order.
        report: The HTML report's path, named in the last line.
    """
    several = len(pages) > 1
    parts = [summary(page, named=several) for page in pages]
    parts += [] if report is None else [f"report: {report}"]
    return ("\n\n" if several else "\n").join(part for part in parts if part)


def _headline(page: Page) -> list[str]:
    """The outcome with its sentence, then the claim and what to do."""
    if not page.question and not any(isinstance(block, Headline) for block in page.blocks):
        return []
    block = page.headline
    if block.outcome is None:
        return [f"no verdict: {block.sentence}"]
    title = f"{block.title}. " if block.outcome == "FINDING" else ""
    under = (("claim", block.claim), ("what to do", block.advice))
    return [
        f"{block.outcome}: {title}{block.sentence}",
        *_checks(block),
        *(f"{_INDENT}{name}: {text}" for name, text in under if text),
    ]


def _checks(block: Headline) -> list[str]:
    """The controls beside an outcome and what contradicts it, in one line; none without any."""
    parts = (("controls", block.supporting), ("contradicts", block.contrary))
    said = [
        f"{name}: {'; '.join(each.text for each in checks)}" for name, checks in parts if checks
    ]
    return [f"{_INDENT}{' | '.join(said)}"] if said else []


def _block(block: Block, depth: Depth) -> list[str]:
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
    return _table(block, depth, room=WIDTH - (len(_INDENT) if depth == "summary" else 0))


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


def _text(lines: list[str]) -> str:
    """Each line on one line, without spaces that a terminal may not show."""
    flat = (line.translate(PLAIN).replace("\r", " ").replace("\n", " ") for line in lines)
    return "\n".join(line.rstrip() for line in flat)
