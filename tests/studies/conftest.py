"""A clock for estimates, a PASS of the exposure gate, changes to a record, the texts of a page."""

from __future__ import annotations

import pickle
import re
import shutil
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from remnant.records import Record
from remnant.report.blocks import (
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
    Table,
    Terms,
    Tiles,
    walk,
)
from remnant.report.charts.shapes import Chart
from remnant.studies import run_study
from remnant.studies.exposure.verdict import ExposureJudgement
from remnant.studies.jobs.execution import Execution
from remnant.studies.jobs.remote import Order, run_order, software
from remnant.studies.jobs.scheduling import Distributed
from remnant.studies.pipeline import StepClock

DEPTHS = ("summary", "show", "page")


@pytest.fixture
def a_minute_a_step(monkeypatch):
    """Let every step of an estimate take a minute, by the clock that it looks at."""
    monkeypatch.setattr(
        StepClock, "__call__", lambda self, _: self.times.append(60.0 * len(self.times))
    )


class OtherMachine:
    """A worker of another machine, as far as one process can be one.

    What it gets and gives is pickled, its arrays are read-only as those of Ray's object store, it
    has no folder of the run, and the jobs of a stage are done last one first.
    """

    shares_disk, count, threads = False, 100, 1

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass

    def facts(self):
        return {"on": "another machine"}

    def share(self, shared):
        self.shared = _frozen(shared)

    def submit(self, job, *, execution, folder, most):
        return _Sent(_frozen((job.work, execution, job.steps)))

    def wait(self, handles, seconds):
        return [handles[-1]]

    def result(self, handle):
        work, execution, steps = handle.order
        order = Order(execution=execution, steps=steps, threads=1, versions=software())
        return _frozen(run_order(work, self.shared, order))

    def steps_done(self):
        return {}

    def cancel(self, handles):
        assert not handles


class Killed(BaseException):
    """What ends a study as abruptly as one process can."""


class KilledAfterOne(OtherMachine):
    """Another machine whose driver is killed as soon as it has kept one job.

    ``ran`` gets the names of the jobs that were run.
    """

    def __init__(self, ran):
        self.ran, self.kept = ran, False

    def submit(self, job, **how):
        sent = super().submit(job, **how)
        sent.name = job.name
        return sent

    def result(self, handle):
        self.ran.append(handle.name)
        self.kept = True
        return super().result(handle)

    def steps_done(self):
        if self.kept:
            raise Killed
        return {}

    def cancel(self, handles):
        pass


class _Sent:
    def __init__(self, order):
        self.order = order


