"""What to decide, in words: every branch says what it rests on, and a forecast that it is one."""

from __future__ import annotations

import copy

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, summary_text
from remnant.report.decision_words import decision_line, decision_rows
from remnant.report.render import render


@pytest.fixture
def decided(make_run):
    """Make a run whose decision has some parts replaced, and return its view."""
    count = iter(range(100))

    def make(**changes):
        first = make_run(name=f"plain{next(count)}")
        given = copy.deepcopy(Record.open(first).results()["decision"]) | changes
        folder = make_run(name=f"run{next(count)}", results={"decision": given})
        return read_view(Record.open(folder))

    return make


def _law(**changes):
    nothing = {"value": 10.0, "low": 0.0, "high": None}
    return {"law": "power", "shown": True, "half_life": nothing, "floor": nothing} | changes


def _of(view):
    return view.decision, view.curve


def plain(text):
    return text.replace("\u202f", " ")


def test_the_rows_answer_five_questions(decided):
    rows = [tuple(map(plain, row)) for row in decision_rows(*_of(decided()))]
    assert [row[:2] for row in rows] == [
        ("From when on is it within 65.0 %?", "250 steps"),
        ("What should be protected?", "the last 16 000 examples"),
        ("How long until half of the fall is over?", "42 steps (30 to 57)"),
        ("Where does it level off?", "58.0 % (54.0 % to 62.0 %)"),
        ("When is 65.0 % reached?", "91 steps (70 to 118)"),
    ]
    assert "only lags that were measured are claimed" in rows[0][2]
    assert "used in the last 250 steps, 64 a step" in rows[1][2]
    assert rows[4][2] == "By the same law. This lies within the steps that were measured."


def test_a_decision_of_older_rules_is_not_shown(make_run):
    old = {"outcome": "PASS", "sentence": "Why.", "limit": 0.65, "lag": 400}
    record = Record.open(make_run(results={"verdict": old}))
    view = read_view(record)
    assert decision_line(view.decision) == "decision  not measured: not judged again"
    text = summary_text(view)
    assert text.startswith("INCONCLUSIVE: Not judged again")
    assert "safe after" not in text
    page = render(record)
    assert "not judged again" in page
    assert "From when on is it within" not in page
    assert record.summary()["results"]["decision"] == {"absent": "not judged again"}


def test_no_safe_lag_protects_everything(decided):
    view = decided(
        safe_after={"lag": None, "reason": "Not even the last lag holds."},
        protect_last={"steps": None, "examples": None, "reason": ""},
    )
    rows = [tuple(map(plain, row)) for row in decision_rows(*_of(view))]
    assert rows[0][1] == "from none of the 400 steps watched"
    assert rows[1][1:] == (
        "everything that was ever used",
        "No lag was shown to be safe, so no example can be left out.",
    )
    assert decision_line(view.decision).startswith(
        "decision: safe after: no lag watched; protect: everything that was ever used;"
    )


def test_safe_at_once_protects_nothing(decided):
    view = decided(
        safe_after={"lag": 0.0, "reason": "At every lag."},
        protect_last={"steps": 0, "examples": 0, "reason": ""},
    )
    assert decision_rows(*_of(view))[1][1] == "nothing"


def test_a_forecast_says_that_it_is_one(decided):
    view = decided(forecast={"value": 912.0, "low": 500.0, "high": None, "beyond": True})
    row = [plain(part) for part in decision_rows(*_of(view))[-1]]
    assert row[1] == "912 steps (500 to any), forecast"
    assert "beyond the last checkpoint, at 400 steps: a forecast, not a measurement" in row[2]
    assert decision_line(view.decision).endswith("steps (500 to any), forecast")


def test_a_law_that_never_reaches_the_limit_says_so(decided):
    view = decided(forecast={"value": None, "low": 0.0, "high": None, "beyond": True})
    row = decision_rows(*_of(view))[-1]
    assert row[1] == "never, by the fitted law"
    assert "levels off above the limit" in row[2]


def test_where_no_fall_is_shown_there_is_no_half_life(decided):
    view = decided(decay=_law(shown=False))
    rows = decision_rows(*_of(view))
    assert [row[1] for row in rows[2:]] == ["no fall shown"]
    assert "half-life: no decay shown" in decision_line(view.decision)


def test_a_law_that_could_not_be_fitted_is_a_reason(decided):
    absent = {"absent": "3 lags after planting are too few for a decay law; it takes 4."}
    view = decided(decay=absent, forecast=absent)
    row = decision_rows(*_of(view))[-1]
    assert row[1:] == ("not measured", absent["absent"])
    assert decision_line(view.decision).endswith("half-life: not measured")


def test_ends_that_are_unbounded_are_not_numbers(decided):
    none = {"value": 12.0, "low": None, "high": None}
    high = {"value": 0.6, "low": None, "high": 0.7}
    view = decided(decay=_law(half_life=none, floor=high))
    rows = [tuple(map(plain, row)) for row in decision_rows(*_of(view))]
    assert rows[2][1] == "12 steps (no interval)"
    assert rows[2][2].startswith("A power law with a floor")
    assert rows[3][1] == "60.0 % (up to 70.0 %)"


def test_a_decision_that_was_not_made_is_a_reason(make_run):
    folder = make_run(without=("decision",), absent=(("decision", "no curve"),))
    assert decision_line(read_view(Record.open(folder)).decision) == (
        "decision  not measured: no curve"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"safe_after": {"lag": "soon", "reason": ""}}, "'soon' is no number"),
        ({"limit": "much"}, "could not convert"),
        ({"decay": {"law": "power"}}, "shown"),
    ],
)
def test_a_malformed_decision_is_named(decided, changes, words):
    with pytest.raises(RecordError, match=f"malformed result 'decision': .*{words}"):
        decided(**changes)
