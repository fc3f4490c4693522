"""Every question's result at hand: one class, its line, its plain data."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import pytest

from remnant.records import Record
from remnant.records.outcomes import current_results
from remnant.records.typed import read_result, result_from
from remnant.report.gauge import reading_text
from remnant.studies.question_result import QuestionResult
from remnant.studies.registry import QUESTIONS, load
from remnant.studies.reporting import read_page

STORED = Path(__file__).parent / "stored_records"


@pytest.fixture(params=QUESTIONS)
def record(request, tmp_path):
    folder = tmp_path / request.param
    with zipfile.ZipFile(STORED / f"{request.param}.zip") as stored:
        stored.extractall(folder)
    return Record.open(folder)


@pytest.fixture
def result(record):
    return read_result(record, load(QUESTIONS[record.question].result))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_a_result_of_the_one_class(name):
    made = load(QUESTIONS[name].result)
    assert issubclass(made, QuestionResult)
    assert "verdict" in made.__dataclass_fields__
    assert made.__repr__ is QuestionResult.__repr__, "decorate it with repr=False"
    assert "__dict__" not in dir(made), "decorate it with slots=True"


def test_it_is_printed_in_one_line_with_the_number_of_its_headline(record, result):
    headline = read_page(record).headline
    number = headline.title if headline.reading is None else reading_text(headline.reading)
    said = " ".join(f"{headline.outcome}: {number}".split())
    assert repr(result) == f"{type(result).__name__}({said})"
    assert len(repr(result)) < 200


def test_its_plain_data_are_those_of_the_record_and_are_read_back(record, result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    rows = current_results(record.results(), question=record.question)
    for name in data.keys() & rows.keys():
        if "absent" not in data[name]:
            assert data[name] == rows[name], name
    again = result_from(data, type(result), where="a dictionary")
    assert again.to_dict() == result.to_dict()


def test_a_result_without_its_record_says_no_less(record, result):
    assert repr(dataclasses.replace(result)) == repr(result)
