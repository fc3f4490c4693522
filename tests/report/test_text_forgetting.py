"""A record on forgetting of text: read whole, told in words, drawn, and escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import detail_text, read_view, summary_text
from remnant.report.render import render
from remnant.report.run_view import LanguageTask, NotMeasured
from remnant.report.text_forgetting_view import TextForgettingView
from remnant.report.text_forgetting_words import (
    control_fails,
    control_sentence,
    in_plain_words,
    saturated_sentence,
    what_was_found,
)
from remnant.report.tiles import tiles_of

LAGS = [0, 1, 5, 10, 50, 100, 200]
HOSTILE = '<script>alert("x")</script>'


def exposed(height, lags=LAGS, **changes):
    """A curve that rises to its height at lag 10 and then falls."""
    at = np.array(lags, dtype=float)
    value = 1.43 + height * np.where(at < 10, (at + 5) / 15, np.exp(-(at - 10) / 100))
    return {
        "success": "exposure",
        "chance": 1.43,
        "confidence": 0.95,
        "method": "Student t over 3 trials",
        "trials": 3,
        "n_canaries": 32,
        "n_references": 300,
        "ceiling": 8.23,
        "lags": list(lags),
        "value": value.tolist(),
        "low": (value - 0.4).tolist(),
        "high": (value + 0.5).tolist(),
        "saturated": [0.0, 0.0, 0.1, 0.2, 0.1, 0.0, 0.0][-len(lags) :],
        "per_trial": [[float(v)] * 3 for v in value],
        "steps_to": {"2": None, "3": 120.5},
        "safe_after": {"lag": 200.0, "reason": "From lag 200 on all is at or under 3."},
    } | changes


@pytest.fixture
def make_text(make_run, make_curve):
    def made(**options):
        rows = ("lags", "value", "low", "high")
        series = [
            {"label": label, **{key: exposed(height)[key] for key in rows}}
            for label, height in (("seen once", 1.0), ("seen 4 times", 5.0))
        ]
        gap = {"mean": 1.5, "mean_low": 1.25, "mean_high": 1.75, "adjusted_p_value": 0.004}
        gaps = [{"label": "seen 4 times", **gap}]
        shared = {"title": "More or less often", "success": "exposure", "chance": 1.43}
        results = {
            "verdict": {
                "outcome": "PASS",
                "rules": 2,
                "sentence": "200 steps after, mean exposure is 1.88 bits.",
                "limit": 3.0,
                "lag": 200,
            },
            "curve_exposure": exposed(3.0),
            "curve_exposure_aa": exposed(0.0, LAGS[1:]),
            "by_uses": {**shared, "series": series},
            "compare": {
                **shared,
                "title": "When it was planted",
                "series": series,
                "differences": gaps,
            },
            "task": {"validation_bits": 3.31, "validation_tokens": 20_000, "token": "character"},
        }
        asked = {"name": "text", "question": "text-forgetting", "results": results}
        asked["plan"] = {"plan": {"kind": "inject"}, "attack": {"calibration": "twin"}}
        changed = options.pop("change", {})
        asked["results"] = results | changed
        return make_run(**asked | options)

    return made


def test_a_full_record_is_read_whole(make_text):
    view = read_view(Record.open(make_text()))
    assert isinstance(view, TextForgettingView)
    assert view.task == LanguageTask(3.31, 20_000, "character")
    found = view.exposure
    assert (found.n_canaries, found.n_references, found.ceiling) == (32, 300, 8.23)
    assert (found.peak.lag, found.safe_after) == (10.0, 200.0)
    assert found.curve.label == "Mean exposure in bits"
    assert found.curve.show(2.345) == "2.35"
    assert [label for label, _ in view.by_uses.curves] == ["seen once", "seen 4 times"]
    assert view.by_uses.curves[0][1].chance == 1.43
    assert view.comparison.title == "When it was planted"
    assert view.successes[0][0] == "curve"
    assert view.calibration == "twin"


def test_the_page_is_well_formed_and_has_every_section(make_text):
    page = render(Record.open(make_text()))
    assert "://" not in page.replace("http://www.w3.org", "")
    for svg in re.findall(r"<svg.*?</svg>", page, flags=re.S):
        ET.fromstring(svg)
    for words in (
        "In plain words",
        "How exposure falls",
        "More or less often",
        "When it was planted",
        "Telling planted from never-planted sequences",
        "What accuracy and loss would have said",
        "What was tested, and what was not",
        "Chance 1.43",
        "Limit 3.00",
        "Precision at FPR",
    ):
        assert words in page, words
    idents = re.findall(r'\bid="([^"]+)"', page)
    assert len(idents) == len(set(idents))


def test_a_safe_lag_of_older_rules_is_not_shown(make_text):
    old = {"outcome": "PASS", "sentence": "Why.", "limit": 3.0, "lag": 200}
    record = Record.open(make_text(change={"verdict": old}))
    view = read_view(record)
    assert view.exposure.safe_after is None
    said = "From which lag on the limit holds is not shown: not judged again."
    assert what_was_found(view.exposure).endswith(said)
    page = render(record)
    assert said in page
    assert "From lag 200 on" not in page
    assert record.summary()["results"]["curve_exposure"]["safe_after"] == {
        "absent": "not judged again"
    }


def test_what_was_not_measured_is_a_reason(make_text):
    names = ("curve_exposure", "curve_exposure_aa", "by_uses", "compare", "traditional", "verdict")
    names += ("curve", "curve_tpr", "curve_auc", "curve_accuracy")
    folder = make_text(without=names, absent=(("curve_exposure", "no time"),))
    view = read_view(Record.open(folder))
    assert view.exposure == NotMeasured("no time")
    page = render(Record.open(folder))
    assert "Exposure: not measured: no time." in page
    assert "exposure  not measured: no time" in summary_text(view)
    assert detail_text(view) == ""
    assert tiles_of(view) == []
    assert "not measured: no time" in in_plain_words(view)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ceiling": "high"}, "curve_exposure.ceiling is a str"),
        ({"saturated": [0.0]}, "saturated has 1 entries for 7 lags"),
        ({"safe_after": 3}, "safe_after is an int, no object"),
        ({"lags": [3, 2, 1, 0, 0, 0, 0]}, "lags do not rise"),
    ],
)
def test_what_is_malformed_is_named(make_text, changes, words):
    folder = make_text(change={"curve_exposure": exposed(3.0) | changes})
    with pytest.raises(RecordError, match=words):
        read_view(Record.open(folder))


def test_text_of_the_record_is_escaped(make_text):
    series = [{"label": HOSTILE, "lags": [0, 1], "value": [2.0, 1.0]}]
    folder = make_text(
        change={
            "curve_exposure": exposed(3.0, method=HOSTILE),
            "by_uses": {"title": HOSTILE, "success": "exposure", "series": series},
        }
    )
    assert "<script" not in render(Record.open(folder))


def test_the_summary_says_what_matters(make_text):
    view = read_view(Record.open(make_text()))
    assert summary_text(view).splitlines() == [
        "PASS: 200 steps after, mean exposure is 1.88 bits.",
        "  Mean exposure in bits (chance 1.43)",
        "    lag       0  2.43  [2.03 to 2.93]",
        "    lag      10  4.43  the highest",
        "    lag     200  1.88  [1.48 to 2.38]",
        "  at the end, by how often: seen once 1.58; seen 4 times 2.18",
        "  When it was planted; at the end, and above 'seen once' on average",
        "    seen once     1.58",
        "    seen 4 times  2.18  +1.50 bits (+1.25 to +1.75), p = 0.004",
        "  A/A twins, lag 200: 1.43 [1.03 to 1.93] (neither saw the canaries)",
    ]
    assert "┊ chance, 1.43" in detail_text(view)
    assert [(tile.name, tile.value.replace("\u202f", " ")) for tile in tiles_of(view)] == [
        ("Right after planting", "2.43 bits"),
        ("Highest", "4.43 bits"),
        ("After 200 steps", "1.88 bits"),
        ("A/A twins, at the end", "1.43 bits"),
        ("Limit", "3.00 bits"),
    ]


def test_words(make_text):
    view = read_view(Record.open(make_text()))
    told = what_was_found(view.exposure).replace("\u202f", " ")
    assert "Right after planting the mean exposure was 2.43 bits; it was highest after 10" in told
    assert "need not be highest at the beginning" in told
    assert told.endswith("From lag 200 on all is at or under 3.")
    assert "32 planted sequences were ranked among 300 references" in in_plain_words(view)
    assert "which never saw the canaries" in in_plain_words(view)
    assert "no more exposed than chance" in control_sentence(view.control)
    assert not control_fails(view.control)
    assert "20.0 %" in saturated_sentence(view.exposure).replace("\u202f", " ")
    away = make_text(name="away", change={"curve_exposure_aa": exposed(4.0, LAGS[1:])})
    control = read_view(Record.open(away)).control
    assert control_fails(control)
    assert "with caution" in control_sentence(control)
    assert "no negative control: none" in control_sentence(NotMeasured("none"))
