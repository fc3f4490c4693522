"""Small real exposure studies, run once, and the text of a page."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable

import pytest

from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.records.outcomes import current_results
from remnant.records.typed import result_from
from remnant.report import blocks as b
from remnant.studies import Execution, ExposureStudy, run_study
from remnant.studies.exposure.page import page
from remnant.studies.exposure.recipe import SecretSettings
from remnant.studies.exposure.result import ExposureResult
from remnant.studies.shared.pages import read_run
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    MeasureSettings,
    TextSettings,
)

EXACT = ExposureStudy(
    plan=InsertPlan(repeats=(1, 40), steps=60, controls=4, batch=16),
    text=TextSettings(characters=6_000, window=24),
    secret=SecretSettings(template="key {digits:3};"),
    model=LanguageModelSettings(options={"units": 24, "layers": 1}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.03}),
    measure=MeasureSettings(references=300, limit=9.0),
)
SAMPLED = dataclasses.replace(
    EXACT,
    plan=dataclasses.replace(EXACT.plan, trials=2),
    measure=MeasureSettings(method="sampled", references=60, share=0.5, limit=5.0),
)
BARE = dataclasses.replace(
    EXACT,
    plan=dataclasses.replace(EXACT.plan, twin=False, controls=0),
    measure=MeasureSettings(method="exact", references=0, limit=9.0, max_nodes=200),
)


def _text(text: str) -> str:
    return text.replace("\u202f", " ").replace("\N{MINUS SIGN}", "-")


def _chart(chart) -> list[str]:
    texts = [chart.title, chart.description, chart.x_label, chart.y_label]
    texts += [line.label for line in chart.lines] + [rule.label for rule in chart.rules]
    texts += [dot.tip for group in chart.dots for dot in group.dots]
    return texts + [part for flag in chart.flags for part in (flag.label, flag.tip)]


def texts(block: b.Block) -> Iterable[str]:
    """Yield every text of one block, without those of the blocks within it."""
    match block:
        case b.Headline():
            yield from (block.title, block.sentence, block.claim, block.advice)
            if block.reading is not None:
                r = block.reading
                yield from (r.name, r.n, *(r.show(v) for v in (r.value, r.limit) if v is not None))
        case b.Tiles():
            yield from (f"{tile.name}: {tile.value} ({tile.remark})" for tile in block.tiles)
        case b.Prose():
            yield block.text
        case b.Missing():
            yield f"{block.what}: not measured: {block.reason}."
        case b.Table():
            yield from (block.caption, block.fold, block.note)
            yield from (column.name for column in block.shown())
            if block.bar is not None:
                ends = (block.bar.floor, block.bar.mark and block.bar.mark[1])
                yield from (block.bar.show(end) for end in ends if end is not None)
            for row in block.rows:
                for column in block.shown():
                    cell = column.cell(row)
                    yield from (cell.main, cell.small)
        case b.Figure():
            yield from (block.caption, block.flags, *_chart(block.chart))
        case b.Terms():
            yield from (part for entry in block.entries for part in entry)
        case b.Scope():
            yield from (*block.tested, *block.not_tested)
        case b.Facts():
            yield from (part for _, rows in block.groups for row in rows for part in row)
        case b.Section() | b.Fold():
            yield block.title


@pytest.fixture(scope="session")
def all_text():
    """The text of all blocks, or of those that travel as far as ``depth``."""

    def joined(found, *depths):
        kept = b.walk(found)
        if depths:
            kept = [block for block in kept if getattr(block, "depth", "page") in depths]
        return _text("\n".join(text for block in kept for text in texts(block)))

    return joined


@pytest.fixture(scope="session")
def numbers():
    """The numbers that a text names; thousands may be set apart by a space."""

    def named(text):
        text = re.sub(r"(?<=[0-9]) (?=[0-9]{3}(?![0-9]))", "", _text(text))
        return set(re.findall(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?", text))

    return named


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """Run a small study by its name, once, and return its folder."""
    studies, folders = {"exact": EXACT, "sampled": SAMPLED, "bare": BARE}, {}

    def run(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("study") / name
            run_study(studies[name], folders[name], Execution())
        return folders[name]

    return run


@pytest.fixture(scope="session", params=["exact", "sampled", "bare"])
def folder(request, run_once):
    """The folder of a small study; exact ranks, sampled ones, or without twin and controls."""
    return run_once(request.param)


@pytest.fixture(scope="session")
def exact_folder(run_once):
    """The folder of a small study with exact ranks."""
    return run_once("exact")


@pytest.fixture(scope="session")
def run_of(exact_folder):
    """What a page says about that run."""
    return read_run(Record.open(exact_folder))


@pytest.fixture
def changed(exact_folder):
    """That study's result; ``changes`` are entries to be set in its parts, None is no part."""
    record = Record.open(exact_folder)
    parts = current_results(record.results(), question=record.question)

    def make(**changes) -> ExposureResult:
        made = json.loads(json.dumps(parts))
        for name, entries in changes.items():
            if entries is None:
                del made[name]
            elif "absent" in entries:
                made[name] = entries
            else:
                made[name] |= entries
        return result_from(made, ExposureResult, where="a record")

    return make


@pytest.fixture
def page_of(run_of):
    """The blocks of a result's page."""
    return lambda result: list(page(result, run_of))
