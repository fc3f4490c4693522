"""Pages in a terminal: the outcome, the blocks of a depth, and bars."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from remnant.report.blocks import (
    Bar,
    Cell,
    Check,
    Column,
    Headline,
    Missing,
    Page,
    Table,
    prose,
    section,
)
from remnant.report.paint import END, GREEN, RED
from remnant.report.terminal import (
    WIDTH,
    Screen,
    counted_outcomes,
    detail,
    one_line,
    outcome,
    painted,
    summary,
)

SUMMARY = [
    "FAIL: Keys planted once: 12.1 bits.",
    "  Highest exposure: 12.1 bits (9.0 bits to 14.2 bits), limit 10.0 bits; 8 trainings",
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
    assert named == [SUMMARY[0], "  study keys: exposure", SUMMARY[1], *SUMMARY[3:]]


def test_an_outcome_has_its_number_and_one_line_has_no_more(make_page):
    assert outcome(make_page()).splitlines() == SUMMARY[:4]
    said = "Highest exposure: 12.1 bits (9.0 bits to 14.2 bits), limit 10.0 bits"
    assert one_line(make_page()) == f"FAIL: {said}"
    assert one_line(_page(Headline(None, "No verdict", "cut\nshort"))) == "no verdict: cut short"
    headline = make_page().headline
    within = dataclasses.replace(headline.reading, value=9.5)
    hidden = dataclasses.replace(headline, sentence="Noise brings it back.", reading=within)
    assert one_line(_page(hidden)) == "FAIL: Noise brings it back."
    narrow = one_line(make_page(), Screen(40, box=True), named=True)
    assert narrow.splitlines()[0] == "keys: FAIL: Highest exposure: 12.1 bits"
    assert " ".join(narrow.split()) == f"keys: FAIL: {said}"
    assert outcome(_page(prose("Only this.", depth="summary"), question="")) == ""


def test_outcomes_are_counted_in_the_order_of_what_matters():
    pages = [
        _page(Headline(name, "t", "s"))
        for name in ("PASS", "FINDING", "FAIL", "PASS", "INCONCLUSIVE", "FINDING", None)
    ]
    counted = "1 FAIL  2 PASS  1 INCONCLUSIVE  2 findings  1 without a verdict"
    assert counted_outcomes(pages) == counted
    assert counted_outcomes(pages[1:2]) == "1 finding"
    unfinished = dataclasses.replace(pages[0], complete=False)
    assert counted_outcomes([unfinished]) == "1 INCONCLUSIVE"


def test_a_notice_is_never_left_out():
    notice = prose("This shows secrets.", tone="notice", depth="summary")
    page = _page(Headline("PASS", "t", "s"), notice, prose("More.", depth="summary"))
    assert outcome(page).splitlines() == ["PASS: s", "  This shows secrets."]
    assert summary(page).splitlines() == ["PASS: s", "  This shows secrets.", "  More."]
    alone = _page(notice, question="")
    assert summary(alone) == "  This shows secrets."


LONG = Headline(
    "PASS",
    "Within",
    "Keys planted once have 2.1 bits " + "and so on " * 20 + "w" * 50,
    claim="one\ntwo " * 20,
    advice="a-hyphenated-word-that-is-long " * 5,
    checks=(
        Check(name="p", status="found", text="found " * 20),
        Check(name="n", status="not at chance", text="twin detected " * 9, contradicts=True),
    ),
)


def _said(text):
    return text.replace("│", " ").split()


def test_text_is_wrapped_between_words_only():
    page = _page(LONG, prose("a sentence " * 20, depth="summary"), prose("b " * 99, depth="show"))
    for width in (60, 80, 120):
        for box in (False, True):
            shown_on = Screen(width, box=box)
            for made in (summary, detail):
                wrapped = made(page, shown_on)
                assert max(map(len, wrapped.splitlines())) <= width
                whole = _said(made(page, Screen(10**6, box=box)))
                assert [word for word in _said(wrapped) if "─" not in word] == [
                    word for word in whole if "─" not in word
                ]


def test_no_line_ends_inside_a_number():
    page = _page(LONG, prose("bound 95 % of 1 318 steps; " * 30, depth="summary"))
    for width in range(40, 60):
        lines = summary(page, Screen(width)).splitlines()
        assert not [
            one for one, after in pairwise(lines) if one[-1:].isdigit() and after.strip()[0] in "%3"
        ]


def test_a_pipe_gets_plain_lines_and_a_terminal_a_box():
    plain = outcome(_page(LONG), Screen(60))
    assert plain.startswith("PASS: Keys planted once have 2.1 bits and so on")
    assert all(line.startswith("  ") for line in plain.splitlines()[1:])
    box = outcome(_page(LONG), Screen(60, box=True)).splitlines()
    assert box[0] == f"┌ PASS {'─' * 53}"
    assert all(line.startswith("│ ") for line in box[1:-1])
    assert box[-1] == f"└{'─' * 59}"
    assert {len(line) for line in (box[0], box[-1])} == {60}


def test_colour_is_a_mark_of_the_outcome_and_of_what_contradicts_it():
    box = outcome(_page(LONG), Screen(60, box=True, colour=True))
    assert box.startswith(f"{GREEN}┌ PASS ")
    assert box.count(GREEN) == len(box.splitlines())
    assert f"{RED}contradicts: twin detected" in box
    assert box.count(END) == box.count(GREEN) + box.count(RED)
    assert painted("1 FAIL  PASSED", Screen(colour=True)) == f"1 {RED}FAIL{END}  PASSED"
    assert painted("1 FAIL") == "1 FAIL"


def test_no_text_of_a_page_can_colour_itself():
    odd = Headline("FAIL", "t", f"a {RED}red{END} word", advice=f"{GREEN}PASS")
    table = Table(
        caption=f"{RED}c", key="k", rows=(f"{RED}r",), columns=(Column(f"n{RED}", str),),
        depth="show",
    )  # fmt: skip
    page = _page(odd, table)
    for made in (outcome, summary, detail, one_line):
        assert not set(made(page)) & {RED, GREEN, END}


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
