"""Records of version 1 with single values damaged: one sentence each, whatever the value."""

from __future__ import annotations

import json
import sqlite3

import pytest

from remnant.errors import RecordError
from remnant.records import Record, list_runs
from remnant.records.typed import load
from remnant.studies.reporting import write_report


@pytest.fixture
def run(tmp_path, unsealed):
    folder = tmp_path / "runs" / "one"
    with Record.create(
        folder,
        question="exposure",
        plan={"plan": {"seed": 0}},
        plan_fingerprint="3f9c",
        data_fingerprint="a71e",
        execution={"device": "cpu"},
        provenance={"versions": {"remnant": "1"}},
    ) as record:
        record.put_array("losses", [1.0, 2.0])
        record.put_result("task", {"test_accuracy": 0.97})
        record.put_ledger({"member": [0], "canary": [0], "step": [5], "uses": [1]})
        record.finish()
    unsealed(folder)
    return folder


def damage(folder, table, column, value):
    connection = sqlite3.connect(folder / "record.sqlite")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    connection.commit()
    connection.close()


def read_all(folder):
    record = Record.open(folder)
    record.verify()
    json.dumps(record.summary(), allow_nan=False)
    record.ledger()
    return record.provenance


def test_the_record_is_read_without_damage(run):
    assert read_all(run)["versions"] == {"remnant": "1"}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("run", "question", b"\xff"),
        ("run", "plan", b"\xff"),
        ("run", "plan", "[" * 100_000),
        ("run", "plan", '{"a": NaN}'),
        ("run", "plan", '{"a": 1e999}'),
        ("run", "execution", '{"a": -Infinity}'),
        ("run", "execution", '{"a": ' + "1" * 5000 + "}"),
        ("run", "started", "yesterday"),
        ("run", "finished", "2026-13-02T03:04:05Z"),
        ("attempts", "started", ""),
        ("attempts", "provenance", "[]"),
        ("attempts", "provenance", '{"versions": 1.5}'),
        ("attempts", "provenance", '{"versions": {"remnant": ["1"]}}'),
        ("arrays", "shape", "{}"),
        ("arrays", "shape", "["),
        ("arrays", "shape", '["a"]'),
        ("arrays", "shape", "[true]"),
        ("arrays", "file", "../losses.npy"),
        ("arrays", "file", b"losses.npy"),
        ("arrays", "bytes", "many"),
        ("results", "value", '{"test_accuracy": Infinity}'),
        ("ledger", "step", "five"),
        ("ledger", "uses", 1.5),
        ("ledger", "canary", -1),
        ("ledger", "member", 2**62),
    ],
)
def test_a_damaged_value_is_a_sentence_and_leaves_no_report(run, table, column, value):
    damage(run, table, column, value)
    with pytest.raises(RecordError, match=r"is damaged: .*\.$") as raised:
        read_all(run)
    assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(RecordError):
        write_report(run)
    assert not (run / "report.html").exists()
    assert len(list_runs(run.parent)) == 1


@pytest.mark.parametrize("verdict", [{"outcome": ["PASS"]}, {"headline": 5}])
def test_a_verdict_that_is_no_text_is_listed_as_damaged(run, verdict):
    with Record.open(run, write=True) as record:
        record.put_result("verdict", verdict)
    (entry,) = list_runs(run.parent)
    assert entry.status == "damaged"
    assert "malformed result 'verdict'" in entry.fault


@pytest.mark.parametrize("version", ["2", 1.0, None, [1], True])
def test_a_version_that_is_no_whole_number_is_refused(run, version):
    with Record.open(run, write=True) as record:
        record.put_result("format", {"version": version})
    with pytest.raises(RecordError, match="malformed result 'format'"):
        write_report(run)


def test_a_question_of_any_length_is_quoted_in_short(run):
    damage(run, "run", "question", "x" * 10_000)
    with pytest.raises(RecordError, match=r"asks the question 'x{40}';"):
        write_report(run)


@pytest.mark.parametrize("value", [1e101, -1e308, 10**400])
def test_a_number_too_large_to_draw_is_refused(value):
    faults = []
    load(float, value, "curve.low", faults)
    assert len(faults) == 1
    assert "curve.low" in faults[0]
