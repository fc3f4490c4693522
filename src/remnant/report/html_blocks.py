"""Blocks -> HTML. Every text is escaped; ids and heading levels are given here."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from remnant.report.blocks import (
    Beside,
    Block,
    Cell,
    Check,
    Code,
    Column,
    Facts,
    Figure,
    Fold,
    Headline,
    Missing,
    Pictures,
    Prose,
    Scope,
    Section,
    Sounds,
    Stack,
    Table,
    Terms,
    Tile,
    Tiles,
    walk,
)
from remnant.report.charts.figure import HALF, WIDE, figure_of
from remnant.report.gauge import gauge, interval_text
from remnant.report.numerals import in_print
from remnant.report.tables import csv_text, json_text, sort_value

LONG = 15
"""Tables with more rows can be sorted and filtered."""
_SYMBOLS = {"PASS": "✓", "FAIL": "✕", "INCONCLUSIVE": "?", "FINDING": "i"}
_TONES = {
    "plain": "",
    "lead": "lead",
    "note": "note",
    "notice": "notice",
    "small": "",
    "proven": "certificate proven",
    "open": "certificate open",
}
_MARKS = {
    "found": "•",  # good of a positive control, not of an attack: the words say which
    "at chance": "✓",
    "agrees": "✓",
    "not found": "•",
    "not at chance": "!",
    "disagrees": "!",
    "not measured": "○",
}
_COARSE = 96  # pixels: smaller pictures are shown with sharp pixels
_NOTHING = Markup("")
_WITHOUT_CARD = (Headline, Tiles, Section)


class BlockWriter:
    """Writes the blocks of one page; ids are unique within the page.

    Args:
        ident: What all ids begin with, unique in the document.
        level: Of the page's headings.
        name: What the names of downloads begin with.
        mark: Escapes a text and links the terms in it; by default it only escapes.
    """

    def __init__(
        self, *, ident: str, level: int, name: str, mark: Callable[[str], Markup] = escape
    ) -> None:
        self._ident, self._level, self._name = ident, level, slug(name) or "run"
        self._mark = mark
        self._ids = {"top": 1}  # of the page's own heading
        self._files: dict[str, int] = {}

    def page(self, blocks: Sequence[Block]) -> Markup:
        """Write the blocks of a page; those outside any section share a card."""
        written = []
        for loose, run in groupby(blocks, key=lambda block: not isinstance(block, _WITHOUT_CARD)):
            inner = self._all(tuple(run), self._level)
            written.append(wrap("div", inner, "card") if loose else inner)
        return join(written)

    def block(self, block: Block, level: int) -> Markup:
        """Write one block; ``level`` is that of the headings in it."""
        match block:
            case Headline():
                return self.headline(block, level)
            case Tiles():
                return (
                    wrap("dl", join(map(_tile, block.tiles)), "tiles") if block.tiles else Markup()
                )
            case Prose():
                return self._prose(block)
            case Missing():
                text = f"{block.what}: not measured: {block.reason}."
                return wrap("p", escape(in_print(text)), "missing")
            case Table():
                return self._table(block)
            case Figure():
                return self.figure(block)
            case Terms():
                return wrap("dl", join(_term(*entry) for entry in block.entries), "reading")
            case Scope():
                return scope(block, level)
            case Facts():
                return wrap("div", join(_facts(*group) for group in block.groups), "groups")
            case Pictures():
                return _pictures(block)
            case Sounds():
                return _sounds(block)
            case Section():
                return self._section(block, level)
            case Beside():
                return wrap("div", join(self._beside(b, level) for b in block.blocks), "pair")
            case Stack():
                return wrap("div", self._all(block.blocks, level), "inner")
            case Fold():
                return details(block.title, self._all(block.blocks, level))

    def fold(self, block: Section, level: int, *, kind: str = "fold") -> Markup:
        """A section behind its title; open where it holds a warning."""
        warns = any(isinstance(b, Prose) and b.tone == "notice" for b in walk(block.blocks))
        ident = self.new_id(block.title)
        inner = self._all(block.blocks, level + 1)
        head = Markup("<summary><h{0}>{1}</h{0}></summary>").format(min(level, 6), block.title)
        return Markup('<details class="{}" id="{}"{}>\n{}\n{}</details>\n').format(
            kind, ident, Markup(" open") if warns else "", head, inner
        )

    def new_id(self, wanted: str) -> str:
        """Return an id that the page does not have yet."""
        return self._ident + counted_slug(wanted, self._ids)

    def _prose(self, block: Prose) -> Markup:
        linked = block.tone in ("plain", "lead", "notice")
        inner = inline(block, self._mark if linked else escape)
        if block.tone == "small":
            inner = Markup("<small>{}</small>").format(inner)
        return wrap("p", inner, _TONES[block.tone])

    def _all(self, blocks: Iterable[Block], level: int) -> Markup:
        return join(self.block(block, level) for block in blocks)

    def _beside(self, block: Block, level: int) -> Markup:
        inner = self.block(block, level)
        return inner if isinstance(block, Figure | Section | Stack) else wrap("div", inner, "inner")

    def headline(self, block: Headline, level: int) -> Markup:
        """The box of an outcome: what it claims, what to do, its number, what contradicts it."""
        ident = self.new_id("verdict")
        first, other = _said(block)
        name, sentence = first
        inner = heading(_titled(block), level, ident)
        label = Markup("<strong>{}:</strong> ").format(name) if name else _NOTHING
        inner += wrap("p", label + self._mark(in_print(sentence)), "sentence")
        if block.advice:
            inner += Markup('<p class="claim"><strong>What to do:</strong> {}</p>\n').format(
                in_print(block.advice)
            )
        inner += _NOTHING if block.reading is None else measured(block)
        inner += chips(block.checks)
        if other is not None:
            inner += details(other[0], wrap("p", escape(in_print(other[1]))))
        return verdict(block.outcome, inner, labelled=ident)

    def _section(self, block: Section, level: int) -> Markup:
        ident = self.new_id(block.title)
        inner = heading(escape(block.title), level, ident) + self._all(block.blocks, level + 1)
        if level > self._level:
            return wrap("div", inner, "inner")
        return Markup('<section aria-labelledby="{}">\n{}</section>\n').format(ident, inner)

    def figure(self, block: Figure, sentence: str = "") -> Markup:
        """A chart with its legend; a sentence, where given, stands in place of the caption."""
        size = HALF if block.half and not sentence else WIDE
        drawn = figure_of(
            block.chart,
            f"{self.new_id(block.key)}_chart",
            size if block.height is None else dataclasses.replace(size, height=block.height),
            flags=block.flags,
            line_keys=block.line_keys,
        )
        keys = join(
            Markup('<li><span class="key {} tone-{}"></span>{}</li>').format(
                key.kind, key.tone, key.label
            )
            for key in drawn.keys
        )
        caption = wrap("ul", keys, "legend") if keys else _NOTHING
        words = sentence or block.caption
        caption += wrap("p", self._mark(words), "reads" if sentence else "") if words else _NOTHING
        pictures = wrap("div", drawn.wide, "wide") + wrap("div", drawn.narrow, "narrow")
        return wrap("figure", pictures + wrap("figcaption", caption))

    def _table(self, block: Table) -> Markup:
        if not block.rows:
            return wrap("p", escape(f"{block.caption}: no rows."), "missing")
        columns = block.shown()
        rows = block.rows[: block.limit]
        long = block.sortable and len(rows) > LONG
        body = join(_row(columns, row, sorted_by=long) for row in rows)
        inner = wrap("caption", escape(block.caption)) + wrap("thead", _head(columns))
        kinds = ("numbers", "names" * block.names, "long" * long)
        table = wrap("table", inner + wrap("tbody", body), " ".join(filter(None, kinds)))
        written = Markup('<div class="scroll" tabindex="0">{}</div>\n').format(table)
        written += wrap("p", escape(block.note), "note") if block.note else _NOTHING
        written += self._downloads(block, more=len(block.rows) - len(rows))
        return details(block.fold, written) if block.fold else written

    def _downloads(self, block: Table, *, more: int) -> Markup:
        name = counted_slug(f"{self._name}-{slug(block.key) or 'table'}", self._files)
        said = f"{more} more rows are in the files: " if more else "Table as "
        csv = download("CSV", f"{name}.csv", csv_text(block), "text/csv")
        json = download("JSON", f"{name}.json", json_text(block), "application/json")
        return Markup('<p class="files">{}{}, {}</p>\n').format(said, csv, json)


def verdict(outcome: str | None, inner: Markup, *, labelled: str) -> Markup:
    """The box of an outcome with its symbol."""
    return Markup(
        '<section class="verdict {}" aria-labelledby="{}">\n'
        '<p class="symbol" aria-hidden="true">{}</p>\n{}</section>\n'
    ).format(tone(outcome), labelled, _SYMBOLS.get(outcome or "", "–"), wrap("div", inner))


def tone(outcome: str | None) -> str:
    """Class of an outcome's colours."""
    return (outcome or "none").lower()


