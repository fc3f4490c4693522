"""Pages -> one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from remnant.errors import RecordError, write_error
from remnant.report import first_screen
from remnant.report.arrangement import Study, arranged, first_sentences
from remnant.report.blocks import Block, Facts, Fold, Page, Pictures, Scope, Section, Sounds, walk
from remnant.report.first_screen import DamagedRun
from remnant.report.glossary import glossary_of, glossary_view, links_to
from remnant.report.html_blocks import (
    BlockWriter,
    details,
    heading,
    join,
    listing,
    tone,
    wrap,
)
from remnant.report.numerals import in_print, visible

__all__ = ["DamagedRun", "fragment", "render", "write_page"]

_TEMPLATES = Path(__file__).parent / "templates"


def render(pages: Sequence[Page], *, name: str = "", damaged: Sequence[DamagedRun] = ()) -> str:
    """Render one page, or several as one document that begins with an overview.

    Guarantees:
        * Every text of a block is escaped, and control characters are shown as their codes.
        * The document refers to nothing outside itself, and its content policy forbids it to; the
          policy names the one script by its hash.
        * Everything can be read without the script.
        * The same pages give the same document.

    Args:
        pages: In the order of the document.
        name: What the document is called if it holds several pages.
        damaged: Runs that could not be read, which the document names.
    """
    several = len(pages) > 1
    name = name if several else pages[0].name
    pages = first_screen.by_severity(pages)
    idents = [f"run{i}-" if several else "" for i in range(1, len(pages) + 1)]
    studies = [arranged(page) for page in pages]
    terms = glossary_of(studies)
    level = 3 if several or pages[0].question else 2
    writers = [
        BlockWriter(
            ident=ident, level=level, name=study.page.name, mark=links_to(terms, study).mark
        )
        for study, ident in zip(studies, idents, strict=True)
    ]
    runs = [
        _View(page, f"{ident}top", study_view(study, writer, level=level))
        for page, study, writer, ident in zip(pages, studies, writers, idents, strict=True)
    ]
    lost = first_screen.damaged_runs(damaged) if damaged else Markup("")
    audited = Markup("")
    if several or pages[0].question or pages[0].audited:
        audited = first_screen.audited(pages, name=name)
    template = _environment().get_template("frame.html.j2")
    document = template.render(
        title=_title(pages, name, damaged),
        heading=f"{pages[0].title} report" if not several else f"Report on {len(pages)} runs",
        name=name,
        made=_made(pages),
        counts=first_screen.counts(pages, damaged),
        policy=_policy(pages),
        style=Markup(_asset("style.css")),
        script=Markup(_asset("report.js")),
        several=several,
        overview=first_screen.overview(pages, idents, damaged) if several else Markup(""),
        damaged=lost,
        audited=audited,
        runs=runs,
        glossary=glossary_view(terms, several=several),
        provenance=provenance_view(studies, writers),
    )
    return visible(document)


def fragment(blocks: Sequence[Block]) -> str:
    """Render blocks as a piece of HTML for a page that is not ours, such as a notebook.

    Guarantees:
        * As in ``render``, texts are escaped and nothing outside is referred to; no script.
        * The style holds for nothing but the piece.
        * The same blocks give the same piece.
    """
    alone = BlockWriter(ident="", level=2, name="result").page(blocks)
    ident = hashlib.sha256(alone.encode("utf-8", "replace")).hexdigest()[:8]
    body = BlockWriter(ident=f"r{ident}-", level=2, name="result").page(blocks)
    # Rules within a rule hold for what is inside of it; a page's own become those of the piece.
    style = re.sub(r"(?m)(^|\{):root\{", r"\1&{", _asset("style.css"))
    style = re.sub(r"(?m)^body\{margin:0;", "&{padding:.75rem;", style)
    piece = Markup(
        '<div class="remnant-result">\n<style>.remnant-result{{{}}}</style>\n'
        "<article>\n{}</article>\n</div>\n"
    ).format(Markup(style), body)
    return visible(piece)


def write_page(path: Path, document: str, *, private: bool = False) -> Path:
    """Write a document; the file is the old one or the new one, never something between.

    Args:
        path: Of the file.
        document: HTML or Markdown.
        private: Whether only the owner may read the file.

    Raises:
        RecordError: The file cannot be written.
    """
    if path.exists() and not path.is_file():
        raise RecordError(f"{path} is not a plain file.", hint="Choose another file with --out.")
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        mode = 0o600 if private else 0o666
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(document.encode("utf-8", errors="replace"))
        os.replace(temporary, path)
    except OSError as error:
        raise write_error(path, error, hint="Choose another file with --out.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class _View:
    """What the frame shows of a page.

    Attributes:
        ident: Of its heading.
    """

    page: Page
    ident: str
    body: Markup

    @property
    def outcome(self) -> str:
        """The outcome in the contents; empty for a page that judges nothing."""
        page = self.page
        return (first_screen.outcome_of(page) or "no verdict") if first_screen.judged(page) else ""

    @property
    def tone(self) -> str:
        """Class of the outcome's colours."""
        return tone(first_screen.outcome_of(self.page))


def _made(pages: Sequence[Page]) -> list[str]:
    """Dates and versions of all runs, as far as they are known."""
    dates = sorted({v for page in pages for k, v in page.audited if k == "Date"})
    versions = sorted({v for page in pages for k, v in page.audited if k == "Remnant"})
    between = f"{dates[0].removesuffix(' (UTC)')} to {dates[-1]}" if dates[1:] else "".join(dates)
    return [*([between] if dates else []), *(f"Remnant {version}" for version in versions)]


