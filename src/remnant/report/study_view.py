"""A study on the page: outcome, one chart, controls, how it was done; the rest behind folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from remnant.report.arrangement import Study, first_sentences
from remnant.report.blocks import Block, Facts, Fold, Scope, Section
from remnant.report.html_blocks import (
    BlockWriter,
    details,
    heading,
    join,
    listing,
    wrap,
)
from remnant.report.numerals import in_print


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
