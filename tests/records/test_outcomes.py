"""Rows of gates and findings, and what becomes of those that older rules wrote."""

from __future__ import annotations

import pytest

from remnant.records import FINDINGS, OUTCOMES, Record, current, exit_code, finding_row, gate_row
from remnant.records.listing import summarise
from remnant.records.outcomes import current_results

FINDING = finding_row(headline="A few words", sentence="One sentence.", advice="Do this.")
GATES = ("forgetting", "one-run", "text-forgetting", "exposure", "unique-features")


def _record(folder, question, verdict):
    with Record.create(
        folder,
        question=question,
        plan={},
        plan_fingerprint="0" * 64,
        data_fingerprint="0" * 64,
        execution={},
        provenance={},
    ) as record:
        record.put_result("verdict", verdict)
        record.finish()
    return Record.open(folder)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("question", GATES)
def test_a_row_of_today_is_shown_as_it_is(question, outcome):
    row = gate_row(outcome=outcome, sentence="Why.", claim="A bound.", limit=0.5)
    assert current(row, question=question) == row


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("question", GATES)
@pytest.mark.parametrize("rules", [{}, {"rules": 1}, {"rules": 2}, {"rules": "x"}])
def test_an_older_outcome_is_not_judged_again(tmp_path, question, outcome, rules):
    row = {"outcome": outcome, "sentence": "Why.", "limit": 0.5, "lag": 3, **rules}
    shown = current(row, question=question)
    assert shown["outcome"] == "INCONCLUSIVE"
    assert f"said {outcome}" in shown["sentence"]
    record = _record(tmp_path / "run", question, row)
    assert record.summary()["results"]["verdict"] == shown
    assert summarise(tmp_path / "run").verdict == "INCONCLUSIVE"


ABSENT = {"absent": "not judged again"}
SAFE = {"lag": 150.0, "reason": "From lag 150 on."}


def test_decisions_of_older_rules_are_absent_at_any_depth():
    old = {
        "verdict": {"outcome": "PASS", "sentence": "Why.", "limit": 0.5, "lag": 3},
        "decision": {"limit": 0.5, "safe_after": SAFE},
        "curve_exposure": {"lags": [1, 2], "safe_after": SAFE},
        "by_uses": {"series": [{"label": "seen once", "safe_after": SAFE}]},
        "curve": {"lags": [1, 2]},
    }
    shown = current_results(old, question="text-forgetting")
    assert shown["verdict"]["outcome"] == "INCONCLUSIVE"
    assert shown["decision"] == ABSENT
    assert shown["curve_exposure"] == {"lags": [1, 2], "safe_after": ABSENT}
    assert shown["by_uses"] == {"series": [{"label": "seen once", "safe_after": ABSENT}]}
    assert shown["curve"] == old["curve"]
    assert old["curve_exposure"]["safe_after"] == SAFE, "the record's own is left alone"
    never = old | {"decision": {"absent": "no time"}}
    assert current_results(never, question="forgetting")["decision"] == {"absent": "no time"}
    del never["decision"]
    assert "decision" not in current_results(never, question="forgetting")


@pytest.mark.parametrize(
    "verdict",
    [
        gate_row(outcome="PASS", sentence="Why.", claim="A bound.", limit=0.5),
        {"absent": "no time"},
        None,
    ],
)
def test_other_decisions_are_shown_as_they_are(verdict):
    results = {"decision": {"safe_after": SAFE}, "curve_exposure": {"safe_after": SAFE}}
    if verdict is not None:
        results["verdict"] = verdict
    assert current_results(results, question="forgetting") == results


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("question", FINDINGS)
def test_an_older_outcome_without_a_limit_is_a_finding_with_its_sentence(
    tmp_path, question, outcome
):
    row = {"outcome": outcome, "sentence": "Why.", "limit": 0.5, "lag": None, "differences": []}
    shown = current(row, question=question)
    assert "outcome" not in shown
    assert (shown["sentence"], shown["differences"]) == ("Why.", [])
    record = _record(tmp_path / "run", question, row)
    assert record.summary()["results"]["verdict"] == shown
    entry = summarise(tmp_path / "run")
    assert (entry.verdict, entry.headline) == (None, FINDINGS[question])


def test_findings_and_absent_rows_are_left_alone():
    assert current(FINDING, question="prediction") == FINDING
    assert current({"absent": "no time"}, question="exposure") == {"absent": "no time"}


@pytest.mark.parametrize(
    ("outcomes", "code", "allowed"),
    [
        ([], 0, 0),
        (["PASS", "PASS"], 0, 0),
        (["PASS", "INCONCLUSIVE"], 3, 0),
        (["INCONCLUSIVE", "FAIL", "PASS"], 1, 1),
        (["FAIL"], 1, 1),
    ],
)
def test_the_exit_code_of_several_gates(outcomes, code, allowed):
    assert exit_code(outcomes) == code
    assert exit_code(outcomes, allow_inconclusive=True) == allowed
