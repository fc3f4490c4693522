"""What is kept of a measured trial is all that results need, and no secret."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.canaries import read_canary_sets
from remnant.errors import RecordError
from remnant.records import Record
from remnant.studies import Execution, run_study
from remnant.studies.exposure import run as module
from remnant.studies.exposure.kept_trials import keep_trial, kept_trial

from .conftest import SAMPLED


class Cut(BaseException):
    pass


@pytest.fixture
def cut(tmp_path, monkeypatch):
    """The folder of a study that was killed before its results, and what it would have stored."""
    caught = []

    def kill(plan, measure, record, trials, **_):
        caught.extend(trials)
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(module, "put_exposure_results", kill)
        with pytest.raises(Cut):
            run_study(SAMPLED, tmp_path / "cut", Execution())
    return tmp_path / "cut", caught


def test_two_sampled_trials_survive_a_kill_after_each_job(
    run_once, tmp_path, killed_after_each_job, same_run
):
    jobs = killed_after_each_job(SAMPLED, tmp_path / "again")
    assert jobs == ["training", "exposure, trial 2 of 2", "exposure, trial 1 of 2"]
    same_run(run_once("sampled"), tmp_path / "again")


def test_a_kept_trial_is_what_was_measured_and_has_no_secret(cut, run_once, monkeypatch, same_run):
    folder, trials = cut
    files = sorted(folder.glob("checkpoint-exposure-*"))
    assert len(files) == len(trials) == 2
    for path, trial in zip(files, trials, strict=True):
        again = folder.parent / path.name
        assert trial.planted.extrapolated is not None
        costs = {"planted": trial.planted.reference_costs, "twin": trial.twin.reference_costs}
        keep_trial(again, trial, key="study")
        assert kept_trial(again, key="other", canaries=None, uses=None, costs=None) is None
        read = kept_trial(
            again,
            key="study",
            canaries=trial.canaries,
            uses=trial.uses,
            costs=costs.__getitem__,
        )
        for found, expected in ((read.planted, trial.planted), (read.twin, trial.twin)):
            np.testing.assert_equal(dataclasses.asdict(found), dataclasses.asdict(expected))
        assert (read.canaries, read.searches) == (trial.canaries, trial.searches)
    words = b"".join(path.read_bytes() for path in files)
    sets = read_canary_sets(folder / "canaries.jsonl")
    for canary in (one for drawn in sets for one in (*drawn.canaries, *drawn.controls)):
        assert canary.text.encode() not in words
        assert f'"{canary.secret}"'.encode() not in words

    def measured_again(*_, **__):
        raise AssertionError("a trial was measured twice")

    monkeypatch.setattr(module, "measure_each", measured_again)
    run_study(SAMPLED, folder, Execution())
    same_run(run_once("sampled"), folder)
    assert not list(folder.glob("checkpoint*"))


def test_a_file_of_another_version_is_measured_again_and_a_damaged_one_is_named(
    cut, run_once, same_run
):
    folder, trials = cut
    first, second = sorted(folder.glob("checkpoint-exposure-*"))
    key = f"{SAMPLED.fingerprint}/{Record.open(folder).data_fingerprint}"
    module.keep_trial(first, dataclasses.replace(trials[0], searches={}), key=f"{key} older")
    whole = second.read_bytes()
    second.write_bytes(whole[:-20])
    with pytest.raises(RecordError, match=rf"{second.name} is damaged\. Delete it and run"):
        run_study(SAMPLED, folder, Execution())
    second.write_bytes(whole)
    run_study(SAMPLED, folder, Execution())
    same_run(run_once("sampled"), folder)