def chips(checks: Sequence[Check]) -> Markup:
    """A chip for each check, first those that contradict the outcome: they are red and say so."""
    items = join(
        wrap(
            "li",
            Markup("<strong>✕ contradicts:</strong> {}").format(in_print(check.text)),
            "contrary",
        )
        if check.contradicts
        else Markup('<li><span class="mark" aria-hidden="true">{}</span> {}</li>\n').format(
            _MARKS[check.status], in_print(check.text)
        )
        for check in sorted(checks, key=lambda check: not check.contradicts)
    )
    return wrap("ul", items, "checks") if checks else _NOTHING


def measured(block: Headline) -> Markup:
    """The number that a headline rests on, drawn and in words."""
    reading = block.reading
    if reading is None:
        return _NOTHING
    interval = interval_text(reading)
    words = Markup(
        '<span class="quantity">{}:</span> <strong>{}</strong>{} <small>{}</small>'
    ).format(
        in_print(reading.name),
        reading.show(reading.value),
        f" ({interval})" if interval else "",
        reading.n,
    )
    return wrap("div", gauge(reading) + wrap("p", words), "measured")


def heading(inner: Markup, level: int, ident: str = "", *, link: str = "") -> Markup:
    """A heading, which links to itself where it has an id; levels end at 6.

    Args:
        inner: What it says.
        level: From 1 on.
        ident: Its id.
        link: Id that it links to, if not its own.
    """
    if not ident:
        return Markup("<h{0}>{1}</h{0}>\n").format(min(level, 6), inner)
    return Markup('<h{0} id="{1}"><a class="anchor" href="#{2}">{3}</a></h{0}>\n').format(
        min(level, 6), ident, link or ident, inner
    )