def _frozen(sent):
    """What another process gets: a copy whose arrays cannot be written to."""
    buffers = []
    data = pickle.dumps(sent, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.fixture
def elsewhere(monkeypatch):
    """Return how studies are run whose jobs run on another machine."""
    # PyTorch warns of a tensor over memory that it must not write to; nobody does.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    before = torch.get_num_threads()
    yield lambda **settings: Execution(executor=Distributed(OtherMachine()), **settings)
    torch.set_num_threads(before)


@pytest.fixture
def killed_after_each_job(elsewhere):
    """Run a study elsewhere, with its driver killed after each job; return the jobs run.

    The same study is run again until it is complete: one time more than it has jobs.
    """

    def run(study, folder, **settings):
        ran, attempts = [], 0
        while attempts <= len(set(ran)):
            attempts += 1
            executor = Distributed(KilledAfterOne(ran))
            try:
                run_study(study, folder, replace(elsewhere(**settings), executor=executor))
            except Killed:
                assert Record.open(folder).status == "running"
                continue
            assert attempts == len(ran) + 1
            return ran
        raise AssertionError(f"a group was run twice: {ran}")

    return run


@pytest.fixture
def same_run():
    """Check that two folders have the same arrays, byte for byte, and the same results."""

    def check(one, other):
        files = [
            {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}
            for folder in (one, other)
        ]
        assert files[0].keys() == files[1].keys()
        assert [name for name in files[0] if files[0][name] != files[1][name]] == []
        assert Record.open(one).results() == Record.open(other).results()

    return check


@pytest.fixture
def passing():
    """A PASS of the exposure gate, whatever the model."""
    return ExposureJudgement(
        outcome="PASS",
        sentence="Under the limit.",
        claim="At most 3 bits.",
        limit=9.0,
        share=None,
        judged=1,
        above=0,
        share_low=0.0,
        share_high=0.95,
        p_value=0.5,
        control=40,
        trainings=1,
    )


@pytest.fixture
def changed(tmp_path):
    """Copy a finished run with some rows replaced or left out, and return its record."""
    count = iter(range(1000))

    def change(folder, rows=None, *, without=(), absent=None):
        copy = tmp_path / f"changed{next(count)}" / folder.name
        shutil.copytree(folder, copy)
        with Record.open(copy, write=True) as record:
            for name, row in (rows or {}).items():
                record.put_result(name, row)
            for name, reason in (absent or {}).items():
                record.put_absent(name, reason)
        found = Record.open(copy)
        if without:
            kept = {name: row for name, row in found.results().items() if name not in without}
            found.results = lambda: kept
        return found

    return change


def _normal(text):
    for space in "\u202f\u00a0":
        text = text.replace(space, " ")
    return text.replace("\N{MINUS SIGN}", "-")


def _texts(block, depth):
    """What a reader finds in one block, figures' captions and descriptions included."""
    if isinstance(block, Headline):
        yield from (block.outcome or "", block.title, block.sentence, block.claim, block.advice)
        if block.reading is not None:
            reading = block.reading
            ends = (reading.value, reading.low, reading.high, reading.limit)
            yield from (reading.name, reading.n)
            yield from (reading.show(end) for end in ends if end is not None)
    elif isinstance(block, Tiles):
        for tile in block.tiles:
            yield f"{tile.name}: {tile.value} ({tile.remark})"
    elif isinstance(block, Prose):
        yield block.text
    elif isinstance(block, Missing):
        yield f"{block.what}: not measured: {block.reason}."
    elif isinstance(block, Table):
        yield from (block.caption, block.fold, block.note)
        if block.bar is not None and block.bar.mark is not None:
            yield f"{block.bar.mark[0]}, {block.bar.show(block.bar.mark[1])}"
        columns = [c for c in block.shown() if DEPTHS.index(c.depth) <= DEPTHS.index(depth)]
        for row in block.rows[: block.limit]:
            for column in columns:
                cell = column.cell(row)
                yield f"{column.group} {column.name}: {cell.main} {cell.small}"
    elif isinstance(block, Figure):
        yield from (block.caption, block.chart.title, block.chart.description)
        if isinstance(block.chart, Chart):
            yield from (mark.label for mark in (*block.chart.lines, *block.chart.rules))
    elif isinstance(block, Terms):
        for name, meaning in block.entries:
            yield f"{name}: {meaning if isinstance(meaning, str) else meaning.text}"
    elif isinstance(block, Scope):
        yield from (*block.tested, *block.not_tested)
    elif isinstance(block, Facts):
        for title, rows in block.groups:
            yield from (title, *(f"{name}: {value}" for name, value in rows))
    elif isinstance(block, Section | Fold):
        yield block.title
    elif isinstance(block, Pictures):
        yield from (block.title, *(picture.alt for picture in block.pictures))
    elif isinstance(block, Sounds):
        yield from (block.title, *(sound.caption for sound in block.sounds))


@pytest.fixture(scope="session")
def page_text():
    """The text of blocks up to a depth, one line a text; spaces and minus signs are plain."""

    def text_of(blocks, depth="page"):
        lines = []
        for block in walk(blocks):
            own = getattr(block, "depth", "summary" if isinstance(block, Headline) else "page")
            if DEPTHS.index(own) <= DEPTHS.index(depth):
                lines += [line for line in _texts(block, depth) if line.strip()]
        return _normal("\n".join(lines))

    return text_of


@pytest.fixture(scope="session")
def numbers_in():
    """The numbers of a text, as they are printed."""

    def numbers(text):
        return set(re.findall(r"\d+(?: \d{3})*(?:\.\d+)?", _normal(text)))

    return numbers


class _Shown(HTMLParser):
    """The text of an HTML page without its style sheet, drawings and footer."""

    def __init__(self, page):
        super().__init__()
        self.hidden, self.text = 0, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("style", "svg", "footer")
        self.text += " "

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "svg", "footer")
        self.text += " "

    def handle_data(self, data):
        self.text += "" if self.hidden else data


@pytest.fixture(scope="session")
def html_text():
    """The text that an HTML page shows."""
    return lambda page: _normal(_Shown(page).text)
