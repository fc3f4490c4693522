"""Markdown of pages, read back by a parser: what was text stays text."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from remnant.records import Record
from remnant.report.blocks import (
    Check,
    Code,
    Column,
    Headline,
    Missing,
    Page,
    Scope,
    Section,
    Table,
    Tile,
    Tiles,
    prose,
)
from remnant.report.markdown import MADE_BY, code, escaped, render
from remnant.report.numerals import in_one_line, visible
from remnant.report.terminal import summary
from remnant.studies.reporting import read_page

FOLDER = Path(__file__).parents[1] / "studies" / "stored_records"
STORED = {f"{path.parent.name}/{path.stem}": path for path in FOLDER.glob("*/*.zip")}
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
STEERING = "\n\r\t |`*_[]()<>{}#+-=.!~&$:/\\\"'a1:@"
HARMFUL = st.text(STEERING, max_size=30) | st.text(max_size=30)
SAMPLES = (
    "<script>alert(1)</script>",
    "| a | b |\n| --- | --- |",
    "[x](javascript:alert(1)) ![x](http://x.y/z) <http://x.y>",
    "```sh\nrm\n```",
    "# head\n\n- list\n1. list\n\n    code",
    "&lt;b&gt; &copy; \\* \\| $x^2$ ~~no~~ **no** _no_ __no__",
    "a\x07b\u202ec\u202fd",
    "***",
    "---",
)


def tokens(document):
    return [inner for token in PARSER.parse(document) for inner in (token, *(token.children or ()))]


def kinds(document):
    return {token.type for token in tokens(document)}


def texts(document):
    """The text of each paragraph, heading and cell, as it is shown."""
    return [
        "".join(inner.content for inner in token.children or ())
        for token in PARSER.parse(document)
        if token.type == "inline"
    ]


def shown(text):
    return " ".join(visible(in_one_line(text)).split())


def page(*blocks, **changed):
    made = {"title": "Exposure", "question": "exposure", "name": "run", "fingerprint": "abc"}
    return Page(**({**made, "complete": True, "blocks": blocks} | changed))


def same(text):
    """What a parser may fold or trim at the ends of a line is not compared."""
    return " ".join(text.split())


@given(HARMFUL)
def test_an_escaped_text_is_a_paragraph_with_that_text(text):
    wanted = shown(text)
    assert list(map(same, texts(escaped(text)))) == ([wanted] if wanted else [])
    assert kinds(escaped(text)) <= {"paragraph_open", "inline", "text", "paragraph_close"} | {
        "text_special"
    }


@given(HARMFUL)
def test_a_text_as_code_is_that_code(text):
    wanted = shown(text)
    spans = [token for token in tokens(f"x {code(text)}") if token.type == "code_inline"]
    assert [same(span.content) for span in spans] == ([wanted] if wanted else [])


@pytest.mark.parametrize("text", SAMPLES)
def test_no_text_of_a_block_steers_the_document(text):
    check = Check(name=text, status="found", text=text)
    table = Table(
        caption=text,
        key="rows",
        rows=[{"name": text, "number": 1.5}],
        columns=(
            Column(text, lambda row: row["name"], strong=True),
            Column("Number", lambda row: row["number"], group=text),
        ),
        note=text,
        depth="show",
    )
    document = render(
        [
            page(
                Headline("FAIL", text, text, claim=text, advice=text, checks=(check,)),
                Tiles((Tile(text, text, text),)),
                Section(text, (prose(text, Code(text), text, depth="show"), table)),
                Missing(text, text, depth="show"),
                Scope((text,), (text,)),
                title=text,
                name=text,
                audited=((text, text),),
                command=text,
            )
        ]
    )
    found = tokens(document)
    assert not {"html_block", "html_inline", "link_open", "image", "s_open"} & kinds(document)
    assert [token.tag for token in found if token.type == "heading_open"] == ["h2"]
    assert [token.type for token in found].count("table_open") == 2
    assert [token.type for token in found].count("fence") == 1
    assert [token.type for token in found].count("bullet_list_open") == 4
    assert "hr" not in kinds(document)
    assert shown(text) in map(same, texts(document))
    assert not re.search("[\x00-\x08\u202a-\u202e]", document)


def test_a_code_fence_is_longer_than_any_within():
    document = render([page(command="remnant run '```` x'\n```\nmore")])
    (fence,) = (token for token in tokens(document) if token.type == "fence")
    assert fence.content == "remnant run '```` x'\n```\nmore\n"


@pytest.fixture(params=sorted(STORED))
def stored(request, tmp_path):
    with zipfile.ZipFile(STORED[request.param]) as packed:
        packed.extractall(tmp_path / "run")
    return read_page(Record.open(tmp_path / "run"))


def test_every_stored_record_is_markdown(stored):
    document = render([stored])
    assert not {"html_block", "html_inline", "link_open", "image"} & kinds(document)
    said = texts(document)
    assert any(stored.headline.title in text for text in said)
    assert summary(stored).split(":")[0] in said[1]
    assert said[-1].startswith(MADE_BY.strip("*"))
    assert any(token.type == "bullet_list_open" for token in tokens(document))
    for token in PARSER.parse(document):
        if token.type == "inline":
            assert "|" not in token.content.replace("\\|", ""), "a cell ended early"


def test_several_runs_begin_with_their_outcomes():
    first = page(Headline("FAIL", "Exposed", "Too much."), name="first|run")
    second = page(Headline("PASS", "Fine", "Within."), complete=False)
    document = render([first, second])
    assert "2 runs: 1 FAIL, 1 INCONCLUSIVE." in document
    assert "| first\\|run | Exposure | **FAIL** | Exposed |" in document
    assert "| run | Exposure | **INCONCLUSIVE** | Fine |" in document
    assert document.count("**This run is not complete.**") == 1


def test_a_long_table_ends_and_says_so():
    table = Table(
        caption="Rows",
        key="rows",
        rows=list(range(50)),
        columns=(Column("Number", lambda row: row), Column("Page", lambda row: row, depth="page")),
        depth="show",
    )
    document = render([page(table, prose("only on the page"))])
    assert "| 19 |" in document
    assert "| 20 |" not in document
    assert "30 more rows are in the record." in document
    assert "only on the page" not in document
    assert "| Page |" not in document
