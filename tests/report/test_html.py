"""Pages as one HTML document: every block, escaped, with nothing outside the document."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser

import pytest

from remnant.errors import RecordError
from remnant.report.blocks import (
    Facts,
    Fold,
    Headline,
    Page,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.first_screen import DamagedRun, overall
from remnant.report.gauge import gauge, reading_text
from remnant.report.html import fragment, render, write_page

HOSTILE = "</script></style><script>alert('x')</script><img src=x onerror=\"alert(1)\">{}%s"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Document(HTMLParser):
    """Collects elements and text, and sees that every element is closed."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.text += data.replace("\u202f", " ")

    def all(self, name: str) -> list[str | None]:
        return [attrs[name] for _, attrs in self.elements if name in attrs]

    @property
    def downloads(self) -> dict[str, str]:
        links = [attrs for tag, attrs in self.elements if tag == "a" and "download" in attrs]
        return {
            attrs["download"]: base64.b64decode(attrs["href"].partition("base64,")[2]).decode()
            for attrs in links
        }


def test_every_block_is_written_once_and_well_formed(make_page):
    document = Document(render([make_page()]))
    assert document.open == []
    for words in (
        "FAIL More exposed than allowed", "Keys planted once: 12.1 bits.",
        "Claim: At least 9 bits.", "What to do: Remove the keys and train again.",
        "Highest exposure: 12.1 bits (9.0 bits to 14.2 bits), limit 10.0 bits", "8 trainings",
        "of 19.9", "A paragraph without a section.", "What was planted: key {digits}",
        "A small sentence.", "Twin: not measured: no twin was trained.", "Bands: 95 % intervals.",
        "Mean exposure", "8.0 to 12.0", "Over trainings.", "Nothing: no rows.",
        "1 more rows are in the files: CSV, JSON", "Nothing was extracted.", "Below.", "Images",
        "One model.", "Other text.", "Bits.", "Plan, machine and versions",
        "To repeat it with keys.toml: remnant run keys.toml --out keys", "kind lstm",
        "2026-01-02 (UTC)", "plan 3f9c2d7be4a1",
    ):  # fmt: skip
        assert words in document.text, words
    order = (
        "Claim",
        "A paragraph without",
        "How it was done",
        "Method and controls",
        "To repeat it",
    )
    places = [document.text.index(words) for words in order]
    assert places == sorted(places), "what decides comes first"
    assert "Never" not in document.text, "an optional column that holds nothing"


def test_every_run_of_a_report_can_be_repeated_or_names_the_command_that_made_it(make_page):
    made = {"recipe": "", "command": "remnant demo --out audit"}
    others = [make_page(name=name, **made) for name in ("features", "scan")]
    old = make_page(name="old", recipe="", command="")
    document = Document(render([make_page(), *others, old], name="audit"))
    for words in (
        "To repeat it with keys.toml: remnant run keys.toml --out audit",
        "To repeat features, scan, which have no recipe here: remnant demo --out audit",
        "To repeat old, which has no recipe here: its command is in no record",
    ):
        assert words in document.text, words
    assert "no recipe here" not in Document(render([make_page()] * 2, name="both")).text


def test_headings_go_down_a_level_at_a_time(make_page):
    deep = section("a", [section("b", [section("c", [section("d", [section("e", [])])])])])
    page = make_page(blocks=(Headline("PASS", "t", "s"), deep))
    levels = [int(tag[1]) for tag, _ in Document(render([page])).elements if tag[0] == "h" != tag
              and tag[1:].isdigit()]  # fmt: skip
    assert levels == [1, 2, 3, 3, 4, 5, 6, 6, 2]
    both = [int(x) for x in re.findall(r"<h(\d)", render([page, page], name="two"))]
    assert all(after <= before + 1 for before, after in itertools.pairwise(both))
    assert max(both) == 6


@pytest.mark.parametrize("several", [False, True])
def test_ids_are_unique_and_every_reference_has_one(make_page, several):
    top = make_page(blocks=(*make_page().blocks, section("Top", [section("exposure-chart", [])])))
    pages = [top, make_page(name="other")] if several else [top]
    document = Document(render(pages, name="both"))
    ids = document.all("id")
    assert len(ids) == len(set(ids))
    named = {word for value in document.all("aria-labelledby") for word in value.split()}
    assert named | {link[1:] for link in document.all("href") if link[0] == "#"} <= set(ids)
    assert len(document.downloads) == len(document.all("download"))


@pytest.mark.parametrize("several", [False, True])
def test_a_hostile_text_in_any_field_is_only_text(make_page, several):
    hostile = make_page(lambda text: f"{HOSTILE} {text}")
    plain = make_page(lambda text: f"{'!' * len(HOSTILE)} {text}")
    damaged = [DamagedRun(HOSTILE, HOSTILE)]
    pages, same = ([hostile] * 2, [plain] * 2) if several else ([hostile], [plain])
    document = Document(render(pages, name=HOSTILE, damaged=damaged))
    sound = Document(render(same, name="x", damaged=[DamagedRun("x", "x")]))
    assert document.open == []
    assert [tag for tag, _ in document.elements] == [tag for tag, _ in sound.elements]
    assert [set(a) for _, a in document.elements] == [set(a) for _, a in sound.elements]
    assert document.scripts == sound.scripts
    assert all(re.fullmatch(r"[a-z0-9_-]+", found) for found in document.all("id"))
    assert document.text.count(HOSTILE) > 40


