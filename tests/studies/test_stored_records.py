"""Records that versions 0.1, 0.2 and 0.3 wrote: one a question, still readable."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from remnant.records import Record
from remnant.records.outcomes import current_results
from remnant.records.typed import Absent, plain, read_result
from remnant.report.blocks import walk
from remnant.report.html import render
from remnant.report.terminal import summary
from remnant.studies.registry import QUESTIONS, load
from remnant.studies.reporting import read_page

FOLDER = Path(__file__).parent / "stored_records"
STORED = {f"{path.parent.name}/{path.stem}": path for path in FOLDER.glob("*/*.zip")}


@pytest.fixture(params=sorted(STORED))
def record(request, tmp_path):
    folder = tmp_path / request.param
    with zipfile.ZipFile(STORED[request.param]) as stored:
        stored.extractall(folder)
    return Record.open(folder)


def test_a_record_names_the_version_that_wrote_it(record, request):
    written_by = record.attempts()[0]["versions"]["remnant"]
    assert request.node.callspec.params["record"].startswith(written_by.removesuffix(".0"))


def test_every_part_is_read_as_it_was_written(record):
    result = read_result(record, load(QUESTIONS[record.question].result))
    rows = current_results(record.results(), question=record.question)
    parts = {name: getattr(result, name) for name in result.__dataclass_fields__}
    measured = {name: part for name, part in parts.items() if not isinstance(part, Absent)}
    assert measured
    for name, part in measured.items():
        if name in rows and part is not None:
            assert json.loads(json.dumps(plain(part))) == rows[name], name
    for name in parts.keys() - measured.keys():
        assert "absent" in rows.get(name, {"absent": ""}), name


def test_its_page_is_made(record):
    page = read_page(record)
    assert page.question == record.question
    assert len(list(walk(page.blocks))) > 10
    assert summary(page).startswith(page.headline.outcome or "no verdict")
    assert page.headline.title in render([page]).replace("&#39;", "'")
