"""What an audit stores while the training runs, and what a killed training finds again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.integrations.training.state import RUNNING, AuditState
from remnant.records import Record
from remnant.studies.reporting import write_report


@pytest.fixture
def state(tmp_path):
    made = AuditState(
        tmp_path / "audit", plan={"kind": "from-start", "seed": 0}, settings={}, canary_set=None
    )
    made.begin(rows=10, copies=4, device="cpu")
    return made


def rows(*uses):
    return np.array(uses, dtype=np.int64).reshape(-1, 3)


def read(state, until):
    scores, uses = state.read(until=until)
    return {step: values.tolist() for step, values in scores.items()}, sorted(uses.tolist())


def test_scorings_are_appended_and_then_stored(state):
    state.append(0, np.array([1.5, 2.0]), rows(), since=0)
    state.append(10, np.array([0.1, 1 / 3]), rows((3, 0, 1), (9, 1, 2)), since=0)
    assert Record.open(state.folder).array_names() == []
    expected = {0: [1.5, 2.0], 10: [0.1, 1 / 3]}, [[3, 0, 1], [9, 1, 2]]
    assert read(state, 10) == expected
    scores, uses = state.read(until=10)
    state.write(scores, uses)
    assert not (state.folder / RUNNING).exists()
    assert read(state, 10) == expected


def test_uses_of_a_step_take_the_place_of_those_stored_before(state):
    state.write({0: np.array([1.0])}, rows((1, 0, 1), (5, 0, 1)))
    state.append(8, np.array([0.5]), rows((5, 0, 2), (6, 1, 1)), since=5)
    assert read(state, 8)[1] == [[1, 0, 1], [5, 0, 2], [6, 1, 1]]


def test_what_came_after_the_checkpoint_is_dropped(state):
    state.append(0, np.array([1.0]), rows(), since=0)
    state.append(10, np.array([0.5]), rows((2, 0, 1), (7, 0, 1)), since=0)
    assert read(state, 5) == ({0: [1.0]}, [[2, 0, 1]])


@pytest.mark.parametrize(
    "line",
    [
        b'{"step": 10, "since": 0, "sco\xff\xff": [0.5], "uses": []}',
        b"[]",
        b'{"step": 10, "since": 0, "scores": [0.5, 1.0], "uses": []}',
        b'{"step": 10, "since": 0, "scores": [NaN], "uses": []}',
        b'{"step": 10, "since": 0, "scores": [0.5], "uses": [[1, 2]]}',
        b'{"step": 10, "since": 0, "scores": [0.5], "uses": [[1, -2, 1]]}',
    ],
)
def test_a_damaged_scoring_is_one_sentence(state, line):
    state.append(0, np.array([1.0]), rows(), since=0)
    with (state.folder / RUNNING).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(RecordError, match="is damaged, so that the training cannot be resumed"):
        state.read(until=20)


def test_a_scoring_that_was_cut_short_is_left_out(state):
    state.append(0, np.array([1.0]), rows(), since=0)
    state.append(10, np.array([0.5]), rows((2, 0, 1)), since=0)
    path = state.folder / RUNNING
    path.write_bytes(path.read_bytes()[:-5])
    assert read(state, 20) == ({0: [1.0]}, [])


def test_a_training_that_starts_anew_forgets_the_scores_of_the_last_one(state):
    state.write({0: np.array([1.0]), 10: np.array([0.5])}, rows((2, 0, 1)))
    state.write({}, rows())
    assert read(state, 20) == ({}, [])


def test_a_seed_is_random_unless_given_and_a_resumed_audit_keeps_its_own(tiny, tmp_path):
    first = tiny.audit(tmp_path / "first", seed=None)
    other = tiny.audit(tmp_path / "other", seed=None)
    assert first.canaries.seed != other.canaries.seed
    assert min(first.canaries.seed, other.canaries.seed) > 2**32
    first._state.begin(rows=10, copies=10, device="cpu")
    resumed = tiny.audit(tmp_path / "first", seed=None)
    assert resumed.canaries == first.canaries
    with pytest.raises(RecordError, match="holds another audit"):
        tiny.audit(tmp_path / "first", seed=1)


def test_processes_that_cannot_agree_on_a_seed_need_one(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidInput, match=r"seed is not given, and WORLD_SIZE=2 .* same seed="):
        tiny.audit(tmp_path / "audit", seed=None)
    assert tiny.audit(tmp_path / "audit", seed=3).canaries.seed == 3


def test_only_the_owner_can_read_what_gives_the_secrets_back(tiny, tmp_path):
    audit = tiny.audit(tmp_path / "audit", seed=None)
    state = audit._state
    state.begin(rows=10, copies=10, device="cpu")
    state.append(0, np.array([1.0]), rows(), since=0)
    state.write({0: np.array([1.0])}, rows((2, 0, 1)))
    with Record.open(state.folder, write=True) as record:
        record.finish()
    page = write_report(state.folder).read_text(encoding="utf-8")
    seed = str(audit.canaries.seed)
    for path in state.folder.rglob("*"):
        if path.is_file() and (seed.encode() in path.read_bytes() or path.suffix == ".npy"):
            assert path.stat().st_mode & 0o077 == 0, path
    assert seed.encode() in (state.folder / "record.sqlite").read_bytes()
    assert "my pin is {digits:4}" in page
    assert seed not in page
    assert seed not in json.dumps(Record.open(state.folder).summary())
