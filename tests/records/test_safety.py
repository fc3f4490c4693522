"""Nothing half-written, one writer, damage named by file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.records.arrays import file_sha256


class Crash(BaseException):
    """Stands for a kill: nothing in the code may catch it and fix."""


def _crash(*_args, **_kwargs):
    raise Crash


# -- where a run may be created -----------------------------------------------------------------


def test_parents_are_made_and_removed_again_on_failure(tmp_path, head):
    with Record.create(tmp_path / "a" / "b", **head):
        pass
    with pytest.raises(InvalidInput, match="plan"):
        Record.create(tmp_path / "c" / "d", **(head | {"plan": {"x": float("nan")}}))
    assert not (tmp_path / "c").exists()


def test_a_failure_while_building_leaves_nothing(tmp_path, head, monkeypatch):
    monkeypatch.setattr("remnant.records.database.lay_out", _crash)
    with pytest.raises(Crash):
        Record.create(tmp_path / "a" / "b", **head)
    assert list(tmp_path.iterdir()) == []


def test_a_kill_before_the_rename_leaves_no_record_and_the_folder_can_be_used(tmp_path, head):
    run = tmp_path / "run"
    (run / "arrays").mkdir(parents=True)
    for name in ("record.sqlite.tmp-99", "record.lock", "checkpoint-3.safetensors", "report.html"):
        (run / name).write_bytes(b"left over")
    with pytest.raises(RecordError, match=r"record\.sqlite is missing"):
        Record.open(run)
    with Record.open_or_create(run, **head) as record:
        assert record.status == "running"
    assert not list(run.glob("*.tmp*"))


@pytest.mark.parametrize("names", [["notes.txt"], ["thesis.tex", "figure.png"]])
def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(tmp_path, head, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(RecordError, match=f"not empty: it holds {sorted(names)[0]}.*empty --out"):
        Record.open_or_create(tmp_path, **head)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_run_may_lie_beside_folders_of_runs_but_not_beside_others(tmp_path, head):
    for name in ("one-run", "exposure"):
        with Record.create(tmp_path / name, **head) as record:
            record.put_result("count", {"n": 1})
    with Record.create(tmp_path, **head):
        pass
    assert Record.open(tmp_path / "exposure").result("count") == {"n": 1}
    mixed = tmp_path / "mixed"
    with Record.create(mixed / "run", **head):
        pass
    (mixed / "thesis").mkdir()
    with pytest.raises(RecordError, match="not empty: it holds thesis but no record"):
        Record.create(mixed, **head)


def test_a_path_that_is_a_file_is_refused(tmp_path, head):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(RecordError, match="is a file, not a folder"):
        Record.create(file, **head)
    with pytest.raises(RecordError, match="cannot be used: Not a directory"):
        Record.create(file / "below", **head)
    with pytest.raises(RecordError, match="is a file"):
        Record.open(file)
    assert file.read_text() == "x"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, head, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("remnant.records.folder.os.open", refuse)
    with pytest.raises(RecordError, match=r"cannot be written: Permission denied\.$"):
        Record.create(tmp_path / "run", **head)
    assert list(tmp_path.iterdir()) == []


def test_creating_over_a_run_is_refused(create, head):
    with create() as record:
        record.put_result("x", {"n": 1})
    with pytest.raises(RecordError, match="already holds a run"):
        Record.create(record.folder, **head)
    assert Record.open(record.folder).result("x") == {"n": 1}


def test_opening_nothing_says_so(tmp_path):
    with pytest.raises(RecordError, match="does not exist"):
        Record.open(tmp_path / "nowhere")


# -- going on -----------------------------------------------------------------------------------


def test_the_same_plan_and_data_are_gone_on_with(create, head):
    with create() as record:
        record.put_result("x", {"n": 1})
    changed = head | {"execution": {"device": "cuda"}, "provenance": {"python": "3.12"}}
    with Record.open_or_create(record.folder, **changed) as again:
        assert again.result("x") == {"n": 1}
        assert again.execution == head["execution"]
        assert [a["python"] for a in again.attempts()] == ["3.11.7", "3.12"]
        again.finish()
    with Record.open_or_create(record.folder, **head) as complete:
        assert (complete.status, len(complete.attempts())) == ("complete", 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plan_fingerprint": "ffff"}, r"holds another plan \(3f9c2d, this one is ffff\)"),
        ({"data_fingerprint": "ffff"}, "holds a run on other data"),
        ({"question": "exposure"}, "holds another question"),
    ],
)
def test_another_plan_is_refused_and_the_lock_given_back(create, head, change, words):
    create().close()
    folder = create("other").folder.parent / "run"
    with pytest.raises(RecordError, match=words + r".*another --out"):
        Record.open_or_create(folder, **(head | change))
    Record.open_or_create(folder, **head).close()


# -- one writer ---------------------------------------------------------------------------------

WRITER = """
import sys, time
from remnant.records import Record
from remnant.records.arrays import file_sha256
record = Record.open(sys.argv[1], write=True)
print("held", flush=True)
time.sleep(3600)
"""


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(create):
    create().close()
    folder = create("other").folder.parent / "run"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "held\n"
        words = rf"is being written by another process \({writer.pid}\)"
        with pytest.raises(RecordError, match=words):
            Record.open(folder, write=True)
        assert Record.open(folder).status == "running"
        os.kill(writer.pid, signal.SIGKILL)
    with Record.open(folder, write=True) as record:
        record.finish()


def test_the_same_process_is_told_so(create):
    with (
        create() as record,
        pytest.raises(RecordError, match="by this very process"),
    ):
        Record.open(record.folder, write=True)
    Record.open(record.folder, write=True).close()


def test_a_record_opened_to_read_cannot_be_written(create):
    with create() as record:
        pass
    reader = Record.open(record.folder)
    for put in (
        lambda: reader.put_array("x", [1]),
        lambda: reader.put_result("x", {}),
        lambda: reader.put_ledger({"member": [], "canary": [], "step": [], "uses": []}),
        reader.finish,
    ):
        with pytest.raises(RecordError, match="reading only"):
            put()


# -- crashes between two writes -----------------------------------------------------------------


@pytest.mark.parametrize(
    "moment",
    ["remnant.records.arrays.os.replace", "remnant.records.store.database.writing"],
)
def test_a_crash_while_replacing_an_array_keeps_the_old_one(create, monkeypatch, moment):
    with create() as record:
        record.put_array("x", [1, 2, 3])
        with monkeypatch.context() as patch:
            patch.setattr(moment, _crash)
            with pytest.raises(Crash):
                record.put_array("x", [9, 9])
        assert record.array("x").tolist() == [1, 2, 3]
        record.put_array("x", [9, 9])
        assert record.array("x").tolist() == [9, 9]
        assert record.array_names() == ["x"]


def test_a_temporary_array_left_by_a_kill_is_swept_away(create):
    with create() as record:
        record.put_array("x", [1])
    leftover = record.folder / "arrays" / ".x~.npy.tmp-99"
    leftover.write_bytes(b"half")
    Record.open(record.folder, write=True).close()
    assert not leftover.exists()


def test_the_temporary_files_of_a_run_below_are_left_to_the_process_that_writes_it(create):
    with create("both/inner") as inner:
        inner.put_array("x", [1])
        being_written = [inner.folder / "arrays" / ".x~.npy.tmp-99", inner.folder / ".tmpAbCd12"]
        for path in being_written:
            path.write_bytes(b"half")
        create("both").close()
        Record.open(inner.folder.parent, write=True).close()
        assert all(path.exists() for path in being_written)


KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
for i in range(2000):
    connection.execute("INSERT INTO results VALUES (?, ?, NULL)", (f"r{i}", '{"x": 1}'))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_transaction_killed_half_way_is_rolled_back_by_the_next_reader(create):
    with create() as record:
        record.put_result("x", {"n": 1})
    path = record.folder / "record.sqlite"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert path.with_name("record.sqlite-journal").exists()
    assert Record.open(record.folder).results() == {"x": {"n": 1}}


STEADY = """
import sys
from remnant.records import Record
from remnant.records.arrays import file_sha256
record = Record.open(sys.argv[1], write=True)
print("held", flush=True)
for n in range(10**9):
    record.put_array("x", [n] * 5000)
    record.put_result("x", {"n": n})
