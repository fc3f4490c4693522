"""Rows of gates and findings, and what becomes of those that older rules wrote."""

from __future__ import annotations

import pytest

from remnant.records import FINDINGS, OUTCOMES, Record, current, exit_code, finding_row, gate_row
from remnant.records.listing import summarise

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
@pytest.mark.parametrize("rules", [{}, {"rules": 1}, {"rules": "x"}])
def test_an_older_outcome_is_not_judged_again(tmp_path, question, outcome, rules):
    row = {"outcome": outcome, "sentence": "Why.", "limit": 0.5, "lag": 3, **rules}
    shown = current(row, question=question)
    assert shown["outcome"] == "INCONCLUSIVE"
    assert f"said {outcome}" in shown["sentence"]
    record = _record(tmp_path / "run", question, row)
    assert record.summary()["results"]["verdict"] == shown
    assert summarise(tmp_path / "run").verdict == "INCONCLUSIVE"


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