def test_the_document_refers_to_nothing_and_names_its_script_and_style_by_hash(make_page):
    document = Document(render([make_page()]))
    policy = next(content for content in document.all("content") if "default-src" in content)
    style, script = document.scripts
    for kind, text in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "img-src data:" in policy
    assert "unsafe" not in policy
    assert not {"style", "srcset", "onclick"} & {name for _, a in document.elements for name in a}
    assert all(
        link.startswith(("#", "data:")) for link in [*document.all("href"), *document.all("src")]
    )
    assert "http" not in render([make_page()]).replace("http-equiv", "")


def test_pages_without_pictures_allow_none(make_page):
    page = make_page(blocks=(Headline("PASS", "t", "s"),))
    assert "img-src" not in render([page])


def test_the_same_pages_give_the_same_document(make_page):
    assert render([make_page(), make_page()], name="a") == render(
        [make_page(), make_page()], name="a"
    )


def test_every_table_can_be_downloaded_under_a_name_of_its_own(make_page):
    files = Document(render([make_page(), make_page()], name="a")).downloads
    assert set(files) == {"keys.toml"} | {
        f"keys-{key}.{kind}" for key in ("levels", "levels-2", "beside") for kind in ("csv", "json")
    }
    rows = json.loads(files["keys-levels.json"])
    assert rows[0] == {
        "Level": "level 0", "Canaries": 0, "Exposure: Mean": 10.0, "Exposure: Mean, low": 8.0,
        "Exposure: Mean, high": 12.0, "Exposure: Twice": 0,
    }  # fmt: skip
    assert len(json.loads(files["keys-levels-2.json"])) == 3, "rows beyond the limit too"


def test_only_long_tables_can_be_sorted(make_page):
    assert "data-value" not in render([make_page(rows=15)])
    long = render([make_page(rows=16)])
    assert long.count('class="numbers long"') == 1, "the other one shows two rows"
    assert '<td data-value="8.0">' in long
    assert '<td data-value="">–</td>' in long
    assert '<th scope="col" rowspan=2>' in long
    assert '<th scope="colgroup" colspan="2">Exposure</th>' in long


def test_the_overview_has_a_row_a_study_failures_first(make_page):
    passed = make_page(name="first", outcome="PASS")
    finding = make_page(name="third", outcome="FINDING")
    document = Document(render([passed, make_page(name="second"), finding], name="demo"))
    first = document.text
    overview = first[first.index("1 of 2 gates failed") : first.index("What was audited")]
    assert "FAIL 1" in first
    assert "PASS 1" in first
    assert "finding 1" in first
    places = [overview.index(f"Exposure {name}") for name in ("second", "first", "third")]
    assert places == sorted(places)
    assert overview.count("12.1 bits (9.0 bits to 14.2 bits)") == 6, "in the row and its gauge"
    assert "Exposure: More exposed than allowed. At least 9 bits." in overview
    assert "remnant run second.toml first.toml third.toml --out demo" in first
    assert first.count("Other text.") == 1, "what no study tested is said once"
    assert "demo: FAIL · Remnant" in document.text


def test_a_term_is_explained_once_and_linked_where_it_first_occurs(make_page):
    def page(name, meaning):
        terms = (("The attack", "It scores."), ("AUC, TPR", meaning))
        words = "An attack has an AUC; attacks and their AUC differ."
        blocks = (prose(words, tone="lead"), section("How to read this", [Terms(terms)]))
        return make_page(name=name, title=name, blocks=(Headline("PASS", "t", "s"), *blocks))

    text = render([page("one", "A"), page("two", "A")], name="both")
    assert text.count('<a class="term" href="#term-attack">attack</a>') == 2, "once a page"
    assert text.count('<a class="term" href="#term-auc-tpr">AUC</a>') == 2
    assert text.count("It scores.") == 1
    differing = Document(render([page("one", "A"), page("two", "B")], name="both")).text
    assert "A one" in differing
    assert "B two" in differing


def test_numbers_of_sentences_are_printed_as_everywhere(make_page):
    page = make_page(blocks=(Headline("FAIL", "t", "72.0% react, p = 2.2e-06 at FPR 0.1."),))
    text = Document(render([page])).text
    assert "72.0 % react, p < 0.001 at FPR 10 %." in text


