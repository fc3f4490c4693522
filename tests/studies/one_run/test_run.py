"""The one-run study on real digits: what it records, resuming, verdicts, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures import OneRunForgetting, Verdict
from remnant.plans import StaggeredPlan
from remnant.records import Record
from remnant.studies import Execution, estimate_study, run_study
from remnant.studies.one_run.measure import one_run_curve
from remnant.studies.one_run.recipe import OneRunSettings, OneRunStudy
from remnant.studies.shared.settings import DataSettings, TrainingSettings

STUDY = OneRunStudy(
    plan=StaggeredPlan(
        canaries=120,
        never=60,
        starts=[40, 120],
        window=30,
        repeats=[8],
        per_batch=10,
        steps=220,
        batch=32,
    ),
    data=DataSettings(examples=300),
    training=TrainingSettings(options={"lr": 0.1}),
    attack=OneRunSettings(checkpoints=6, success="auc", limit=0.75),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "one-run"
    run_study(STUDY, folder, Execution())
    return folder


def test_what_was_planted_is_found_and_what_was_not_is_not_yet(run):
    record = Record.open(run)
    found = record.results()["one_run"]
    rows = list(zip(found["cohort"], found["checkpoint"], strict=True))
    assert rows[0] == (0, 69)  # right after the last step of the first window
    fresh = [found["success"][rows.index(first)] for first in ((0, 69), (1, 149))]
    assert min(fresh) > 0.65
    before = record.array("scores")[STUDY.probe_steps().index(120)]
    later = STUDY.plan.cohort_of == 1
    never = STUDY.plan.cohort_of == -1
    assert abs(before[later].mean() - before[never].mean()) < before[never].std()
    assert record.results()["task"]["test_accuracy"] > 0.8
    assert len(record.array("scores")) == len(STUDY.probe_steps())


def test_the_curve_is_that_of_the_scores(run):
    record = Record.open(run)
    again = one_run_curve(STUDY, record.array("scores"))
    found = record.results()["one_run"]
    for name in ("lags", "success", "low", "high", "effect", "repeats"):
        np.testing.assert_allclose(found[name], getattr(again, name))
    assert all(lag >= 0 for lag in found["lags"])


def test_the_record_names_the_attacker_and_what_others_find(run):
    verdict, curves = (Record.open(run).results()[name] for name in ("verdict", "one_run"))
    assert curves["attacker"] == "an attacker with two checkpoints of this run"
    assert curves["references"] == 0
    (alone,) = curves["others"]
    assert alone["name"] == "an attacker with the model alone"
    assert alone["low"] < alone["success"] < alone["high"]
    assert "of an attacker with two checkpoints of this run is " in verdict["sentence"]
    assert "of an attacker with two checkpoints of this run is " in verdict["claim"]


def test_the_ledger_says_when_each_canary_was_used(run):
    ledger = Record.open(run).ledger()
    assert len(ledger["step"]) == STUDY.plan.repeats_of.sum()


def test_the_estimate_says_how_long_it_takes(a_minute_a_step):
    found = estimate_study(STUDY, Execution())
    assert found["steps"] == 220
    assert found["minutes"] == 220 + len(STUDY.probe_steps())


def test_a_cohort_of_one_has_no_interval_of_its_effect(tmp_path):
    plan = dataclasses.replace(
        STUDY.plan, canaries=61, never=60, starts=[40], steps=80, per_batch=1
    )
    study = dataclasses.replace(STUDY, plan=plan)
    run_study(study, tmp_path / "run", Execution())
    found = Record.open(tmp_path / "run").results()["one_run"]
    assert set(found["effect_high"]) == {None}
    assert None not in found["effect"]


def test_faults_are_named(tmp_path):
    with pytest.raises(NotEnoughEvidence, match=r"plan.never=60 cannot place.*at least 100"):
        dataclasses.replace(STUDY, attack=OneRunSettings(fpr=0.01))
    with pytest.raises(PlanError, match=r"attack.limit=0.4 is not above chance \(0.5\)"):
        OneRunSettings(success="auc", limit=0.4)
    with pytest.raises(PlanError, match=r"attack.calibrate=1 is not true or false"):
        OneRunSettings(calibrate=1)
    many = dataclasses.replace(STUDY, plan=dataclasses.replace(STUDY.plan, canaries=700, never=640))
    with pytest.raises(PlanError, match="needs 700 canaries"):
        run_study(many, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_a_model_that_did_not_learn_its_task_does_not_pass(tmp_path, monkeypatch):
    passing = Verdict("PASS", "Under the limit.", "At most 0.6.", 0.75, 150.0)
    monkeypatch.setattr(OneRunForgetting, "verdict", lambda *_: passing)
    untrained = TrainingSettings(options={"lr": 1e-12})
    run_study(dataclasses.replace(STUDY, training=untrained), tmp_path / "run", Execution())
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "always naming the commonest class gives" in verdict["claim"]
