"""Gone or hidden in a study on real digits: what is recorded, resumed, refused and said of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.errors import PlanError
from remnant.records import Record
from remnant.studies import Execution, ForgettingStudy, run_study, study_from
from remnant.studies.forgetting.attack_scores import RunScores
from remnant.studies.forgetting.measure import _trained_on, measure_forgetting
from remnant.studies.forgetting.recipe import AttackSettings
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import CanarySettings, DataSettings, ModelSettings
from remnant.studies.shared.variants import Variant

PLAN = InjectPlan(
    canaries=16, step=10, watch_steps=10, trials=3, batch=32, twins="fresh", fresh_canaries=True
)
HIDDEN = HiddenSettings(noise=(0.1, 0.3), draws=2, relearn_steps=(1, 4), neighbours=24)


def study_of(**changes):
    return ForgettingStudy(
        **{
            "plan": PLAN,
            "data": DataSettings(examples=200),
            "model": ModelSettings(name="logistic"),
            "attack": AttackSettings(success="auc", limit=0.9),
            "hidden": HIDDEN,
            **changes,
        }
    )


def forgetting_curve_of(record, study):
    """AUC of each disturbance and trial, with its scores."""
    disturbed = record.array("primary.hidden")
    slots = np.concatenate([disturbed[:1], disturbed])
    copies = record.array("primary.near_copies")
    scores = RunScores.of(study.plan, slots, "log-odds", copies).instance("references")
    above = scores.seen[..., :, None] > scores.unseen[..., None, :]
    return above.mean(axis=(2, 3))


def results(study, folder):
    run_study(study, folder, Execution())
    return Record.open(folder).results()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hidden") / "run"
    run_study(study_of(), folder, Execution())
    return folder


def test_every_disturbance_has_its_row(run):
    found = Record.open(run).results()["hidden"]
    rows = found["disturbances"]
    assert [(row["kind"], row["amount"]) for row in rows] == [
        *(("noise", 0.1), ("noise", 0.3), ("relearn", 1), ("relearn", 4))
    ]
    for row in rows:
        assert 0 <= row["after_low"] <= row["after"] <= row["after_high"] <= 1
        assert row["aa_low"] <= row["aa"] <= row["aa_high"]
        assert row["rise"] == pytest.approx(row["after"] - found["before"])
        assert 0 < row["test_accuracy"] <= 1
    curve = Record.open(run).results()["curve"]
    assert found["before"] == curve["value"][-1], "before is the curve's own last lag"
    assert found["lag"] == curve["lags"][-1]


def test_the_scan_is_always_run_and_disturbances_only_when_asked(tmp_path):
    found = results(study_of(hidden=None), tmp_path / "run")
    assert found["hidden"] == {
        "absent": "the recipe has no [hidden] section: no weight noise, no relearning"
    }
    assert found["returning"]["reference"] == "never-planted examples in the same models"
    assert found["returning"]["canaries"] == 48
    searched = [line for line in found["scope"]["tested"] if "only hidden" in line]
    assert searched[0].endswith("by: a scan of all later checkpoints")
    missing = [line for line in found["scope"]["not_tested"] if "is gone" in line]
    assert "no weight noise and no relearning on similar examples was run" in missing[0]


@pytest.mark.parametrize(
    ("changes", "ran", "missing"),
    [
        ({}, "by: weight noise, relearning on similar examples, a scan", None),
        ({"relearn_steps": ()}, "by: weight noise, a scan", "no relearning on similar"),
        ({"noise": ()}, "by: relearning on similar examples, a scan", "no weight noise was run"),
    ],
)
def test_the_scope_says_which_were_run(changes, ran, missing, tmp_path):
    settings = dataclasses.replace(HIDDEN, **changes)
    found = results(study_of(hidden=settings), tmp_path / "run")
    assert any(ran in line for line in found["scope"]["tested"])
    about = next(line for line in found["scope"]["not_tested"] if "is gone" in line)
    assert "may still bring it to light" in about
    assert "was run" not in about if missing is None else missing in about
    kinds = {row["kind"] for row in found["hidden"]["disturbances"]}
    assert kinds == {
        kind
        for kind, asked in (("noise", settings.noise), ("relearn", settings.relearn_steps))
        if asked
    }


def test_results_can_be_measured_again_and_a_second_run_is_the_same(run, tmp_path):
    before = Record.open(run).results()
    with Record.open(run, write=True) as record:
        measure_forgetting(record, study_of())
    assert Record.open(run).results() == before
    assert results(study_of(), tmp_path / "again") == before


def test_a_longer_variant_beside_it_does_not_move_the_disturbed_models(run, tmp_path):
    """In one population the shorter study trains on; it is disturbed at its own last lag."""
    longer = study_of(plan=dataclasses.replace(PLAN, watch_steps=25))
    run_study(study_of(compare=(Variant("longer", longer),)), tmp_path / "both", Execution())
    both, alone = Record.open(tmp_path / "both"), Record.open(run)
    for name in ("primary.hidden", "primary.hidden_accuracy"):
        np.testing.assert_allclose(both.array(name), alone.array(name), atol=1e-4)
    assert not [name for name in both.array_names() if name.startswith("variant1.hidden")]


def test_controls_are_the_neighbours_where_they_are_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("remnant.studies.forgetting.residual_memory_probe.draw_neighbours", None)
    plan = dataclasses.replace(PLAN, controls=24)
    assert "hidden" in results(study_of(plan=plan), tmp_path / "run")


@pytest.mark.parametrize("made", [InjectPlan, PoisonPlan])
def test_references_had_the_same_disturbance(made, tmp_path):
    plan = made(canaries=16, step=10, watch_steps=6, trials=3, batch=32, twins="fresh")
    study = study_of(plan=plan)
    run_study(study, tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    odds = record.array("primary.hidden")[:, :, 1]
    scores = odds[:, 0] - odds[:, [4, 5, 7, 8]].mean(axis=1)  # twins and A/A twins of the others
    own, other = scores[:, :16], scores[:, 16:]
    above = (own[:, :, None] > other[:, None, :]).mean(axis=(1, 2))
    rows = record.results()["hidden"]["disturbances"]
    found = forgetting_curve_of(record, study)
    np.testing.assert_allclose(found[:, 0], above, atol=1e-6)
    means = found.mean(axis=1)
    np.testing.assert_allclose([row["after"] for row in rows], means, atol=1e-6)


def test_what_a_disturbance_trained_on_is_not_taken_for_never_planted():
    """Where controls are the neighbours, they are out of the comparison after the disturbance."""
    plan = dataclasses.replace(PLAN, controls=30)
    study = study_of(plan=plan)
    barred = _trained_on(study, HIDDEN, 3 * 46)
    assert barred.sum() == 3 * HIDDEN.neighbours
    assert not barred[: 3 * 16].any(), "canaries stay"


def test_beside_the_twin_chance_is_read_off_aa_twins(tmp_path):
    twin = AttackSettings(success="auc", limit=0.9, against="twin")
    found = results(study_of(attack=twin, hidden=None), tmp_path / "run")
    assert found["returning"]["reference"] == "A/A twins"
    alone = study_of(attack=twin, hidden=None, plan=dataclasses.replace(PLAN, aa=False))
    found = results(alone, tmp_path / "alone")
    assert found["returning"]["absent"] == "the plan has no A/A twins"


def test_too_few_checkpoints_are_a_reason(tmp_path):
    attack = AttackSettings(success="auc", limit=0.9, lags=(0, 10))
    found = results(study_of(attack=attack, hidden=None), tmp_path / "run")
    assert "2 checkpoints cannot show a return" in found["returning"]["absent"]
    assert "too few for a decay law" in found["decision"]["decay"]["absent"]


@pytest.mark.parametrize("kind", ["odd", "hard"])
def test_other_kinds_of_canary_have_neighbours_too(kind, tmp_path):
    found = results(study_of(canaries=CanarySettings(kind=kind, judge_steps=10)), tmp_path / "run")
    assert len(found["hidden"]["disturbances"]) == 4


def test_what_cannot_be_done_is_refused_before_anything_is_written(tmp_path):
    many = study_of(hidden=HiddenSettings(neighbours=500))
    with pytest.raises(PlanError, match=r"hidden\.neighbours=500 are more than the 491 examples"):
        run_study(many, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()
    with pytest.raises(PlanError, match=r"\[hidden\] compares trials .* needs trials >= 2"):
        study_of(plan=dataclasses.replace(PLAN, trials=1))


def test_every_field_moves_the_fingerprint():
    others = [
        study_of(hidden=None),
        study_of(hidden=dataclasses.replace(HIDDEN, noise=(0.1,))),
        study_of(hidden=dataclasses.replace(HIDDEN, draws=3)),
        study_of(hidden=dataclasses.replace(HIDDEN, relearn_steps=(1,))),
        study_of(hidden=dataclasses.replace(HIDDEN, neighbours=25)),
        study_of(hidden=dataclasses.replace(HIDDEN, learning_rate=0.01)),
    ]
    assert len({study_of().fingerprint, *(other.fingerprint for other in others)}) == 7


def test_a_recipe_and_a_record_give_the_same_study():
    study = study_of()
    assert study_from(study.to_dict()) == study
    assert study_from(study_of(hidden=None).to_dict()).hidden is None
    bare = {"plan": {"kind": "inject", "canaries": 16, "step": 1, "watch_steps": 3}, "hidden": {}}
    assert study_from(bare).hidden == HiddenSettings(), "an empty section asks for the defaults"
    with pytest.raises(PlanError, match=r"unknown field hidden\.heat"):
        study_from(bare | {"hidden": {"heat": 1}})


def test_the_record_holds_a_decision_epsilon_and_the_smoothed_curve(run):
    found = Record.open(run).results()
    decision, curve = found["decision"], found["curve"]
    assert decision["limit"] == 0.9
    assert decision["batch"] == 32
    lag = decision["safe_after"]["lag"]
    examples = decision["protect_last"]["examples"]
    assert examples == (None if lag is None else lag * 32)
    assert {"value", "low", "high", "beyond"} == set(decision["forecast"])
    assert len(curve["smoothed"]) == len(curve["value"])
    assert "no TPR and FPR" in curve["epsilon"]["absent"]
    for name in ("curve_tpr", "curve_precision"):
        assert len(found[name]["epsilon"]["value"]) == len(curve["lags"])
