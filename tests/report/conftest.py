"""A page with every kind of block, and a browser."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, sync_playwright

from remnant.report import blocks
from remnant.report.charts.shapes import Chart, Line, Rule
from remnant.report.pictures import png

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.fail(f"no browser found: install one of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclasses.dataclass(frozen=True)
class Interval:
    value: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class Level:
    name: str
    mean: Interval | None
    n: int


@pytest.fixture
def make_page():
    """Make a page that has every block; ``mark`` is called on each of its texts."""

    def make(mark=str, *, name="keys", outcome="FAIL", rows=3, **changes):
        return blocks.Page(
            **{
                "title": mark("Exposure"),
                "question": "exposure",
                "name": mark(name),
                "fingerprint": "3f9c2d7be4a1905c6f",
                "complete": True,
                "audited": ((mark("Model"), mark("kind lstm")), ("Date", "2026-01-02 (UTC)")),
                "command": mark("remnant run keys.toml --out keys"),
                "recipe": mark('question = "exposure"\n'),
                "blocks": tuple(_all_blocks(mark, outcome, rows)),
            }
            | changes
        )

    return make


def _all_blocks(mark, outcome, rows):
    yield blocks.Headline(
        outcome,
        mark("More exposed than allowed"),
        mark("Keys planted once: 12.1 bits."),
        claim=mark("At least 9 bits."),
        advice=mark("Remove the keys and train again."),
        reading=blocks.Reading(
            name=mark("Highest exposure"),
            value=12.1,
            low=9.0,
            high=14.2,
            limit=10.0,
            lowest=0.0,
            highest=19.93,
            show=lambda bits: mark(f"{bits:.1f} bits"),
            n=mark("8 trainings"),
        ),
    )
    tiles = (blocks.Tile(mark("Highest"), mark("12.1 bits"), mark("of 19.9"), "harm"),)
    yield blocks.Tiles((*tiles, blocks.Tile("Controls", "1.4 bits")))
    yield blocks.prose(mark("A paragraph without a section."), tone="notice")
    yield blocks.section(mark("In plain words"), _prose_blocks(mark))
    yield blocks.section("In plain words", [_figure(mark), *_table_blocks(mark, rows)])
    yield blocks.section(mark("Searches"), _nested_blocks(mark))
    yield blocks.section("Scope", [blocks.Scope((mark("One model."),), (mark("Other text."),))])
    terms = ((mark("Exposure"), mark("Bits.")), ("Command", blocks.prose(blocks.Code(mark("x")))))
    yield blocks.section("Terms", [blocks.Terms(terms)])
    facts = blocks.Facts(((mark("Plan"), ((mark("seed"), mark("0")),)), ("Empty", ())))
    fold = blocks.Fold(mark("Plan and machine"), (facts,))
    yield blocks.section("What was run", [fold], part="provenance")


def _prose_blocks(mark):
    yield blocks.prose(mark("What was planted: "), blocks.Code(mark("key {digits}")), tone="lead")
    yield blocks.prose("Run ", blocks.Code("remnant show keys"), tone="note", depth="summary")
    for tone in ("plain", "small", "proven", "open"):
        yield blocks.prose(mark(f"A {tone} sentence."), tone=tone, depth="show")
    yield blocks.Missing(mark("Twin"), mark("no twin was trained"), depth="summary")
    yield None


def _figure(mark):
    chart = Chart(
        title=mark("Exposure against steps"),
        description=mark("It falls."),
        x_label=mark("Step"),
        y_label=mark("Bits"),
        lines=(Line(mark("canary"), "main", (0, 1, 2), (9.0, 5.0, 2.0), (8, 4, 1), (10, 6, 3)),),
        rules=(Rule(mark("chance"), "chance", 1.44),),
    )
    return blocks.Figure(chart, "exposure", caption=mark("Bands: 95 % intervals."))


def _table_blocks(mark, rows):
    levels = [
        Level(mark(f"level {i}"), None if i == 1 else Interval(10.0 - i, 8.0 - i, 12.0 - i), i * 7)
        for i in range(rows)
    ]
    mean = blocks.Column(
        mark("Mean"),
        "mean",
        lambda m: blocks.Cell(f"{m.value:.2f}", mark(f"{m.low:.1f} to {m.high:.1f}")),
        strong=True,
        group=mark("Exposure"),
    )
    bar = blocks.Bar(
        lambda row: row.mean and row.mean.value,
        "{:.1f}".format,
        low=lambda row: row.mean and row.mean.low,
        high=lambda row: row.mean and row.mean.high,
        mark=("chance", 1.44),
        floor=0.0,
    )
    yield blocks.Table(
        caption=mark("Mean exposure"),
        key="levels",
        rows=levels,
        columns=(
            blocks.Column(mark("Level"), "name"),
            blocks.Column("Canaries", "n"),
            mean,
            blocks.Column("Twice", lambda row: 2 * row.n, group=mark("Exposure"), depth="page"),
            blocks.Column("Never", lambda row: None, optional=True),
        ),
        bar=bar,
        note=mark("Over trainings."),
        depth="show",
    )
    names = (blocks.Column("Level", "name"),)
    yield blocks.Table(
        caption="Names", key="levels", rows=levels, columns=names, fold=mark("All"), names=True,
        limit=2,
    )  # fmt: skip
    yield blocks.Table(caption=mark("Nothing"), key="none", rows=(), columns=names, depth="show")


def _nested_blocks(mark):
    picture = blocks.Picture(png(np.zeros((1, 8, 8))), mark("a black square"), 8, 8)
    inner = blocks.section(mark("Model 1"), [blocks.prose(mark("Nothing was extracted."))])
    table = blocks.Table(
        caption="Beside", key="beside", rows=("a",), columns=(blocks.Column("Name", str),)
    )
    yield blocks.Beside((inner, blocks.Stack((inner, blocks.prose(mark("Below.")))), table))
    yield blocks.Pictures(mark("Images"), (picture,))
