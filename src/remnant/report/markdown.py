"""Pages -> Markdown, for summaries of a pipeline and for model cards.

It is CommonMark with the tables of GitHub, and has what a terminal shows, the scope and what was
audited. The main chart becomes a sentence; the HTML report has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from remnant.report.blocks import (
    Block,
    Check,
    Code,
    Column,
    Figure,
    Headline,
    Missing,
    Page,
    Prose,
    Scope,
    Table,
    Tiles,
    walk,
)
from remnant.report.charts.shapes import Chart
from remnant.report.first_screen import counts_sentence, judged, outcome_of
from remnant.report.gauge import reading_text
from remnant.report.numerals import in_one_line, visible

MADE_BY = "*Made by Remnant"
"""How the last paragraph of every document begins."""
_ROWS = 20
_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&$]|:(?=//)|(?<=www)\.")
# What begins a heading, a list or a line across, if it stands first.
_BEGINNING = re.compile(r"^(?:#(?=#*(?:\s|$))|[-+=](?=[\s=-]|$)|(\d+)(?=[.)](?:\s|$)))")


def render(pages: Sequence[Page]) -> str:
    """Render pages as one Markdown document; several begin with a table of their outcomes.

    Guarantees:
        * No text of a block becomes HTML, a link, or another block: what Markdown would read as
          such is escaped, in cells of tables and in code too.
        * Control characters are shown as their codes.
        * The same pages give the same document.
    """
    parts = list(_overview(pages)) if len(pages) > 1 else []
    for page in pages:
        parts += _page(page)
    plans = [page.fingerprint[:12] for page in pages if page.fingerprint]
    records = "the run's record, plan" if len(pages) == 1 else "the runs' records, plans"
    parts.append(f"{MADE_BY} from {records} {', '.join(plans)}.*" if plans else f"{MADE_BY}.*")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """A text in one line, with a backslash before everything that Markdown would not show.

    Example:
        >>> print(escaped("a|b <i> *c* [d](e) snake_case"))
        a\\|b \\<i\\> \\*c\\* \\[d\\](e) snake\\_case
        >>> print(escaped("# one"), escaped("2. two"), escaped("-3.5 bits"))
        \\# one 2\\. two -3.5 bits
    """
    return _not_begun(_inline(text).strip())


def _inline(text: str) -> str:
    """The same for a part of a line, with the blanks at its ends."""
    return _SPECIAL.sub(r"\\\g<0>", visible(in_one_line(text)))


def _not_begun(line: str) -> str:
    """A line that begins no block."""
    return _BEGINNING.sub(lambda found: f"{found[1]}\\" if found[1] else f"\\{found[0]}", line)


def code(text: str) -> str:
    """A text as code within a line.

    Example:
        >>> print(code("a ` b"))
        `` a ` b ``
    """
    line = visible(in_one_line(text)).strip()
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or fence != "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def _overview(pages: Sequence[Page]) -> Iterator[str]:
    yield f"# {escaped(f'Report on {len(pages)} runs')}"
    yield escaped(counts_sentence(pages))
    rows = [
        (
            escaped(page.name),
            escaped(page.title),
            f"**{outcome_of(page) or 'no verdict'}**" if judged(page) else "",
            escaped(_number(page.headline)),
        )
        for page in pages
    ]
    yield _grid(("Run", "Question", "Outcome", "Result"), rows)


def _number(headline: Headline) -> str:
    """What an outcome rests on, in a few words."""
    return headline.title if headline.reading is None else reading_text(headline.reading)


def _page(page: Page) -> Iterator[str]:
    name = f" {code(page.name)}" if page.name else ""
    yield f"## {escaped(page.title)}{name}"
    if not page.complete:
        yield "**This run is not complete.** The numbers below are those recorded so far."
    if judged(page):
        yield from _headline(page)
    main = next(filter(_is_chart, walk(page.blocks)), None)
    for block in walk(page.blocks):
        if isinstance(block, Figure) and block is main:
            yield escaped(block.chart.description)
        else:
            yield from _block(block)
    facts = [f"{name}: {value}" for name, value in page.audited]
    if facts:
        yield _list("Audited", facts)
    if page.command and not page.recipe:  # one with a recipe needs that file too
        yield "Repeated by"
        yield _fenced(page.command)


def _is_chart(block: Block) -> bool:
    return isinstance(block, Figure) and isinstance(block.chart, Chart)


def _headline(page: Page) -> Iterator[str]:
    block, outcome = page.headline, outcome_of(page)
    sentence = block.sentence if block.outcome else f"Not measured: {block.sentence}."
    yield f"**{outcome or 'No verdict'}: {escaped(block.title)}.** {escaped(sentence)}"
    reading = "" if block.reading is None else f"{reading_text(block.reading)} ({block.reading.n})"
    lines = (
        ("Result", reading),
        ("Claim", block.claim),
        ("What to do", block.advice),
        ("Controls", _checks(block.supporting)),
        ("Contradicts", _checks(block.contrary)),
    )
    said = [f"- **{name}:** {escaped(text)}" for name, text in lines if text]
    if said:
        yield "\n".join(said)


def _checks(checks: Iterable[Check]) -> str:
    return "; ".join(check.text for check in checks)


def _block(block: Block) -> Iterator[str]:
    """The paragraphs of a block that a terminal would show, or of the scope."""
    if isinstance(block, Scope):
        yield from (
            _list(name, lines)
            for name, lines in (("Tested", block.tested), ("Not tested", block.not_tested))
            if lines
        )
        return
    if not isinstance(block, Tiles | Prose | Missing | Table) or block.depth == "page":
        return
    if isinstance(block, Tiles):
        rows = [tuple(map(escaped, (t.name, t.value, t.remark))) for t in block.tiles]
        if rows:
            yield _grid(("Number", "Value", "Remark"), rows)
    elif isinstance(block, Prose):
        parts = [code(p.text) if isinstance(p, Code) else _inline(p) for p in block.parts]
        yield _not_begun("".join(parts).strip())
    elif isinstance(block, Missing):
        yield escaped(f"{block.what}: not measured: {block.reason}.")
    elif block.rows:
        yield from _table(block)


def _table(block: Table) -> Iterator[str]:
    columns, rows = block.columns_at("show"), block.rows[: min(block.limit or _ROWS, _ROWS)]
    heads = [f"{each.group}: {each.name}" if each.group else each.name for each in columns]
    yield f"**{escaped(block.caption)}**"
    yield _grid(
        tuple(map(escaped, heads)),
        [tuple(_cell(column, row) for column in columns) for row in rows],
        right=[not any(isinstance(c.of(row), str) for row in rows) for c in columns],
    )
    more = len(block.rows) - len(rows)
    if more or block.note:
        yield escaped(f"{f'{more} more {block.more}. ' if more else ''}{block.note}")


def _cell(column: Column, row: Any) -> str:
    cell = column.cell(row)
    main = f"**{escaped(cell.main)}**" if cell.strong and cell.main.strip() else escaped(cell.main)
    return f"{main} ({escaped(cell.small)})" if cell.small else main


def _grid(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[bool] = ()
) -> str:
    """A table of texts that are escaped already."""
    sides = [*right, *[False] * (len(heads) - len(right))]
    lines = [heads, ["---:" if side else "---" for side in sides], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{escaped(name)}:", "", *(f"- {escaped(line)}" for line in lines)])


def _fenced(text: str) -> str:
    """A text as a block of code; the fence is longer than any within it."""
    shown = "\n".join(visible(line) for line in text.splitlines())
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}sh\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    """How many backticks follow each other at most."""
    return max(map(len, re.findall("`+", text)), default=0)