def test_what_holds_for_all_runs_is_said_once(make_page):
    def page(name, device):
        rows = (("platform", "Linux"), ("device", device))
        facts = section(
            "What was run", [Fold("Plan", (Facts((("Machine", rows),)),))], part="provenance"
        )
        return make_page(name=name, blocks=(Headline("PASS", "t", "s"), facts))

    text = Document(render([page("one", "cpu"), page("two", "cuda")], name="both")).text
    assert text.count("Linux") == 1
    assert text.index("The same in all 2 runs") < text.index("cpu") < text.index("cuda")


def test_the_overall_outcome_is_the_worst(make_page):
    passed, undecided = make_page(outcome="PASS"), make_page(outcome="INCONCLUSIVE")
    finding, none = make_page(outcome="FINDING"), make_page(outcome=None)
    cut = dataclasses.replace(passed, complete=False)
    damaged = [DamagedRun("x", "gone")]
    assert overall([passed, finding]) == "PASS"
    assert overall([passed, undecided]) == "INCONCLUSIVE"
    assert overall([undecided, make_page()], damaged) == "FAIL"
    assert overall([passed, none]) == overall([passed, cut]) == "INCONCLUSIVE"
    assert overall([passed], damaged) == "INCONCLUSIVE"
    assert overall([finding]) == "FINDING"
    assert overall([none]) is None


def test_runs_that_cannot_be_read_are_named_and_incomplete_ones_say_so(make_page):
    cut = make_page(complete=False, outcome="PASS")
    text = Document(render([cut], damaged=[DamagedRun("lost", "no record.")])).text
    assert "lost cannot be read: no record." in text
    assert "This run is not complete." in text
    assert "keys: INCONCLUSIVE · Remnant" in text


def test_a_study_without_a_verdict_says_why(make_page):
    page = make_page(blocks=(Headline(None, "No verdict", "it was cut short"),))
    assert "Not measured: it was cut short." in Document(render([page])).text
    assert "Not measured: nothing was measured." in render([make_page(blocks=(prose("x"),))])


def test_a_page_of_a_command_has_no_verdict(make_page):
    page = Page(
        title="Curve", question="", name="", fingerprint="", complete=True, blocks=(prose("x"),)
    )
    document = Document(render([page]))
    assert "erdict" not in document.text
    assert "Curve · Remnant" in document.text


def test_the_gauge_stays_on_its_scale_and_says_what_it_shows():
    reading = Reading(
        name="Success", value=1.4, low=None, high=float("inf"), limit=-1.0, lowest=0.0, highest=1.0,
        show="{:.1f}".format, n="3 runs",
    )  # fmt: skip
    drawn = gauge(reading, width=260.0)
    places = [float(x) for x in re.findall(r'(?:x1|x2|cx)="([\d.-]+)"', drawn)]
    assert all(8 <= place <= 252 for place in places)
    assert re.findall(r"<text[^>]*>([^<]*)<", drawn) == ["limit -1.0", "0.0", "1.0"]
    assert reading_text(reading) == "Success: 1.4 (at most inf), limit -1.0"
    point = dataclasses.replace(reading, low=0.2, high=None, limit=None, highest=0.0)
    assert reading_text(point) == "Success: 1.4 (at least 0.2)"
    assert "tick" not in gauge(point)


def test_a_document_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_page(tmp_path / "report.html", "first")

    def refuse(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("remnant.report.html.os.replace", refuse)
    with pytest.raises(RecordError, match=r"report\.html cannot be written: the disk is full"):
        write_page(path, "second")
    assert path.read_text() == "first"
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(RecordError, match="is not a plain file"):
        write_page(tmp_path, "third")


def test_every_heading_outside_a_fold_links_to_itself(make_page):
    document = render([make_page(), make_page(name="other")], name="both")
    assert 'id="run1-searches"' in document
    headed = re.findall(r'<h(?:2|3) id="([^"]+)"><a class="anchor" href="#([^"]+)"', document)
    assert {"run1-how", "report_audited", "glossary_title"} <= {ident for ident, _ in headed}


def test_a_table_without_rows_has_no_download(make_page):
    empty = Table(caption="None", key="none", rows=(), columns=())
    document = Document(render([make_page(blocks=(empty,), recipe="")]))
    assert document.downloads == {}


def test_control_characters_are_shown_as_their_codes(make_page):
    document = render([make_page(blocks=(prose("a\x00\x1b[31m\u202eb\nc"),))])
    assert r"a\u0000\u001b[31m\u202eb" in document
    assert not set(document) & set("\x00\x1b\u202e")


def test_a_piece_for_a_notebook_is_escaped_and_keeps_its_style_to_itself():
    attack = "<script>alert(1)</script>"
    shown = fragment([Headline("FAIL", attack, attack), Tiles((Tile(attack, attack),))])
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 4
    (style,) = re.findall("<style>(.*?)</style>", shown, flags=re.DOTALL)
    assert style.startswith(".remnant-result{&{color-scheme")
    assert style.endswith("}}")
    assert ":root" not in style
    assert "\nbody{margin" not in style
    assert fragment([prose("one")]) == fragment([prose("one")]) != fragment([prose("two")])
