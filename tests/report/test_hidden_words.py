"""Gone or only hidden, in words: what was run, what was not, and what came of it."""

from __future__ import annotations

import copy

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, summary_text
from remnant.report.hidden_words import hidden_line, hidden_sentences, searches
from remnant.report.render import render, render_view


@pytest.fixture
def searched(make_run):
    """Make a run with changes to its results ``hidden`` and ``returning``."""
    count = iter(range(100))

    def make(hidden=None, returning=None, **options):
        first = make_run(name=f"plain{next(count)}")
        results = copy.deepcopy(Record.open(first).results())
        changed = {
            "hidden": results["hidden"] | (hidden or {}),
            "returning": results["returning"] | (returning or {}),
        }
        folder = make_run(name=f"run{next(count)}", results=changed, **options)
        return read_view(Record.open(folder))

    return make


def plain(text):
    return text.replace("\u202f", " ")


def only(view, *kinds):
    rows = [row for row in view["hidden"]["disturbances"] if row["kind"] in kinds]
    return {"disturbances": rows}


def results(make_run):
    return copy.deepcopy(Record.open(make_run(name="source")).results())


def test_all_three_are_told(searched):
    view = searched()
    told = [plain(one) for one in hidden_sentences(view.hidden, view.scan)]
    assert told == [
        "What an attack does not find may only be hidden; this was searched for by weight noise, "
        "relearning on similar examples and a scan of later checkpoints.",
        "Weight noise brought nothing more to light; the attack still succeeds in 1 of 2.",
        "Relearning brought it back in 1 of 1: the attack succeeds better than before.",
        "Of 96 planted canaries, 80 were not found at two checkpoints in a row. Of these, 21 were "
        "clearly found at a later one; so were 9 in models that never saw them (A/A twins). This "
        "is more than chance (excess 12.5 %, 2.0 % to 23.0 %; p 0.013).",
    ]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (
            ("noise",),
            "searched for by weight noise and a scan of later checkpoints; not run: relearning on "
            "similar examples",
        ),
        (
            ("relearn",),
            "searched for by relearning on similar examples and a scan of later checkpoints; not "
            "run: weight noise",
        ),
    ],
)
def test_what_was_not_run_is_named(searched, make_run, kinds, words):
    view = searched(hidden=only(results(make_run), *kinds))
    assert searches(view.hidden, view.scan) == words
    assert "not run" in hidden_line(view.hidden, view.scan)


def test_without_disturbances_the_scan_is_told(searched):
    view = searched(without=("hidden",), absent=(("hidden", "no [hidden] section"),))
    assert searches(view.hidden, view.scan) == (
        "searched for by a scan of later checkpoints; not run: weight noise and relearning on "
        "similar examples"
    )
    line = hidden_line(view.hidden, view.scan)
    assert line.startswith("gone or hidden: weight noise and relearning: not run; scan of 16")
    assert "Weight noise and relearning: not measured: no [hidden] section." in render_view(view)


def test_nothing_at_all_is_told_too(make_run):
    view = read_view(Record.open(make_run(without=("hidden", "returning"))))
    assert searches(view.hidden, view.scan).startswith("not searched for: none of weight noise,")
    assert hidden_line(view.hidden, view.scan) == (
        "gone or hidden: weight noise and relearning: not run; scan of checkpoints: not run"
    )


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ("hidden", "Relearning showed what was hidden"),
        ("not found", "Relearning brought nothing to light"),
        (
            "still found",
            "Relearning brought nothing more to light; the attack still succeeds in 1 of 1",
        ),
    ],
)
def test_readings_have_words(searched, make_run, reading, words):
    given = only(results(make_run), "relearn")
    given["disturbances"][0]["reading"] = reading
    view = searched(hidden=given)
    assert words in " ".join(hidden_sentences(view.hidden, view.scan))


def test_a_scan_that_shows_nothing_says_so(searched):
    view = searched(returning={"pvalue": 0.3, "reference": "other trials' twins"})
    told = plain(hidden_sentences(view.hidden, view.scan)[-1])
    assert "(other trials' twins). This is not shown to be more than chance" in told


def test_a_run_without_controls_has_no_control_column(searched, make_run):
    given = only(results(make_run), "relearn")
    for name in ("aa", "aa_low", "aa_high"):
        del given["disturbances"][0][name]
    view = searched(hidden=given)
    assert view.hidden.disturbances[0].control is None
    assert "<td>–</td><td>94.1" in render_view(view)


def test_the_word_forgotten_is_not_used_about_a_result(make_run):
    folder = make_run()
    assert "forgotten" not in render(Record.open(folder))
    assert "forgotten" not in summary_text(read_view(Record.open(folder)))
    bare = make_run(name="bare", without=("curve", "hidden", "returning", "decision"))
    assert "forgotten" not in render(Record.open(bare))


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("hidden", {"disturbances": []}, "no disturbance"),
        ("hidden", {"disturbances": [{"kind": "heat", "reading": "hidden"}]}, "kind='heat'"),
        ("hidden", {"disturbances": [{"kind": "noise", "reading": "lost"}]}, "reading='lost'"),
        ("hidden", {"before": "x"}, "no finite number"),
        ("returning", {"lost": None}, "NoneType"),
    ],
)
def test_a_malformed_result_is_named(searched, name, changes, words):
    with pytest.raises(RecordError, match=f"malformed result '{name}': .*{words}"):
        searched(**{name: changes})