"""


@pytest.mark.parametrize("pause", [0.02, 0.05, 0.11])
def test_a_run_killed_at_any_moment_is_whole(create, pause):
    with create() as record:
        record.put_array("x", [-1] * 5000)
    command = [sys.executable, "-c", STEADY, str(record.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(pause)
        writer.kill()
    with Record.open(record.folder, write=True) as again:
        array = again.array("x")
        assert len(set(array.tolist())) == 1
        behind = again.results().get("x", {"n": -1})["n"]
        assert array[0] - behind in (0, 1)


def test_a_record_in_a_folder_we_may_not_write_to_can_be_read(create, monkeypatch):
    with create() as record:
        record.put_array("x", [1])
    monkeypatch.setattr("remnant.records.database.os.access", lambda *_: False)
    assert Record.open(record.folder).array("x").tolist() == [1]


# -- damage -------------------------------------------------------------------------------------


def _damaged(folder: Path, words: str) -> None:
    with pytest.raises(RecordError, match=rf"record\.sqlite {words}"):
        Record.open(folder)
    with pytest.raises(RecordError, match=rf"record\.sqlite {words}"):
        Record.open(folder, write=True)


def _execute(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "record.sqlite")) as connection, connection:
        connection.execute(statement)


def _fill(folder: Path) -> None:
    rows = [(f"r{i}", '{"text": "' + "y" * 300 + '"}') for i in range(200)]
    with closing(sqlite3.connect(folder / "record.sqlite")) as connection, connection:
        connection.executemany("INSERT INTO results VALUES (?, ?, NULL)", rows)


def test_a_file_that_is_no_database(create):
    with create() as record:
        pass
    (record.folder / "record.sqlite").write_bytes(b"x" * 4096)
    _damaged(record.folder, "is damaged: file is not a database")


def test_an_empty_or_foreign_database(create):
    with create() as record:
        pass
    (record.folder / "record.sqlite").write_bytes(b"")
    _damaged(record.folder, "is not a Remnant record")


def test_a_missing_table_or_row(create):
    with create() as record:
        pass
    _execute(record.folder, "DELETE FROM run")
    _damaged(record.folder, "is damaged: the table run has no row")
    _execute(record.folder, "DROP TABLE ledger")
    _damaged(record.folder, "is damaged: it has no table ledger")


def test_flipped_bytes_in_the_database(create):
    with create() as record:
        _fill(record.folder)
    path = record.folder / "record.sqlite"
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    _damaged(record.folder, "is damaged")


def test_a_truncated_database(create):
    with create() as record:
        _fill(record.folder)
    path = record.folder / "record.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _damaged(record.folder, "is damaged")


def test_broken_json(create, unsealed):
    with create() as record:
        pass
    unsealed(record.folder)
    _execute(record.folder, "UPDATE run SET plan = '{'")
    _damaged(record.folder, "is damaged: it holds broken JSON")


def test_a_newer_schema_says_upgrade(create):
    with create() as record:
        pass
    _execute(record.folder, "PRAGMA user_version = 7")
    _damaged(record.folder, r"was written by a newer Remnant \(schema 7, this one reads up to 2\)")


def _shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-8])


def _rewrite(file: Path) -> None:
    np.save(file, np.arange(6).reshape(2, 3))


def _garble(file: Path) -> None:
    file.write_bytes(b"z" * file.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (Path.unlink, "is missing"),
        (_shorten, r"is damaged: \d+ bytes, \d+ were written"),
        (_rewrite, "is damaged: its SHA-256 is not the one recorded"),
        (_garble, "is damaged: its SHA-256 is not the one recorded"),
    ],
)
def test_a_damaged_array_is_named(create, damage, words):
    with create() as record:
        record.put_array("x", np.arange(6))
    damage(record.folder / "arrays" / "x.npy")
    for read in (lambda: record.array("x"), record.verify):
        with pytest.raises(RecordError, match=rf"x\.npy {words}.*Restore the file from a copy"):
            read()


def test_a_record_that_says_something_else_of_an_array_is_noticed(create):
    with create() as record:
        record.put_array("x", np.arange(6))
    _execute(record.folder, "UPDATE arrays SET shape = '[2, 3]'")
    with pytest.raises(RecordError, match=r"<i8 of shape \(6,\), <i8 of shape \(2, 3\) was"):
        record.array("x")
    file = record.folder / "arrays" / "x.npy"
    file.write_bytes(b"z" * 9)
    _execute(record.folder, f"UPDATE arrays SET bytes = 9, sha256 = '{file_sha256(file)}'")
    with pytest.raises(RecordError, match="it is not a NumPy array"):
        record.array("x")


def test_two_arrays_that_changed_places_are_noticed(create):
    with create() as record:
        record.put_array("x", np.arange(6))
        record.put_array("y", np.arange(6)[::-1])
        record.finish()
    arrays = record.folder / "arrays"
    (arrays / "x.npy").rename(arrays / "z.npy")
    (arrays / "y.npy").rename(arrays / "x.npy")
    (arrays / "z.npy").rename(arrays / "y.npy")
    for read in (lambda: record.array("y"), record.verify):
        with pytest.raises(RecordError, match=r"\.npy is damaged: its SHA-256"):
            read()


def test_a_changed_value_is_found_by_its_digest(create):
    with create() as record:
        record.put_array("x", np.arange(6))
    np.save(record.folder / "arrays" / "x.npy", np.arange(6) + 1)
    for read in (lambda: record.array("x"), record.verify):
        with pytest.raises(RecordError, match=r"x\.npy is damaged: its SHA-256"):
            read()
