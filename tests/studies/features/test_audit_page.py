"""The page of an audit of one patch, in every branch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from remnant.errors import RecordError
from remnant.records.typed import Absent, plain, read_result
from remnant.report.blocks import Figure, Page, Pictures, Section, Table, Tiles, walk
from remnant.report.numerals import SPACE
from remnant.report.terminal import summary
from remnant.studies.features.audit import audit_result, feature_audit_result
from remnant.studies.features.audit_page import (
    TITLE,
    page,
    rank_sentence,
    twin_sentence,
    unrecorded_page,
)
from remnant.studies.features.audit_result import FeatureAuditResult
from remnant.studies.features.sentences import number_text
from remnant.studies.shared.pages import read_run


@pytest.fixture
def finding(audited):
    record = audited["finding"]
    return read_result(record, FeatureAuditResult), read_run(record)


@pytest.fixture
def gate(audited):
    record = audited["gate"]
    return read_result(record, FeatureAuditResult), read_run(record)


def _audit(made, **changes):
    result, run = made
    return list(page(replace(result, audit=replace(result.audit, **changes)), run))


def test_the_sections_and_their_order(finding, gate):
    titles = [
        "In plain words",
        "Does the model react to the patch?",
        "What the model was tested on",
        "What was tested, and what was not",
        "How to read this",
        "What was run",
    ]
    assert TITLE == "Audit of a feature"
    assert [block.title for block in page(*finding) if isinstance(block, Section)] == titles
    titles[3:3] = ["Did the model learn its task?", "Could the patch be found?"]
    assert [block.title for block in page(*gate) if isinstance(block, Section)] == titles


def test_the_headline_rests_on_m(gate, finding):
    headline = next(iter(page(*gate)))
    m = gate[0].audit.main.value
    assert (headline.reading.value, headline.reading.limit) == (m.value, 5.0)
    assert headline.reading.lowest <= m.low < m.high <= headline.reading.highest
    assert headline.reading.n == "60 images, 39 patches never planted, one model"
    found = next(iter(page(*finding)))
    assert (found.outcome, found.reading.limit) == ("FINDING", None)
    assert found.title == finding[0].verdict.headline


def test_a_twin_has_its_tiles_and_sentence(finding, gate):
    (tiles,) = (block for block in page(*finding) if isinstance(block, Tiles))
    assert [tile.name for tile in tiles.tiles] == [
        "p-value of M",
        "M",
        "p-value, twin",
        "M above the twin’s",
    ]
    audit = finding[0].audit
    assert tiles.tiles[0].remark == f"place {audit.main.rank} of 40"
    assert f"place {audit.twin.black_box.rank} (p" in twin_sentence(audit)
    (tiles,) = (block for block in page(*gate) if isinstance(block, Tiles))
    assert len(tiles.tiles) == 2
    assert twin_sentence(gate[0].audit).startswith("There is no twin")


def test_what_the_patch_is_ranked_among(finding):
    audit = finding[0].audit
    assert "39 patches of the same pixels that were never planted" in rank_sentence(audit)
    words = replace(audit, against="words")
    assert "39 other words that were never planted" in rank_sentence(words)


def test_scores_that_few_images_carry_are_marked(finding):
    def names(blocks):
        (table,) = (block for block in walk(blocks) if isinstance(block, Table))
        return table, [column.name for column in table.shown()]

    model = finding[0].audit.model
    few = replace(model, black_box=replace(model.black_box, carried_by_few=True))
    table, columns = names(_audit(finding, model=few))
    assert "Carried by" in columns
    cells = [table.columns[columns.index("Carried by")].cell(row).main for row in table.rows]
    assert cells[0] == "few images"
    none = {
        side: replace(
            scores,
            **{
                name: replace(getattr(scores, name), carried_by_few=False, t_test_p_value=None)
                for name in ("black_box", "white_box", "gain")
            },
        )
        for side, scores in (("model", model), ("twin", finding[0].audit.twin))
    }
    table, columns = names(_audit(finding, **none))
    assert "Carried by" not in columns
    assert table.columns[-1].cell(table.rows[0]).main == "–"


def test_pictures_and_nulls_are_those_of_the_record(finding, audited):
    blocks = list(walk(page(*finding)))
    strips = [block for block in blocks if isinstance(block, Pictures)]
    assert [len(strip.pictures) for strip in strips] == [6, 6, 6]
    (figure,) = (block for block in blocks if isinstance(block, Figure))
    values = audited["finding"].array("model_null_values")
    assert sum(figure.chart.bars.heights) == len(values) == 39
    assert figure.chart.bars.edges[0] == values.min()
    assert figure.chart.flags[0].x == finding[0].audit.main.value.value
    assert not [b for b in walk(_audit(finding, pictures=())) if isinstance(b, Pictures)]


@pytest.mark.parametrize(
    ("outcome", "title"),
    [
        ("PASS", "No evidence of the patch, and M is under the limit"),
        ("FAIL", "The model reacts to the patch"),
        ("INCONCLUSIVE", "No evidence that the patch was memorised, and no proof that it was not"),
    ],
)
def test_each_outcome_has_a_title_and_advice(gate, outcome, title):
    result, run = gate
    verdict = replace(result.verdict, outcome=outcome)
    headline = next(iter(page(replace(result, verdict=verdict), run)))
    assert (headline.outcome, headline.title) == (outcome, title)
    assert headline.advice


def test_a_task_that_was_not_learnt_is_said(gate, page_text):
    task = gate[0].audit.task
    assert task.learnt
    assert "This is evidence that it learnt its task" in page_text(page(*gate))
    poor = _audit(gate, task=replace(task, learnt=False))
    assert "This is no evidence that it learnt its task" in page_text(poor)


def test_an_audit_that_was_not_made_says_so(gate, page_text):
    result, run = gate
    blocks = list(page(replace(result, audit=Absent("it was stopped")), run))
    assert "The audit: not measured: it was stopped." in page_text(blocks, "summary")
    assert not [block for block in walk(blocks) if isinstance(block, Figure)]


def test_a_record_without_its_arrays_is_named(finding):
    result, run = finding
    for name in ("model_null_values", "image"):

        def array(asked, missing=name):
            if asked == missing:
                raise RecordError(f"the record holds no array {asked!r}.")
            return run.array(asked)

        with pytest.raises(RecordError, match=f"holds no array '{name}'"):
            list(page(result, replace(run, array=array)))
    faulty = replace(run, array=lambda name: np.full((2, 2, 3, 3), 0.5))
    with pytest.raises(RecordError, match=r"audit.pictures\[0\].array cannot be shown: "):
        list(page(result, faulty))


def test_the_terminal_shows_every_score_and_the_scope(finding):
    result, run = finding
    shown = Page(
        title=TITLE,
        question=run.question,
        name="",
        fingerprint="",
        complete=True,
        blocks=tuple(page(result, run)),
    )
    lines = summary(shown).splitlines()
    for row in result.audit.scores:
        score = row.score
        numbers = (*score.value, score.null_median, score.null_largest)
        (line,) = [
            line
            for line in lines
            if all(number_text(number).replace(SPACE, " ") in line for number in numbers)
            and f" {row.side} " in line
        ]
        assert f"{score.rank} of {score.nulls + 1}" in line
    start, end = lines.index("  tested:"), lines.index("  not tested:")
    assert lines[start + 1 : end] == [f"  - {line}" for line in result.scope.tested]
    assert lines[end + 1 :] == [f"  - {line}" for line in result.scope.not_tested]


def test_an_audit_without_a_record_has_the_same_page_but_for_pictures_and_machine(
    measured, audited
):
    for name, audit in measured.items():
        record = audited[name]
        stored = read_result(record, FeatureAuditResult)
        assert plain(replace(stored.audit, pictures=None)) == plain(audit_result(audit))
        shown = unrecorded_page(feature_audit_result(audit), audit.arrays())
        summaries = [
            summary(replace(shown, blocks=blocks))
            for blocks in (shown.blocks, tuple(page(stored, read_run(record))))
        ]
        assert summaries[0] == summaries[1]
        assert not [b for b in walk(shown.blocks) if isinstance(b, Pictures)]
