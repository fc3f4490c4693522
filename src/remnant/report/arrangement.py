"""What of a study stands where: first what decides, then one chart, the rest behind folds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from remnant.report.blocks import (
    Beside,
    Block,
    Figure,
    Fold,
    Headline,
    Missing,
    Page,
    Prose,
    Scope,
    Section,
    Stack,
    Terms,
    walk,
)
from remnant.report.charts.shapes import Chart
from remnant.report.first_screen import judged

_Place = Literal["words", "terms", "missing", "provenance", "method", "results", "loose"]
_HOW_WORDS = 60
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9“])")
_HOLDERS = (Section, Beside, Stack, Fold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A page by the place of its blocks; each block has one.

    Attributes:
        headline: None for a page that is of no study and judges nothing.
        notices: Warnings, wherever the page has them outside its results.
        figure: The chart that is shown at once; None where the page has none.
        shown: What stands open where there is no such chart.
        how: How it was done, in few words.
        folds: Results, each behind its title.
        method: How it was done in full, controls, how it was measured, what was tested.
        missing: What was not measured.
        provenance: When canaries were used, and what was run.
        terms: For the glossary.
    """

    page: Page
    headline: Headline | None
    notices: tuple[Prose, ...]
    figure: Figure | None
    shown: tuple[Block, ...]
    how: tuple[Prose, ...]
    folds: tuple[Section, ...]
    method: tuple[Section, ...]
    missing: tuple[Missing, ...]
    provenance: tuple[Section, ...]
    terms: tuple[tuple[str, str | Prose], ...]

    @property
    def not_tested(self) -> tuple[str, ...]:
        """What the scope says was not tested."""
        scopes = (block for block in walk(self.page.blocks) if isinstance(block, Scope))
        return tuple(line for scope in scopes for line in scope.not_tested)


def arranged(page: Page) -> Study:
    """Sort the blocks of a page by what they are.

    Guarantees:
        * Every block of the page is somewhere, but for headlines after the first.
        * Warnings are open, wherever the page has them.

    Example:
        >>> from remnant.report.blocks import prose
        >>> page = Page(title="Keys", question="exposure", name="keys", fingerprint="",
        ...             complete=True, blocks=(prose("Text was read.", tone="lead"),))
        >>> [sentence.text for sentence in arranged(page).how]
        ['Text was read.']
    """
    placed: dict[_Place, list[Any]] = {}
    for block in page.blocks:
        if not isinstance(block, Headline):
            placed.setdefault(_place_of(block), []).append(block)
    words = [b for each in placed.get("words", ()) for b in getattr(each, "blocks", (each,))]
    loose: list[Block] = placed.get("loose", [])
    method: list[Section] = placed.get("method", [])
    notices = [
        block
        for block in walk((*loose, *words, *method))
        if isinstance(block, Prose) and block.tone == "notice"
    ]
    how, rest = _few_words([block for block in words if _is_lead(block)])
    rest += [block for block in words if not _is_lead(block)]
    if rest:
        method.insert(0, Section("How it was done, in full", tuple(rest), "method"))
    headline = page.headline if judged(page) else None
    results = [*placed.get("results", ())]
    figure, shown, folds = _main(_all_without(loose, notices), results, open=headline is None)
    return Study(
        page=page,
        headline=headline,
        notices=tuple(notices),
        figure=figure,
        shown=shown,
        how=tuple(how),
        folds=folds,
        method=tuple(_all_without(method, notices)),
        missing=tuple(m for each in placed.get("missing", ()) for m in each.blocks),
        provenance=tuple(placed.get("provenance", ())),
        terms=tuple(
            entry for each in placed.get("terms", ()) for b in each.blocks for entry in b.entries
        ),
    )


def _place_of(block: Block) -> _Place:
    if not isinstance(block, Section):
        return "words" if _is_lead(block) else "loose"
    for kind, place in ((Terms, "terms"), (Missing, "missing"), (Scope, "method")):
        if all(isinstance(inner, kind) for inner in block.blocks):
            return place  # type: ignore[return-value]
    if block.part:
        return block.part
    return "words" if any(map(_is_lead, block.blocks)) else "results"


def _main(
    loose: Sequence[Block], results: Sequence[Section], *, open: bool
) -> tuple[Figure | None, tuple[Block, ...], tuple[Section, ...]]:
    """The chart, what stands open without one, and the other results."""
    if open:
        return None, (*loose, *results), ()
    figure = next(_charts((*loose, *results)), None)
    if figure is None:
        return None, (*loose, *results[:1]), tuple(results[1:])
    home = next((each for each in results if any(b is figure for b in walk([each]))), None)
    numbers = [*loose, *(() if home is None else home.blocks)]
    numbers = _all_without(numbers, [figure])
    if figure.caption:
        numbers.append(Prose((figure.caption,), "note"))
    folds = [each for each in results if each is not home]
    if numbers:
        folds.insert(0, Section("Numbers of the chart", tuple(numbers)))
    return figure, (), tuple(folds)


def _is_lead(block: Block) -> bool:
    return isinstance(block, Prose) and block.tone == "lead"


def _charts(blocks: Iterable[Block]) -> Iterator[Figure]:
    for block in walk(blocks):
        if isinstance(block, Figure) and isinstance(block.chart, Chart):
            yield block


def _few_words(leads: Sequence[Prose]) -> tuple[list[Prose], list[Prose]]:
    """The first sentences, up to some words but at least one, and the rest."""
    if not leads:
        return [], []
    first, *others = leads
    if len(first.parts) > 1 or not isinstance(first.parts[0], str):
        return [first], others
    sentences = _SENTENCE.split(first.parts[0])
    kept = _fitting(sentences, _HOW_WORDS)
    few = Prose((" ".join(sentences[:kept]),), "plain")
    rest = [Prose((" ".join(sentences[kept:]),), "lead")] if kept < len(sentences) else []
    return [few], [*rest, *others]


def first_sentences(text: str, words: int = 24) -> str:
    """The first sentence of a text, and those after it up to some words in all.

    Example:
        >>> first_sentences("AUC goes from 0.88 to 0.73. Twins stay at chance.", words=8)
        'AUC goes from 0.88 to 0.73.'
    """
    sentences = _SENTENCE.split(text)
    return " ".join(sentences[: _fitting(sentences, words)])


def _fitting(sentences: Sequence[str], words: int) -> int:
    """How many sentences have at most so many words in all; at least one."""
    kept = 1
    while kept < len(sentences) and len(" ".join(sentences[: kept + 1]).split()) <= words:
        kept += 1
    return kept


def _all_without(blocks: Iterable[Any], gone: Sequence[Block]) -> list[Any]:
    found = (_without(block, gone) for block in blocks)
    return [block for block in found if block is not None]


def _without(block: Block, gone: Sequence[Block]) -> Block | None:
    """A block without some that are in it; None where nothing is left."""
    if any(block is each for each in gone):
        return None
    if not isinstance(block, _HOLDERS) or not any(b is g for b in walk([block]) for g in gone):
        return block
    left = tuple(_all_without(block.blocks, gone))
    if not left:
        return None
    alone: Block = left[0]
    if isinstance(block, Beside) and len(left) == 1:
        return alone
    return dataclasses.replace(block, blocks=left)
