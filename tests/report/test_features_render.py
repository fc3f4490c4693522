"""The page on unique features, and the same in a terminal."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from remnant.cli.main import commands
from remnant.records import Record
from remnant.report import detail_text, read_view, read_views, summary_text, write_report
from remnant.report.render import render

HOSTILE = '<script>alert("x")</script><b onclick=alert(1)>'
PARTS = (
    *("test_accuracy", "stopped_epoch", "planted", "unplanted", "beyond", "beyond_m"),
    *("by_influence", "white_box", "by_canary", "spread", "through", "influence", "activations"),
)


class _Page(HTMLParser):
    """Collects tags, pictures and text, and sees that every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.pictures: list[dict[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "img":
            self.pictures.append(dict(attrs))
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data.replace("\u202f", " ")


def _headings(page: str) -> list[str]:
    return [re.sub("<[^>]*>", "", h) for h in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]


def _rows(page: str) -> list[list[str]]:
    """The rows of all tables, cell by cell."""
    return [
        [re.sub("<[^>]*>", "", cell).replace("\u202f", " ") for cell in cells]
        for row in re.findall(r"<tr>(<th scope=.row.*?)</tr>", page, re.DOTALL)
        for cells in [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
    ]


def test_the_page_is_well_formed_and_has_every_section(make_features):
    page = render(Record.open(make_features()))
    found = _Page(page)
    assert found.open == []
    assert not {"script", "link", "iframe", "object", "a", "base"} & set(found.tags)
    assert not {name for name, _ in found.attributes} & {"href", "srcset", "style", "onclick"}
    assert "http" not in page.replace("http-equiv", "")
    ids = [value for name, value in found.attributes if name == "id"]
    labels = [value for name, value in found.attributes if name == "aria-labelledby"]
    assert len(ids) == len(set(ids))
    assert {one for label in labels for one in label.split()} <= set(ids)
    assert _headings(page) == [
        "FAIL Models know a patch that was in one training image",
        "In plain words",
        "How many models know the patch",
        "Canary by canary",
        "Through training",
        "Does self-influence tell which canary is remembered?",
        "Is there a unit for the patch?",
        "The other ways to train",
        "What was tested, and what was not",
        "How to read this",
        "What was run",
    ]
    for words in (
        "Unique features report letters",
        "Models that stand out (p ≤ 5 %), with 95 % intervals",
        "It is shown as the paper’s only.",
        "Share with M > 0",
        "Every canary (10)",
        "Self-influence of every canary (10)",
        "dropout: dropout 0.2",
        "black box, uniform random patches, floor 1e-07",
        "3f9c2d7be4a1905c6f",
    ):
        assert words in found.text, words
    assert page.count("<caption>") >= page.count("<table") > 6


def test_pictures_stand_in_the_page_and_say_what_they_are(make_features):
    page = render(Record.open(make_features()))
    found = _Page(page)
    assert len(found.pictures) == 25
    for one in found.pictures:
        head, _, body = one["src"].partition(",")
        assert head == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(body))) as picture:
            assert picture.size == (int(one["width"]), int(one["height"])) == (8, 8)
        assert re.fullmatch(
            r"(Training i|I)mage [1-5] (as it was|with (the|a random) patch)", one["alt"]
        )
    assert "style-src 'unsafe-inline'; img-src data:\"" in page
    assert 'class="strip coarse"' in page


def test_large_and_coloured_pictures_are_not_made_of_squares(make_features):
    arrays = {"pictures-clean": np.full((1, 3, 96, 120), 0.5)}
    page = render(Record.open(make_features(arrays=arrays)))
    assert page.count('class="strip"') == 1
    assert 'width="120" height="96"' in page


def test_only_a_page_with_pictures_may_have_any(make_run, make_features):
    policy = "style-src 'unsafe-inline'\""
    assert policy in render(Record.open(make_run(name="other")))
    page = render(Record.open(make_features(change={"pictures": []})))
    assert policy in page
    assert "<img" not in page
    assert 'class="pair pictures"' not in page


def test_nothing_says_what_the_patch_says(make_features):
    folder = make_features()
    page = render(Record.open(folder))
    assert "SECRET" not in page
    assert "not shown: it may be a secret" in page
    view = read_view(Record.open(folder))
    assert "SECRET" not in summary_text(view) + detail_text(view)


def test_every_variant_and_canary_has_its_row(make_features, featured):
    page = render(Record.open(make_features()))
    rows = _rows(page)
    plain = [row for row in rows if row[0] == "plain mlp1 on digits"]
    assert [len(row) for row in plain] == [7, 5, 7]
    share = featured["features"]["variants"][0]["planted"]["share_significant"]
    assert plain[0][1].startswith(f"{100 * share[0]:.1f} % {100 * share[1]:.1f} % to ")
    assert plain[0][3] == "+24.2 +5.1 to +43.3"
    assert plain[0][5:] == ["96.2 % 95.8 % to 96.6 %", "41 33 to 58"]
    assert [row for row in rows if row[0] == "dropout dropout 0.2"][2][5:] == [
        "80.0 % 70.0 % to 90.0 %"
    ] * 2
    canary = featured["features"]["variants"][0]["by_canary"][3]
    (mine, change), *_ = zip(
        *(
            [row for row in rows if row[0] == str(canary["example"]) and len(row) == length]
            for length in (8, 5)
        ),
        strict=True,
    )
    assert mine[2] == change[1] == ("high" if canary["high"] else "low")
    assert len(mine[5].split(", ")) == len(mine[6].split(", ")) == 3


HALF = {
    "canaries": 5,
    "n": 15,
    "share_significant": [0.64, 0.4, 0.83],
    "mean": [0.02, 0.01, 0.03],
    "beyond_m": [0.015, 0.004, 0.026],
}
BELOW = HALF | {"share_significant": [0.0, 0.0, 0.2], "beyond_m": [-0.0015, -0.004, 0.001]}
ABSENT = {"absent": "no canary was chosen for it"}
HALVES = "By the canary’s self-influence"


def test_halves_by_influence_have_a_table(make_features, featured):
    variants = featured["features"]["variants"]
    variants[0] |= {"by_influence": {"high": HALF, "low": BELOW}}
    variants[1] |= {"by_influence": {"high": BELOW, "low": ABSENT}}
    variants.append(variants[1] | {"name": "both", "by_influence": None})
    page = render(Record.open(make_features(change={"variants": variants})))
    table = page.partition(f">{HALVES}</h3>")[2].partition("</table>")[0]
    above = ["64.0 % 40.0 % to 83.0 %", "0.015 0.004 to 0.026"]
    none = ["0.0 % 0.0 % to 20.0 %", "−0.0015 −0.004 to 0.001"]
    assert _rows(table) == [
        ["plain mlp1 on digits", *above, *none],
        ["dropout dropout 0.2", *none, "–", "–"],
    ]
    text = _Page(page).text
    assert "by what their canary was chosen for, with 95 % intervals; M in nats" in text
    assert "Of 15 planted models with a canary of high self-influence, 64.0 % (40.0 % to" in text


@pytest.mark.parametrize("absent", [True, False])
def test_canaries_drawn_at_random_have_no_halves(make_features, featured, absent):
    for variant in (variants := featured["features"]["variants"]):
        variant["by_influence"] = None
        if absent:  # a record from before they were kept
            del variant["by_influence"]
    folder = make_features(change={"variants": variants})
    page = render(Record.open(folder))
    assert HALVES not in page
    assert _Page(page).open == []
    assert "influence:" not in summary_text(read_view(Record.open(folder)))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_missing_leaves_no_hole(make_features, part):
    page = render(Record.open(make_features(plain={part: None})))
    assert _Page(page).open == []
    assert not re.search(r"\b(None(?! of)|nan|inf)\b", _Page(page).text)
    assert not re.search(r"<(p|dd|td|th|figure|div)( [^>]*)?>\s*</\1>", page)


def test_a_run_with_nothing_but_its_kind(make_features, featured):
    bare = dict.fromkeys(PARTS) | {"name": "plain", "what": "mlp1 on digits", "members": 3}
    change = {"variants": [bare], "pictures": []}
    page = render(Record.open(make_features(change=change)))
    assert "<svg" not in page
    headings = _headings(page)
    assert headings[2:4] == [
        "How many models know the patch",
        "What was tested, and what was not",
    ]
    empty = render(Record.open(make_features(name="two", change={"variants": []})))
    assert "Reactions: not measured: no model was trained." in empty


def test_an_empty_record_is_shown_as_not_measured(make_features):
    names = ("verdict", "features", "task", "scope")
    folder = make_features(without=names, absent=(("features", "no time"),))
    text = _Page(render(Record.open(folder))).text
    for words in (
        "No verdict",
        "Whether a patch is remembered was not measured: no time.",
        "Reactions: not measured: no time.",
        "Scope: not measured: this run recorded none.",
    ):
        assert words in text, words
    assert summary_text(read_view(Record.open(folder))).splitlines() == [
        "no verdict: this run recorded none",
        "  unique features  not measured: no time",
    ]
    assert detail_text(read_view(Record.open(folder))) == ""


def test_text_of_the_record_is_escaped(make_features, featured):
    found = featured["features"]
    found["patch"]["what"] = found["images"]["name"] = found["convention"] = HOSTILE
    for variant in found["variants"]:
        variant |= {"name": HOSTILE, "what": HOSTILE, "changes": HOSTILE}
    for one in found["pictures"]:
        one["title"] = HOSTILE
    page = render(Record.open(make_features(change=found, plan={"plan": {HOSTILE: HOSTILE}})))
    assert "<script" not in page
    assert "<b " not in page
    assert _Page(page).text.count(HOSTILE) > 12


def test_it_stands_beside_other_runs_on_one_page(make_run, make_features, tmp_path):
    make_run(name="demo")
    make_features(name="demo/letters")
    page = write_report(tmp_path / "demo").read_text(encoding="utf-8")
    found = _Page(page)
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert "unique-features FAIL" in page
    assert "img-src data:" in page
    text = summary_text(read_views(tmp_path / "demo"))
    assert "  run letters, unique features" in text


def test_the_summary_and_the_table_in_a_terminal(make_features, featured):
    variants = featured["features"]["variants"]
    for variant in variants:
        variant["planted"] |= {"share_significant": [0.333, 0.2, 0.5]}
        variant["unplanted"] |= {"share_significant": [0.091, 0.0, 0.4]}
    variants[0] |= {"beyond_m": [0.00676, -0.001, 0.0125]}
    variants[0] |= {"by_influence": {"high": HALF, "low": BELOW}}
    variants[1] |= {"unplanted": None, "beyond": None, "beyond_m": None}
    variants[1] |= {"by_influence": {"high": HALF, "low": ABSENT}}
    variants.append(variants[1] | {"name": "both", "planted": None})
    folder = make_features(change={"variants": variants})
    view = read_view(Record.open(folder))
    lines = summary_text(view, report="r.html").splitlines()
    assert lines[0].startswith("FAIL: Models trained with the patch")
    assert lines[1:] == [
        "  a letter of 5 x 5 pixels, planted in one of 10 images at a time, 3 seeds each; asked "
        "about 1 000 images (blocks)",
        "  plain: M stands out (p ≤ 5 %) in 33.3 % [20.0 % to 50.0 %] of 30 planted, in 9.1 % "
        "[0.0 % to 40.0 %] of 11 never planted",
        "    difference +24.2 points [+5.1 to +43.3]",
        "    mean M less the twins’ 0.00676 nats [−0.001 to 0.0125]",
        "    high influence: stands out in 64.0 % [40.0 % to 83.0 %] of 15, mean M less the twins’ "
        "0.015 nats [0.004 to 0.026]; low influence: stands out in 0.0 % [0.0 % to 20.0 %] of 15, "
        "mean M less the twins’ −0.0015 nats [−0.004 to 0.001]",
        "  dropout: M stands out (p ≤ 5 %) in 33.3 % [20.0 % to 50.0 %] of 30 planted",
        "    high influence: stands out in 64.0 % [40.0 % to 83.0 %] of 15, mean M less the twins’ "
        "0.015 nats [0.004 to 0.026]; low influence: not measured: no canary was chosen for it",
        "  both: not measured",
        "report: r.html",
    ]
    assert detail_text(view).splitlines() == [
        "Share of models that stand out, 95 % interval",
        "training    patch   value     low    high  0.0 %                             50.0 %",
        "   plain  planted  33.3 %  20.0 %  50.0 %      ┊           ──────────●─────────────",
        "   plain     none   9.1 %   0.0 %  40.0 %  ───────●────────────────────────",
        " dropout  planted  33.3 %  20.0 %  50.0 %      ┊           ──────────●─────────────",
        "┊ chance, 5.0 %",
    ]
    shown = CliRunner().invoke(commands, ["show", str(folder)])
    assert shown.output == f"{summary_text(view)}\n\n{detail_text(view)}\n"


def test_influence_without_figures_is_told_in_words(make_features, featured):
    variant = featured["features"]["variants"][0]
    canaries = [one | {"influence": None} for one in variant["by_canary"]]
    influence = variant["influence"] | {"changes": []}
    plain = {"by_canary": canaries, "influence": influence}
    page = render(Record.open(make_features(plain=plain)))
    assert "Correlation of M and self-influence: Pearson 0.43" in page
    assert not re.search(r'<div class="pair">\s*</div>', page)
