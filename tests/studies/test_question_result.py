"""Every question's result at hand: one class, its line, its plain data."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import get_origin

import numpy as np
import pytest
from matplotlib.figure import Figure

import remnant
from remnant.errors import InvalidInput, NotEnoughEvidence, RecordError
from remnant.records import Record
from remnant.records.outcomes import current_results
from remnant.records.typed import Absent, read_result, result_from
from remnant.report import blocks
from remnant.report.gauge import reading_text
from remnant.studies.question_result import QuestionResult
from remnant.studies.registry import QUESTIONS, load
from remnant.studies.reporting import read_page

STORED = Path(__file__).parent / "stored_records" / "0.3"


@pytest.fixture
def stored(tmp_path):
    """Returns the folder of a question's stored record."""

    def folder_of(question):
        with zipfile.ZipFile(STORED / f"{question}.zip") as packed:
            packed.extractall(tmp_path / question)
        return tmp_path / question

    return folder_of


@pytest.fixture(params=QUESTIONS)
def record(request, stored):
    return Record.open(stored(request.param))


@pytest.fixture
def result(record):
    return read_result(record, load(QUESTIONS[record.question].result))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_a_result_of_the_one_class(name):
    made = load(QUESTIONS[name].result)
    made = get_origin(made) or made
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
    again = result_from(data, load(QUESTIONS[record.question].result), where="a dictionary")
    assert again.to_dict() == result.to_dict()


def test_a_result_without_its_record_says_no_less(record, result):
    assert repr(dataclasses.replace(result)) == repr(result)


NO_CHART = {"early-prediction", "extraction", "found-secrets"}


def test_it_is_read_from_its_folder(record, result):
    loaded = remnant.load(record.folder)
    assert loaded == result
    assert (loaded.question, loaded.read_from) == (record.question, record.folder)


def test_what_is_no_record_is_refused(tmp_path):
    with pytest.raises(RecordError, match="holds no record"):
        remnant.load(tmp_path)


def test_its_main_rows_are_a_frame(record, result):
    if record.question == "text-prediction":  # no list could be made
        with pytest.raises(NotEnoughEvidence, match=r"protect\.samples was not measured: every"):
            result.to_frame()
        return
    frame = result.to_frame()
    assert len(frame) > 0
    assert frame.columns.is_unique
    assert all(str(name).isidentifier() for name in frame.columns)


def test_all_of_its_tables_are_frames(result):
    with pytest.raises(InvalidInput) as caught:
        result.to_frame("none of them")
    for path in caught.value.hint.removeprefix("Its tables are ").removesuffix(".").split(", "):
        if not isinstance(getattr(result, path.split(".")[0]), Absent):
            assert len(result.to_frame(path).columns) > 1, path


def test_a_notebook_shows_the_verdict_and_the_main_chart_of_the_page(record):
    loaded, page = remnant.load(record.folder), read_page(record)
    shown = loaded._repr_html_()
    assert page.headline.title in shown.replace("&#39;", "'")
    assert shown.count("<figure>") == (record.question not in NO_CHART)
    assert "<script" not in shown
    assert "http" not in shown
    assert shown == remnant.load(record.folder)._repr_html_()


def test_every_chart_of_its_page_is_plotted(record):
    loaded, page = remnant.load(record.folder), read_page(record)
    figures = [block for block in blocks.walk(page.blocks) if isinstance(block, blocks.Figure)]
    for figure in figures:
        axes = loaded.plot(Figure().subplots(), chart=figure.key)
        assert axes.get_title() == figure.chart.title.replace("\u202f", "\xa0")
    if not figures:
        with pytest.raises(InvalidInput, match="has no chart"):
            loaded.plot()


def test_the_plot_has_the_numbers_of_the_chart(stored):
    result = remnant.load(stored("forgetting"))
    axes = result.plot(Figure().subplots())
    drawn = [line.get_xydata().tolist() for line in axes.get_lines()]
    assert np.transpose([result.curve.lags, result.curve.value]).tolist() in drawn


def test_a_figure_is_saved_as_its_name_says(stored, tmp_path):
    result = remnant.load(stored("exposure"))
    for end, start in ((".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")):
        path = result.save_figure(tmp_path / f"exposure{end}", chart="costs")
        assert path.read_bytes().startswith(start)
    with pytest.raises(InvalidInput, match=r"does not end in \.svg or \.pdf or \.png"):
        result.save_figure(tmp_path / "exposure.gif")
    with pytest.raises(InvalidInput, match="cannot be written"):
        result.save_figure(tmp_path / "none" / "exposure.png")
    with pytest.raises(InvalidInput, match="has no chart='cost'") as caught:
        result.save_figure(tmp_path / "exposure.svg", chart="cost")
    assert caught.value.hint == "Its charts are exposure, costs."


def test_a_result_without_its_record_has_what_needs_no_array_of_it(stored):
    result = dataclasses.replace(remnant.load(stored("feature-audit")))
    assert "FAIL" in result._repr_html_()
    with pytest.raises(InvalidInput, match="has no chart"):
        result.plot()
