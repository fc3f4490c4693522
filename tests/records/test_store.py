"""A record gives back what it was given, refuses what it cannot keep, and is readable by others."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import remnant
from remnant.errors import InvalidInput, RecordError
from remnant.records import Record, gather_provenance, list_runs
from remnant.records.outcomes import RULES

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc é"), inner, max_size=3)
    ),
    max_leaves=8,
)
ARRAYS = hnp.arrays(
    dtype=st.one_of(
        hnp.boolean_dtypes(),
        hnp.integer_dtypes(),
        hnp.floating_dtypes(),
        hnp.complex_number_dtypes(),
        hnp.unicode_string_dtypes(max_len=4),
    ),
    shape=hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
)


def test_a_new_record_holds_what_it_was_created_with(create, head):
    with create() as made:
        assert made.status == "running"
    record = Record.open(made.folder)
    assert record.question == "forgetting"
    assert record.plan == head["plan"]
    assert record.execution == head["execution"]
    assert record.plan_fingerprint == "3f9c2d"
    assert record.data_fingerprint == "a71e00"
    found = record.provenance
    assert found["python"] == "3.11.7"
    assert found["started"].endswith("Z")
    assert found["finished"] is None
    assert (record.array_names(), record.results()) == ([], {})


def test_finishing_sets_the_status_and_keeps_the_first_time(create, monkeypatch):
    with create() as record:
        record.finish()
        first = record.finished
        monkeypatch.setattr("remnant.records.store.utc_now", lambda: "2100-01-01T00:00:00Z")
        record.finish()
        assert (record.status, record.finished) == ("complete", first)


def test_a_record_is_written_by_at_most_five_files(create):
    home, files = Path(remnant.records.__file__).parent, set()

    def watch(frame, event, argument):
        if event == "call":
            files.add(Path(frame.f_code.co_filename))

    sys.setprofile(watch)
    try:
        with create() as record:
            record.put_array("losses", np.zeros(3))
            record.put_result("task", {"test_accuracy": 0.97})
            record.put_ledger({name: [1] for name in ("member", "canary", "step", "uses")})
            record.finish()
    finally:
        sys.setprofile(None)
    entered = {path.name for path in files if path.parent == home}
    assert "store.py" in entered
    assert len(entered) <= 5


def test_update_execution_changes_only_the_keys_named(create):
    with create() as record:
        record.update_execution({"split": 2})
        assert record.execution == {"device": "cpu", "backend": "stacked", "split": 2}


def test_arrays_round_trip(create):
    @settings(max_examples=20)
    @given(array=ARRAYS)
    def check(array):
        record.put_array("x", array)
        found = record.array("x")
        np.testing.assert_array_equal(found, array)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)

    with create() as record:
        check()


def test_results_round_trip(create):
    @settings(max_examples=20)
    @given(value=st.dictionaries(st.text("xyz", min_size=1), JSON, max_size=4))
    def check(value):
        record.put_result("x", value)
        assert record.result("x") == value

    with create() as record:
        check()


def test_numpy_values_become_plain_ones(create):
    with create() as record:
        record.put_result("x", {"a": np.float32(0.5), "b": np.arange(3), "c": (np.True_, None)})
        assert record.result("x") == {"a": 0.5, "b": [0, 1, 2], "c": [True, None]}


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), np.float64("nan"), np.array([-np.inf])]
)
def test_nan_and_infinities_are_refused_with_their_place(create, bad):
    with create() as record:
        with pytest.raises(InvalidInput, match=r"result curve\.low.* is (nan|-?inf).*put_absent"):
            record.put_result("curve", {"value": [0.5], "low": [0.4, bad]})
        assert record.results() == {}


def test_every_fault_in_a_result_is_listed(create):
    with create() as record, pytest.raises(InvalidInput) as caught:
        record.put_result("x", {"a": object(), "b": {1: 2}, "c": "\ud800"})
    assert all(part in str(caught.value) for part in ("x.a is a object", "key of", "Unicode"))


def test_absence_is_typed_and_needs_a_reason(create):
    with create() as record:
        record.put_absent("curve_aa", "no A/A twins were asked for")
        assert record.result("curve_aa") == {"absent": "no A/A twins were asked for"}
        with pytest.raises(InvalidInput, match="without a reason"):
            record.put_absent("curve_tpr", " ")
        with pytest.raises(InvalidInput, match="put_absent"):
            record.put_result("curve_tpr", {"absent": "x"})


def test_a_result_or_array_can_be_replaced(create):
    with create() as record:
        for number in range(3):
            record.put_array("scores", np.full(number + 1, number))
            record.put_result("x", {"n": number})
            assert record.array("scores").tolist() == [number] * (number + 1)
        assert record.result("x") == {"n": 2}
        assert len(list((record.folder / "arrays").iterdir())) == 1


def test_an_array_that_is_stored_again_keeps_its_file(create):
    with create() as record:
        for values in ([1, 2], [3, 4]):
            for _ in range(3):
                record.put_array("scores", values)
                assert record.array("scores").tolist() == values
                assert len(list((record.folder / "arrays").iterdir())) == 1
            if values == [1, 2]:
                assert [path.name for path in (record.folder / "arrays").iterdir()] == [
                    "scores.npy"
                ]


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".x", "-x", "a b", "é", "x" * 101, 3])
def test_names_that_are_no_file_names_are_refused(create, name):
    with create() as record:
        for put in (
            lambda: record.put_array(name, [1]),
            lambda: record.put_result(name, {}),
            lambda: record.put_absent(name, "why"),
        ):
            with pytest.raises(InvalidInput, match="not a usable name"):
                put()


def test_names_that_differ_in_case_only_are_refused(create):
    with create() as record:
        record.put_array("Scores", [1])
        with pytest.raises(InvalidInput, match="in case only"):
            record.put_array("scores", [1])


def test_objects_are_never_stored(create):
    with create() as record:
        with pytest.raises(InvalidInput, match="dtype object"):
            record.put_array("x", np.array([{}, None]))
        assert record.array_names() == []


def test_asking_for_what_is_not_there_names_what_is(create):
    with create() as record:
        record.put_array("losses", [1.0])
        record.put_result("task", {"n": 1})
        with pytest.raises(RecordError, match=r"no array 'x'; it holds losses\."):
            record.array("x")
        with pytest.raises(RecordError, match=r"no result 'x'; it holds task\."):
            record.result("x")


def test_the_ledger_round_trips_sorted_and_summed(create):
    with create() as record:
        rows = {"member": [1, 0, 1], "canary": [2, 2, 2], "step": [300, 5, 300], "uses": [1, 1, 2]}
        record.put_ledger(rows)
        found = {name: column.tolist() for name, column in record.ledger().items()}
        assert found == {"member": [0, 1], "canary": [2, 2], "step": [5, 300], "uses": [1, 3]}
        record.put_ledger({name: [] for name in rows})
        assert all(column.shape == (0,) for column in record.ledger().values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"uses": [0]}, "uses holds 0, at least 1"),
        ({"step": [-1]}, "step holds -1, at least 0"),
        ({"canary": [0.5]}, "canary has dtype float64"),
        ({"canary": [1, 2]}, r"canary has shape \(2,\)"),
        ({"extra": [1]}, "ledger has columns"),
    ],
)
def test_a_ledger_that_is_not_one_is_refused(create, change, words):
    with create() as record, pytest.raises(InvalidInput, match=words):
        record.put_ledger({"member": [0], "canary": [0], "step": [0], "uses": [1]} | change)


def test_any_sqlite_tool_and_numpy_can_read_it(create):
    with create() as record:
        record.put_array("losses", np.arange(3.0))
        record.put_result("task", {"test_accuracy": 0.9})
        record.finish()
    with closing(sqlite3.connect(record.folder / "record.sqlite")) as connection:
        assert connection.execute("SELECT status FROM run").fetchone() == ("complete",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        (value,) = connection.execute("SELECT value FROM results").fetchone()
        (file,) = connection.execute("SELECT file FROM arrays").fetchone()
    assert json.loads(value) == {"test_accuracy": 0.9}
    found = np.load(record.folder / "arrays" / file, allow_pickle=False)
    assert found.tolist() == [0.0, 1.0, 2.0]


def test_summary_is_plain_json(create):
    with create() as record:
        record.put_array("losses", np.zeros((2, 3)))
        record.put_ledger({"member": [0, 1], "canary": [0, 0], "step": [3, 9], "uses": [1, 1]})
        found = json.loads(json.dumps(record.summary(), allow_nan=False))
    assert found["arrays"]["losses"]["shape"] == [2, 3]
    assert (found["ledger"]["uses"], found["ledger"]["last_step"]) == (2, 9)
    assert found["status"] == "running"
    assert found["schema"] == 2


def test_runs_are_listed_with_their_state_and_a_damaged_one_does_not_hide_them(create, tmp_path):
    with create("a") as done:
        done.put_result("verdict", {"outcome": "PASS", "rules": RULES})
        done.finish()
    create("b").close()
    with create("c"):
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "record.sqlite").write_text("not a database, but long enough to be read")
        (tmp_path / "empty").mkdir()
        runs = list_runs(tmp_path)
    assert [(run.folder.name, run.status, run.verdict) for run in runs] == [
        ("a", "complete", "PASS"),
        ("b", "interrupted", None),
        ("c", "running", None),
        ("d", "damaged", None),
    ]
    assert "record.sqlite is damaged" in (runs[3].fault or "")
    json.dumps([run.as_dict() for run in runs])
    with pytest.raises(RecordError, match="Pass the folder that holds runs"):
        list_runs(tmp_path / "nowhere")
    with pytest.raises(RecordError, match="cannot be listed: Not a directory"):
        list_runs(tmp_path / "d" / "record.sqlite")


def test_a_shadow_pool_is_listed_as_one_and_never_as_interrupted(create, tmp_path):
    with create("pool", question="shadow-pool"):
        (filling,) = list_runs(tmp_path)
    (pool,) = list_runs(tmp_path)
    assert (filling.status, pool.status) == ("running", "pool")
    assert (pool.question, pool.verdict) == ("shadow-pool", None)


def test_provenance_names_the_version_of_the_code_that_ran(monkeypatch):
    """Metadata of an installed package may be of an older version."""
    monkeypatch.setattr("remnant.records.provenance.version", lambda package: "0.0.1")
    found = gather_provenance(device="cpu", threads=1, seeds={})
    assert found["versions"]["remnant"] == remnant.__version__


def test_provenance_names_versions_without_importing_torch():
    code = (
        "import sys; from remnant.records import gather_provenance as g;"
        "found = g(device='cpu', threads=2, seeds={'plan': 0});"
        "print('torch' in sys.modules, found['versions']['torch'] is not None)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.split() == ["False", "True"]
    found = gather_provenance(device="cpu", threads=2, seeds={"plan": 7})
    assert (found["device"], found["threads"], found["seeds"]) == ("cpu", 2, {"plan": 7})


def test_a_run_that_holds_nothing_can_be_discarded_without_a_trace(create):
    empty = create()
    empty.discard_if_empty()
    assert not empty.folder.exists()
    kept = create()
    kept.put_array("scores", np.zeros(3))
    kept.discard_if_empty()
    kept.close()
    assert Record.open(kept.folder).array("scores").shape == (3,)
