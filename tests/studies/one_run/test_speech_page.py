"""The page of one run of speech, and its result: read back, shown, in words of its own."""

from __future__ import annotations

import dataclasses

import pytest

from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.report.blocks import Figure, Prose, Section, Table, walk
from remnant.studies.one_run.page import SPEECH_TITLE as TITLE
from remnant.studies.one_run.page import page
from remnant.studies.one_run.result import SpeechOneRunResult
from remnant.studies.reporting import read_page, write_report
from remnant.studies.shared.pages import read_run


@pytest.fixture(scope="module")
def record(spoken_run):
    return Record.open(spoken_run)


@pytest.fixture(scope="module")
def result(record):
    return read_result(record, SpeechOneRunResult)


def test_the_page_says_what_was_done_and_found(record, page_text):
    shown = read_page(record)
    assert shown.title == TITLE
    text = page_text(shown.blocks)
    for words in (
        "Canaries are sentences of random words, spoken by synthetic voices. 48 canaries were "
        "planted along one ordinary training run of 170 steps: in 2 windows of 30 steps, from "
        "steps 60 and 110 on, a few in a batch, 2 or 8 times each. Another 40, drawn the same way",
        "On 40 utterances that it was not trained on, the model gets",
        "how many bits planting took off the cost of the canaries’ transcripts",
        "It scores each canary by how little its transcript costs the model given its sound",
        "a transcript's CTC cost given its sound, less its cost before the window",
        "40 canaries drawn the same way, never planted",
        "real voices: synthesizers speak more alike than people do",
        "intervals are over utterances, not over who speaks them",
    ):
        assert words in text, words
    for words in ("log-odds", "nats", "sure of its label", "confidence in the canaries"):
        assert words not in text, words


def test_a_terminal_shows_the_error_rates(record, result):
    blocks = list(page(result, read_run(record)))
    rates = [
        block
        for block in walk(blocks)
        if isinstance(block, Prose) and "that it was not trained on" in str(block.parts[0])
    ]
    assert [block.depth for block in rates] == ["summary"]


def test_effects_are_in_bits(record, result):
    blocks = list(page(result, read_run(record)))
    titles = [block.title for block in blocks if isinstance(block, Section)]
    assert "What planting did to the cost of the transcripts" in titles
    charts = {block.key: block.chart for block in walk(blocks) if isinstance(block, Figure)}
    assert charts["effect"].y_label == "Cost saved by planting (bits)"
    assert " bits at lag " in charts["effect"].description
    tables = {block.key: block for block in walk(blocks) if isinstance(block, Table)}
    assert "Effect (bits)" in [column.name for column in tables["checkpoints"].columns]


def test_a_page_without_curves_says_why(record, changed, spoken_run, page_text):
    cut = changed(spoken_run, absent={"one_run": "it was cut short", "task": "no time"})
    text = page_text(read_page(cut).blocks)
    assert "Attack success in this run was not measured: it was cut short." in text
    assert "usefulness was not measured: no time" in text
    bare = SpeechOneRunResult(
        **dict.fromkeys(("verdict", "one_run", "task", "scope"), Absent("none"))
    )
    run = dataclasses.replace(read_run(record), recipe={"canaries": {"kind": "wrong"}})
    assert "log-odds" not in page_text(page(bare, run))


def test_wrong_transcripts_have_a_sentence_of_their_own(record, result, page_text):
    run = dataclasses.replace(read_run(record), recipe={"canaries": {"kind": "wrong"}})
    text = page_text(page(result, run))
    assert "Canaries are recordings with random words as a wrong transcript. 48 canaries" in text


def test_the_report_is_written(spoken_run, tmp_path):
    report = tmp_path / "report.html"
    write_report(spoken_run, report)
    document = report.read_text(encoding="utf-8")
    assert TITLE in document
    assert "Cost saved by planting (bits)" in document