def _title(pages: Sequence[Page], name: str, damaged: Sequence[DamagedRun]) -> str:
    if not any(first_screen.judged(page) for page in pages):
        return f"{name or pages[0].title} · Remnant"
    if len(pages) == 1:
        return f"{name}: {first_screen.outcome_of(pages[0]) or 'no verdict'} · Remnant"
    return f"{name}: {first_screen.overall(pages, damaged) or 'no verdict'} · Remnant"


def _policy(pages: Sequence[Page]) -> str:
    """Only our own style and script; pictures and sounds where there are some, from the page."""
    blocks = [block for page in pages for block in walk(page.blocks)]
    pictures = any(isinstance(block, Pictures) for block in blocks)
    sounds = any(isinstance(block, Sounds) for block in blocks)
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(_asset('style.css'))}'",
            f"script-src '{_digest(_asset('report.js'))}'",
            "base-uri 'none'",
            "form-action 'none'",
            *(["img-src data:"] if pictures else []),
            *(["media-src data:"] if sounds else []),
        ]
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("remnant.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def study_view(study: Study, writer: BlockWriter, *, level: int) -> Markup:
    """The body of a study's article; ``level`` is that of its headings."""
    parts = []
    if study.headline is not None:
        parts.append(writer.headline(study.headline, level))
    parts += [writer.block(block, level) for block in study.notices]
    if study.figure is not None:
        sentence = first_sentences(study.figure.chart.description)
        parts.append(writer.figure(study.figure, in_print(sentence)))
    parts.append(writer.page(study.shown))
    if study.how:
        how = heading(Markup("How it was done"), level, writer.new_id("how"))
        parts.append(wrap("section", how + join(writer.block(b, level) for b in study.how), "how"))
    folds = [writer.fold(each, level) for each in study.folds]
    if study.method:
        inner = tuple(_tested(each) for each in study.method)
        folds.append(
            writer.fold(Section("Method and controls", inner), level, kind="fold in-print")
        )
    if study.missing:
        lines = [in_print(f"{m.what}: {m.reason}.") for m in study.missing]
        folds.append(details(f"Not measured ({len(lines)})", listing(lines, "crosses")))
    if folds:
        parts.append(wrap("div", join(folds), "folds"))
    return join(parts)


def _tested(section: Section) -> Section:
    """A section without what was not tested: one table of the report has that."""
    blocks: list[Block] = []
    for block in section.blocks:
        blocks.append(Scope(block.tested, ()) if isinstance(block, Scope) else block)
    title = "What was tested" if any(isinstance(b, Scope) for b in blocks) else section.title
    return Section(title, tuple(blocks))


def provenance_view(studies: Sequence[Study], writers: Sequence[BlockWriter]) -> Markup:
    """What was run, a fold a study; what holds for all of them once. Nothing without any."""
    common = _common(studies)
    parts = []
    if common:
        same = Section(f"The same in all {len(studies)} runs", (Facts((("", common),)),))
        parts.append(writers[0].fold(same, 3, kind="fold in-print"))
    for study, writer in zip(studies, writers, strict=True):
        blocks = tuple(b for each in study.provenance for b in _without_rows(each, common))
        if blocks:
            title = "Plan, machine and versions"
            if len(studies) > 1:
                title = f"{study.page.title}: {study.page.name}"
            parts.append(writer.fold(Section(title, blocks), 3, kind="fold in-print"))
    if not parts:
        return Markup("")
    title = heading(Markup("Provenance"), 2, "provenance_title", link="provenance")
    return Markup(
        '<section class="view" id="provenance" aria-labelledby="provenance_title">\n{}</section>\n'
    ).format(title + join(parts))


def _facts_of(study: Study) -> list[tuple[str, str]]:
    """Rows of the last group of facts, which is about the machine."""
    groups = [
        group
        for each in study.provenance
        for block in each.blocks
        for inner in (block.blocks if isinstance(block, Fold) else (block,))
        if isinstance(inner, Facts)
        for group in inner.groups
    ]
    return list(groups[-1][1]) if groups else []


def _common(studies: Sequence[Study]) -> tuple[tuple[str, str], ...]:
    """Rows about the machine that several runs have in common, in the order of the first.

    Of versions, those that all runs have are in common.
    """
    if len(studies) < 2:
        return ()
    every = [dict(_facts_of(study)) for study in studies]
    rows = []
    for name, value in every[0].items():
        shared = [item for item in _items(name, value) if all(
            item in _items(name, row.get(name, "")) for row in every
        )]  # fmt: skip
        if shared and shared[0]:
            rows.append((name, ", ".join(shared)))
    return tuple(rows)


def _items(name: str, value: str) -> list[str]:
    """What a row lists: versions one by one, anything else as it is."""
    return value.split(", ") if name == "versions" else [value]


def _without_rows(section: Section, rows: Sequence[tuple[str, str]]) -> list[Block]:
    """The blocks of a section without folds in the fold, and without some rows of facts."""
    blocks: list[Block] = []
    for block in section.blocks:
        for each in block.blocks if isinstance(block, Fold) else (block,):
            if not isinstance(each, Facts):
                blocks.append(each)
                continue
            left = ((title, _left(group, dict(rows))) for title, group in each.groups)
            blocks.append(Facts(tuple((title, group) for title, group in left if group)))
    return blocks


def _left(
    group: Sequence[tuple[str, str]], common: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The rows of a group that say something, without what is common to all runs."""
    left = []
    for name, value in group:
        gone = _items(name, common.get(name, ""))
        own = ", ".join(item for item in _items(name, value) if item not in gone)
        if own:
            left.append((name, own))
    return tuple(left)