def download(label: str, file: str, text: str, kind: str) -> Markup:
    """A link that holds a file."""
    content = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return Markup('<a download="{}" href="data:{};charset=utf-8;base64,{}">{}</a>').format(
        file, kind, content, label
    )


def wrap(name: str, inner: Markup, kind: str = "") -> Markup:
    """An element around escaped HTML."""
    marked = Markup(' class="{}"').format(kind) if kind else ""
    return Markup("<{0}{1}>{2}</{0}>\n").format(Markup(name), marked, inner)


def join(parts: Iterable[Markup]) -> Markup:
    """Escaped HTML one after another."""
    return _NOTHING.join(parts)


def slug(text: str) -> str:
    """Lower-case letters, digits and ``-`` of a text, for ids and names of files."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


def counted_slug(text: str, used: dict[str, int]) -> str:
    """The slug of a text, with a number where it is used already."""
    wanted = slug(text) or "part"
    while wanted in used:
        used[wanted] += 1
        wanted = f"{wanted}-{used[wanted]}"
    used[wanted] = 1
    return wanted


def _titled(block: Headline) -> Markup:
    if block.outcome is None:
        return escape(block.title)
    return Markup('<span class="outcome">{}</span> {}').format(block.outcome, block.title)


def _tile(tile: Tile) -> Markup:
    small = Markup(" <small>{}</small>").format(tile.remark) if tile.remark else ""
    marked = Markup(' class="{}"').format(tile.tone) if tile.tone else ""
    return Markup("<div{}><dt>{}</dt><dd>{}{}</dd></div>\n").format(
        marked, tile.name, tile.value, small
    )


def inline(block: Prose, mark: Callable[[str], Markup] = escape) -> Markup:
    """A paragraph's text and code, without the paragraph."""
    return join(
        code(part.text) if isinstance(part, Code) else mark(in_print(part)) for part in block.parts
    )


def code(text: str) -> Markup:
    """Text as code; the script adds a button that copies to what can be run."""
    kind = Markup(' class="command"') if text.startswith("remnant ") else ""
    return Markup("<code{}>{}</code>").format(kind, text)


def _term(name: str, meaning: str | Prose) -> Markup:
    inner = inline(meaning) if isinstance(meaning, Prose) else escape(meaning)
    return wrap("dt", escape(name)) + wrap("dd", inner)


