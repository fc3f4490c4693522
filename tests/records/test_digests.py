"""Whatever is changed in ``record.sqlite``: it is noticed, or nothing that is read changes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import RecordError
from remnant.records import Record
from remnant.studies.shared.pages import machine_group

TABLES = ("run", "attempts", "arrays", "results", "ledger", "digests")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    with Record.create(
        folder,
        question="membership-audit",
        plan={"plan": {"seed": 31}, "settings": {"limit": 0.667}},
        plan_fingerprint="3f9c",
        data_fingerprint="a71e",
        execution={"device": "cpu"},
        provenance={"versions": {"remnant": "1"}, "threads": 2},
    ) as record:
        record.put_array("losses", [1.0, 2.0])
        record.put_result("measured", {"precision": 0.667, "low": 0.327, "high": 0.897, "n": 40})
        record.put_absent("epsilon", "no coins were tossed for 40 canaries")
        record.put_ledger({"member": [0, 1], "canary": [0, 7], "step": [5, 6], "uses": [1, 4]})
        record.update_execution({"groups": "1 of 1"})
        record.finish()
    return folder


def read_all(folder):
    record = Record.open(folder)
    record.verify()
    ledger = {name: column.tolist() for name, column in record.ledger().items()}
    everything = record.summary(), record.provenance, record.array("losses").tolist(), ledger
    return json.dumps(everything)


def execute(folder, statement, *values):
    with closing(sqlite3.connect(folder / "record.sqlite")) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement, values)


@pytest.fixture
def kept(folder, tmp_path):
    """A copy to damage."""
    return Path(shutil.copytree(folder, tmp_path / "one"))


def test_a_record_that_nobody_touched_is_read(folder):
    assert "0.667" in read_all(folder)


def places():
    """Every value of every row: table, column and row number."""
    columns = {
        "run": "question plan_fingerprint data_fingerprint plan execution started finished",
        "attempts": "attempt started provenance",
        "arrays": "name file dtype shape bytes sha256",
        "results": "name value absent",
        "digests": "place row sha256",
        "ledger": "member canary step uses",
    }
    return [(table, column) for table, names in columns.items() for column in names.split()]


@pytest.mark.parametrize(("table", "column"), places())
def test_every_changed_digit_and_letter_is_noticed(kept, table, column):
    path = kept / "record.sqlite"
    before = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        values = [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]
    tried = 0
    for value in (value for value in values if value is not None):
        text = str(value)
        for at in range(0, len(text), max(1, len(text) // 40)):
            new = "7" if text[at] != "7" else "2"
            changed = type(value)(text[:at] + new + text[at + 1 :])
            execute(kept, f"UPDATE {table} SET {column} = ? WHERE {column} = ?", changed, value)
            with pytest.raises(RecordError) as raised:
                read_all(kept)
            assert len(str(raised.value).splitlines()) == 1
            path.write_bytes(before)
            tried += 1
    assert tried


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_missing_is_noticed(kept, table):
    execute(kept, f"DELETE FROM {table}")
    with pytest.raises(RecordError, match="is damaged"):
        read_all(kept)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO results VALUES ('verdict', '{}', NULL)",
        "INSERT INTO attempts VALUES (2, '2026-01-01T00:00:00Z', '{}')",
        "INSERT INTO ledger VALUES (2, 2, 2, 2)",
        "INSERT INTO digests VALUES ('results', 'verdict', 'ffff')",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 0",
        "DROP TABLE digests",
    ],
)
def test_a_row_that_was_added_or_another_version_is_noticed(kept, statement):
    execute(kept, statement)
    with pytest.raises(RecordError, match="is damaged"):
        read_all(kept)


@settings(max_examples=150, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_without_effect(folder, place, bit):
    path = folder / "record.sqlite"
    before, whole = path.read_bytes(), read_all(folder)
    changed = bytearray(before)
    changed[int(place * len(changed))] ^= 1 << bit
    path.write_bytes(changed)
    try:
        assert read_all(folder) == whole
    except RecordError:
        pass
    finally:
        path.write_bytes(before)
        for left in folder.glob("record.sqlite-*"):
            left.unlink()


def test_what_remnant_writes_again_is_no_damage(kept):
    with Record.open(kept, write=True) as record:
        record.put_result("measured", {"precision": 0.5})
        record.put_absent("measured", "no time")
        record.put_array("losses", [3.0])
        record.put_ledger({name: np.zeros(0, int) for name in ("member", "canary", "step", "uses")})
        record._add_attempt("{}")
    assert "no time" in read_all(kept)


def test_a_record_of_version_1_is_read_and_continued_without_digests(kept, unsealed):
    whole = json.loads(read_all(kept))
    assert "digests" not in dict(machine_group(Record.open(kept)).rows)
    unsealed(kept)
    assert dict(machine_group(Record.open(kept)).rows)["digests"] == "none (older record)"
    found = json.loads(read_all(kept))
    assert found[0].pop("schema") == 1
    assert whole[0].pop("schema") == 2
    assert found == whole
    with Record.open(kept, write=True) as record:
        record.put_result("task", {"test_accuracy": 0.5})
        record.put_ledger({"member": [0], "canary": [0], "step": [5], "uses": [1]})
    assert Record.open(kept).version == 1
    assert "test_accuracy" in read_all(kept)
