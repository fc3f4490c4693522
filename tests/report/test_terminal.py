"""Pages in a terminal: the outcome, the blocks of a depth, and bars."""

from __future__ import annotations

import dataclasses

from remnant.report.blocks import Bar, Cell, Column, Headline, Missing, Page, Table, prose, section
from remnant.report.terminal import WIDTH, detail, summaries, summary

SUMMARY = [
    "FAIL: Keys planted once: 12.1 bits.",
    "  claim: At least 9 bits.",
    "  what to do: Remove the keys and train again.",
    "  Highest: 12.1 bits (of 19.9)",
    "  Controls: 1.4 bits",
    "  Run remnant show keys",
    "  Twin: not measured: no twin was trained",
]


def _page(*blocks, question="exposure"):
    return Page(
        title="Exposure", question=question, name="keys", fingerprint="", complete=True,
        blocks=blocks,
    )  # fmt: skip


def test_the_summary_is_the_outcome_and_what_it_rests_on(make_page):
    assert summary(make_page()).splitlines() == SUMMARY
    named = summary(make_page(), named=True).splitlines()
    assert named == [*SUMMARY[:3], "  run keys, exposure", *SUMMARY[3:]]


def test_several_summaries_say_which_run_each_is(make_page):
    text = summaries([make_page(), make_page(name="other")], report="r.html")
    assert text.split("\n\n")[1].splitlines()[3] == "  run other, exposure"
    assert text.endswith("\n\nreport: r.html")
    assert summaries([make_page()], report="r.html") == "\n".join([*SUMMARY, "report: r.html"])


def test_a_finding_begins_with_its_headline_and_a_missing_verdict_with_its_reason():
    finding = _page(Headline("FINDING", "Fewer epochs help", "By 2 bits.", advice="Stop early."))
    assert summary(finding).splitlines() == [
        "FINDING: Fewer epochs help. By 2 bits.",
        "  what to do: Stop early.",
    ]
    assert summary(_page(Headline(None, "No verdict", "cut short"))) == "no verdict: cut short"
    assert summary(_page()) == "no verdict: nothing was measured"
    assert summary(_page(prose("Only this.", depth="summary"), question="")) == "  Only this."


def test_the_detail_has_tables_with_bars(make_page):
    assert detail(make_page()).splitlines() == [
        "A plain sentence.",
        "A small sentence.",
        "A proven sentence.",
        "A open sentence.",
        "",
        "Mean exposure",
        "Level    Canaries                 Mean  0.0                                 12.0",
        "level 0         0  10.00 (8.0 to 12.0)       ┊                    ──────●───────",
        "level 1         7                    –       ┊",
        "level 2        14   8.00 (6.0 to 10.0)       ┊              ──────●──────",
        "┊ chance, 1.4",
        "Over trainings.",
    ]
    assert detail(_page(Headline("PASS", "t", "s"))) == ""


def test_a_wide_table_gives_up_its_bar_and_columns_of_the_page(make_page):
    bar = Bar(lambda row: row, str, mark=("chance", 1))
    first = Column("Name", lambda row: f"row {row}")
    wide = Column("Wide", lambda row: row, lambda row: "w" * 45)
    page = Column("Page", lambda row: row, lambda row: "p" * 90, depth="page")
    for columns, expected in (((first,), 40), ((first, wide), 40), ((first, wide, wide), 0)):
        table = Table(
            caption="t", key="t", rows=(1, 2), columns=(*columns, page), bar=bar, depth="show"
        )
        lines = detail(_page(section("s", [table]))).splitlines()
        assert max(map(len, lines)) <= WIDTH
        assert ("●" in "".join(lines)) == bool(expected)
        assert "p" * 90 not in "".join(lines)
    middle = dataclasses.replace(
        table, columns=(first, dataclasses.replace(wide, show=lambda _: "w" * 65))
    )
    assert max(map(len, detail(_page(middle)).splitlines())) <= WIDTH
    assert "●" in detail(_page(middle)), "a shorter bar"


def test_a_summary_table_shows_its_own_columns_and_stays_on_its_lines():
    table = Table(
        caption="Variants",
        key="v",
        rows=("a\nb",),
        columns=(
            Column("Name", str, depth="summary"),
            Column(
                "p‑value", lambda row: 0.5, lambda p: Cell("0.50\u202f%", "of\n10"), depth="summary"
            ),
            Column("More", len),
        ),
        depth="summary",
        limit=1,
    )
    assert summary(_page(Headline("PASS", "t", "one\ntwo"), table)).splitlines() == [
        "PASS: one two",
        "  Variants",
        "  Name         p-value",
        "  a b   0.50 % (of 10)",
    ]
    more = dataclasses.replace(table, rows=("a", "b"), columns=(Column("Length", len),))
    assert summary(_page(more)).splitlines()[1:] == [
        "  Variants", "  Length", "       1", "  1 more rows are in the record",
    ]  # fmt: skip


def test_values_that_are_all_equal_have_a_bar_too():
    bar = Bar(lambda row: row, "{:.1f}".format)
    table = Table(caption="t", key="t", rows=(2.0, None), columns=(Column("V", len),), bar=bar)
    table = dataclasses.replace(table, columns=(Column("V", lambda r: r),), depth="show")
    assert detail(_page(table)).splitlines()[2] == "2.0  ●"
    assert detail(_page(Missing("Twin", "none", depth="show"))) == "Twin: not measured: none"
