"""What of a page stands where."""

from __future__ import annotations

import dataclasses

from remnant.report.arrangement import arranged
from remnant.report.blocks import Missing, Prose, Scope, Section, Table, Terms, prose, section, walk


def titles(sections):
    return [each.title for each in sections]


def test_every_block_has_one_place(make_page):
    page = make_page()
    study = arranged(page)
    placed = [
        *study.notices, study.figure, *study.shown, *study.how, *study.folds, *study.method,
        *study.provenance,
    ]  # fmt: skip
    found = [block for each in placed for block in walk([each])]
    for kind in (Table, Missing, Scope):
        wanted = [block for block in walk(page.blocks) if isinstance(block, kind)]
        assert [block for block in found if isinstance(block, kind)] == wanted, kind
    assert found.count(study.figure) == 1
    terms = [block for block in walk(page.blocks) if isinstance(block, Terms)]
    assert study.terms == tuple(entry for block in terms for entry in block.entries)


def test_a_study_begins_with_its_chart_and_folds_the_rest(make_page):
    study = arranged(make_page())
    assert study.figure.key == "exposure"
    assert titles(study.folds) == ["Numbers of the chart", "Searches"]
    assert titles(study.method) == ["How it was done, in full", "Scope"]
    assert titles(study.provenance) == ["What was run"]
    caption = study.folds[0].blocks[-1]
    assert caption.text == "Bands: 95 % intervals."


def test_without_a_chart_the_first_results_are_open(make_page):
    page = make_page()
    first, second = section("One", [prose("a")]), section("Two", [prose("b")])
    study = arranged(dataclasses.replace(page, blocks=(page.headline, first, second)))
    assert (study.figure, study.shown, study.folds) == (None, (first,), (second,))


def test_a_page_without_a_headline_is_shown_in_its_order(make_page):
    parts = (prose("a"), section("One", [prose("b")]))
    study = arranged(make_page(question="", blocks=parts))
    assert study.headline is None
    assert study.shown == parts


def test_how_it_was_done_is_cut_after_a_sentence(make_page):
    words = " ".join(["word"] * 30)
    text = f"First {words}. Second {words}. Third {words}."
    page = make_page(blocks=(section("In plain words", [prose(text, tone="lead")]),))
    study = arranged(page)
    assert [each.text for each in study.how] == [f"First {words}."]
    (rest,) = study.method
    assert rest.blocks[0].text == f"Second {words}. Third {words}."


def test_warnings_are_open_and_what_is_missing_has_no_section(make_page):
    warning = prose("The control was not found.", tone="notice")
    method = section("Controls", [prose("x"), warning], part="method")
    gone = section("Gone", [Missing("Noise", "no noise was added")])
    study = arranged(make_page(blocks=(method, gone)))
    assert study.notices == (warning,)
    assert study.method == (Section("Controls", (Prose(("x",)),), "method"),)
    assert study.missing == (Missing("Noise", "no noise was added"),)
    assert study.folds == ()