def scope(block: Scope, level: int) -> Markup:
    """What was tested and what was not, side by side."""
    halves = (("Tested", block.tested, "dots"), ("Not tested", block.not_tested, "crosses"))
    written = [
        (heading(escape(name), level) if len(block.tested) and len(block.not_tested) else _NOTHING)
        + listing([in_print(line) for line in lines], kind)
        for name, lines, kind in halves
        if lines
    ]
    return wrap("div", join(wrap("div", half) for half in written), "pair" if written[1:] else "")


def listing(lines: Sequence[str | Markup], kind: str) -> Markup:
    """A list; an empty one says so."""
    items = join(wrap("li", escape(line)) for line in lines or ("nothing is listed",))
    return wrap("ul", items, kind)


def _facts(title: str, rows: tuple[tuple[str, str], ...]) -> Markup:
    lines = (Markup('<tr><th scope="row">{}</th><td>{}</td></tr>\n').format(*row) for row in rows)
    inner = join(lines) or Markup("<tr><td>nothing is recorded</td></tr>\n")
    caption = wrap("caption", escape(title)) if title else _NOTHING
    return wrap("table", caption + wrap("tbody", inner), "facts")


def _sounds(block: Sounds) -> Markup:
    players = (
        Markup(
            '<figure class="sound"><audio controls preload="none" '
            'src="data:audio/wav;base64,{}"></audio><figcaption>{}</figcaption></figure>\n'
        ).format(base64.b64encode(sound.wav).decode("ascii"), sound.caption)
        for sound in block.sounds
    )
    return wrap("p", escape(block.title)) + join(players)


def _pictures(block: Pictures) -> Markup:
    coarse = any(picture.height < _COARSE for picture in block.pictures)
    images = join(
        Markup('<img src="data:image/png;base64,{}" width="{}" height="{}" alt="{}">').format(
            base64.b64encode(picture.png).decode("ascii"),
            picture.width,
            picture.height,
            picture.alt,
        )
        for picture in block.pictures
    )
    strip = wrap("div", images, "strip coarse" if coarse else "strip")
    caption = wrap("figcaption", wrap("p", escape(block.title)))
    return wrap("div", wrap("figure", strip + caption), "pictures")


def _head(columns: Sequence[Column]) -> Markup:
    """One row of names, or two where columns have a head in common."""
    if not any(column.group for column in columns):
        return wrap("tr", join(_name(column.name) for column in columns))
    first, second = [], []
    for group, run in groupby(columns, key=lambda column: column.group):
        members = list(run)
        if not group:
            first += [_name(column.name, " rowspan=2") for column in members]
            continue
        first.append(
            Markup('<th scope="colgroup" colspan="{}">{}</th>').format(len(members), group)
        )
        second += [_name(column.name) for column in members]
    return wrap("tr", join(first)) + wrap("tr", join(second))


def _name(name: str, more: str = "") -> Markup:
    return Markup('<th scope="col"{}>{}</th>').format(Markup(more), name)


def _row(columns: Sequence[Column], row: object, *, sorted_by: bool) -> Markup:
    cells = []
    for place, column in enumerate(columns):
        value = Markup(' data-value="{}"').format(sort_value(column, row)) if sorted_by else ""
        name, scope = ("td", "") if place else ("th", Markup(' scope="row"'))
        cells.append(
            Markup("<{0}{1}{2}>{3}</{0}>").format(
                Markup(name), scope, value, _cell(column.cell(row))
            )
        )
    return wrap("tr", join(cells))


def _cell(cell: Cell) -> Markup:
    main = Markup("<strong>{}</strong>").format(cell.main) if cell.strong else escape(cell.main)
    return main + Markup(" <small>{}</small>").format(cell.small) if cell.small else main


def details(title: str, inner: Markup) -> Markup:
    """What opens by a click on its title."""
    return Markup("<details>\n<summary>{}</summary>\n{}</details>\n").format(title, inner)


def _said(block: Headline) -> tuple[tuple[str, str], tuple[str, str] | None]:
    """What a headline says first, each text with its name, and what stands behind a fold.

    A gate that is decided says what it claims; one that is not, what is missing.
    """
    if block.outcome is None:
        return ("", f"Not measured: {block.sentence}."), None
    if not block.claim:
        return ("", block.sentence), None
    claim, sentence = ("Claim", block.claim), ("", block.sentence)
    if block.outcome == "INCONCLUSIVE":
        return sentence, ("What can be claimed", block.claim)
    return claim, ("The numbers of this verdict", block.sentence)
