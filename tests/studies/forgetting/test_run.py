"""The study on real digits: directions, controls, resuming, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.errors import InvalidInput, NotEnoughEvidence, PlanError, RecordError
from remnant.records import Record
from remnant.studies import Execution, ForgettingStudy, estimate_forgetting, run_forgetting
from remnant.studies.forgetting.measure import measure_forgetting
from remnant.studies.forgetting.recipe import AttackSettings
from remnant.studies.forgetting.twin_scores import twin_scores
from remnant.studies.shared.compared_study import lag_grid
from remnant.studies.shared.settings import (
    CanarySettings,
    DataSettings,
    ModelSettings,
    TrainingSettings,
)
from remnant.studies.shared.variants import Variant

TINY = InjectPlan(
    canaries=16,
    controls=8,
    step=10,
    watch_steps=10,
    trials=2,
    batch=32,
    twins="fresh",
    fresh_canaries=True,
)


def tiny(**changes):
    return ForgettingStudy(
        **{
            "plan": TINY,
            "data": DataSettings(examples=200),
            "model": ModelSettings(name="logistic"),
            **changes,
        }
    )


def varied(label="varied", **changes):
    """The tiny study beside itself with another plan."""
    return tiny(compare=[Variant(label, tiny(plan=dataclasses.replace(TINY, **changes)))])


def results(study, folder):
    run_forgetting(study, folder, Execution())
    return Record.open(folder).results()


def test_injected_digits_are_found_then_forgotten_and_the_controls_stay_at_chance(tmp_path):
    """The INJECT curve starts high and decays; ten repeats lie above one; A/A is at chance."""
    plan = InjectPlan(
        canaries=32,
        step=100,
        watch_steps=300,
        trials=6,
        batch=64,
        twins="fresh",
        fresh_canaries=True,
    )
    often_plan = dataclasses.replace(plan, repeats=10)
    attack = AttackSettings(lags=(0, 1, 10, 50, 100, 200, 300), success="auc", limit=0.9)
    study = ForgettingStudy(
        plan=plan,
        label="1 repeat",
        compare=(Variant("10 repeats", ForgettingStudy(plan=often_plan, attack=attack)),),
        attack=attack,
    )
    found = results(study, tmp_path / "run")
    curve, aa = found["curve"], found["curve_aa"]
    once = np.array(curve["value"])
    often = np.array(found["curve_variant1"]["value"])
    assert once[0] > 0.8, "the attack finds what was just injected"
    assert once[1:3].mean() - once[-2:].mean() > 0.15, "and finds less of it later"
    assert (often[2:] > once[2:]).all(), "ten repeats lie above one"
    assert curve["low"][1] > 0.6
    (gap,) = found["compare"]["differences"]
    assert gap["label"] == "10 repeats"
    assert gap["mean_low"] > 0
    assert gap["adjusted_p_value"] == gap["p_value"] < 0.05
    inside = [low <= 0.5 <= high for low, high in zip(aa["low"], aa["high"], strict=True)]
    assert sum(inside) >= 6, "A/A twins stay at chance"
    assert found["task"]["test_accuracy"] > 0.9
    assert found["verdict"]["outcome"] == "PASS"


def test_poison_is_found_and_decays(tmp_path):
    plan = PoisonPlan(canaries=32, step=140, watch_steps=200, trials=6, batch=64, twins="fresh")
    study = ForgettingStudy(
        plan=plan, attack=AttackSettings(success="auc", limit=0.9, lags=(0, 50, 200))
    )
    found = results(study, tmp_path / "run")
    curve = found["curve"]
    assert curve["low"][0] > 0.7
    assert curve["value"][0] > curve["value"][-1]
    aa = found["curve_aa"]
    assert sum(low <= 0.5 <= high for low, high in zip(aa["low"], aa["high"], strict=True)) >= 2


def test_a_second_run_in_the_same_folder_changes_nothing(
    tmp_path, killed_after_each_group, same_run
):
    first = results(tiny(), tmp_path / "run")
    assert results(tiny(), tmp_path / "run") == first
    assert killed_after_each_group(tiny(), tmp_path / "again") == ["primary"]
    same_run(tmp_path / "run", tmp_path / "again")


def test_a_driver_killed_after_each_group_runs_none_twice_and_gives_the_same_bits(
    tmp_path, killed_after_each_group, same_run
):
    canaries = CanarySettings(kind="hard", judge_steps=20)
    wider = tiny(canaries=canaries, model=ModelSettings(name="mlp1", options={"width": 0.1}))
    study = tiny(canaries=canaries, compare=[Variant("wider", wider)])
    run_forgetting(study, tmp_path / "run", Execution())
    groups = killed_after_each_group(study, tmp_path / "again")
    assert groups[0] == "judges"
    assert len(groups) == 3
    same_run(tmp_path / "run", tmp_path / "again")


def test_results_can_be_measured_again_from_the_stored_scores(tmp_path):
    before = results(tiny(), tmp_path / "run")
    with Record.open(tmp_path / "run", write=True) as record:
        measure_forgetting(record, tiny())
    assert Record.open(tmp_path / "run").results() == before


@pytest.mark.parametrize("moments", [10, (6, 9)])
def test_runs_that_plant_more_or_less_often_are_each_what_they_are_alone(tmp_path, moments):
    """Twins are trained once for both; test accuracy is that of a run's own last step."""
    plans = [dataclasses.replace(TINY, step=moments, repeats=repeats) for repeats in (1, 4)]
    once, often = (tiny(plan=plan) for plan in plans)
    both = tiny(plan=plans[0], compare=[Variant("often", often)])
    often = tiny(plan=dataclasses.replace(plans[1], aa=False))  # only the first run has A/A twins
    for name, study in (("both", both), ("once", once), ("often", often)):
        results(study, tmp_path / name)
    together = Record.open(tmp_path / "both")
    for run, alone in (("primary", "once"), ("variant1", "often")):
        for array in ("signals", "test_accuracy"):
            expected = Record.open(tmp_path / alone).array(f"primary.{array}")
            np.testing.assert_allclose(together.array(f"{run}.{array}"), expected, atol=1e-5)


def test_another_plan_in_the_same_folder_is_refused(tmp_path):
    results(tiny(), tmp_path / "run")
    other = tiny(plan=dataclasses.replace(TINY, seed=1))
    with pytest.raises(RecordError, match="another plan"):
        run_forgetting(other, tmp_path / "run", Execution())


@pytest.mark.parametrize("kind", ["mislabelled", "odd", "hard", "medium", "easy"])
def test_every_kind_of_canary_runs(kind, tmp_path):
    plan = dataclasses.replace(TINY, controls=4, canaries=12)
    found = results(
        tiny(plan=plan, canaries=CanarySettings(kind=kind, judge_steps=20)), tmp_path / "r"
    )
    assert found["curve"]["value"][0] > 0.5
    verdict, low = found["verdict"], found["curve"]["low"][-1]
    assert (verdict["outcome"] == "FAIL") == (low > verdict["limit"])
    assert verdict["outcome"] != "PASS", "two trials of twelve canaries show too little"


@pytest.mark.parametrize("calibration", ["logit", "loss", "twins", "none"])
def test_calibrations_are_what_they_say(calibration, tmp_path):
    study = tiny(attack=AttackSettings(calibration=calibration))
    run_forgetting(study, tmp_path / "run", Execution())
    signals = Record.open(tmp_path / "run").array("primary.signals")
    found = twin_scores(TINY, signals, "planted", study.attack.calibration)
    assert found.shape == (len(lag_grid(10)), 2, 16)
    member, here = TINY.members_of("planted")[1], slice(16, 32)
    loss, odds = signals[:, member, 0, here], signals[:, member, 1, here]
    other = signals[1:, TINY.members_of("twin")[0], 1, here]
    expected = {
        "logit": odds[1:] - odds[0],
        "loss": loss[0] - loss[1:],
        "twins": odds[1:] - other,
        "none": odds[1:],
    }
    np.testing.assert_allclose(found[:, 1], expected[calibration])


def test_poison_is_calibrated_by_the_other_trials(tmp_path):
    plan = PoisonPlan(canaries=16, step=10, watch_steps=5, trials=3, batch=32, aa=False)
    study = tiny(plan=plan)
    run_forgetting(study, tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    odds = record.array("primary.signals")[1:, :, 1]
    signals = record.array("primary.signals")
    found = twin_scores(plan, signals, "planted", study.attack.calibration)
    np.testing.assert_allclose(found[:, 0], odds[:, 0] - (odds[:, 3] + odds[:, 5]) / 2)
    assert record.result("curve_aa") == {"absent": "the plan has no A/A twins"}


def test_the_estimate_writes_nothing_and_counts_right(tmp_path, monkeypatch, a_minute_a_step):
    monkeypatch.chdir(tmp_path)
    found = estimate_forgetting(varied(repeats=5), Execution())
    assert found["members"] == 6 + 4, "a variant has no A/A twins"
    assert found["steps"] == 10 + 5 + 10, "one population, as long as its longest run"
    assert found["memory_mib"] > 0
    assert found["minutes"] == found["steps"]
    assert list(tmp_path.iterdir()) == []


def test_every_field_of_a_study_moves_its_fingerprint():
    study = tiny()
    others = [
        tiny(plan=dataclasses.replace(TINY, seed=7)),
        tiny(data=DataSettings(examples=201)),
        tiny(data=DataSettings(examples=200, seed=1)),
        tiny(canaries=CanarySettings(kind="odd")),
        tiny(canaries=CanarySettings(judges=5)),
        tiny(canaries=CanarySettings(judge_steps=5)),
        tiny(model=ModelSettings(name="mlp1")),
        tiny(model=ModelSettings(name="mlp1", options={"dropout": 0.1})),
        tiny(training=TrainingSettings(optimizer="adam", options={})),
        tiny(training=TrainingSettings(options={"lr": 0.2})),
        tiny(training=TrainingSettings(learning_rate={"warmup": 3})),
        tiny(training=TrainingSettings(clip=1.0)),
        tiny(attack=AttackSettings(success="tpr")),
        tiny(attack=AttackSettings(fpr=0.2)),
        tiny(attack=AttackSettings(confidence=0.9)),
        tiny(attack=AttackSettings(calibration="none")),
        tiny(attack=AttackSettings(limit=0.8)),
        tiny(attack=AttackSettings(lags=(0, 5))),
        varied(repeats=2),
    ]
    prints = {other.fingerprint for other in others}
    assert len(prints) == len(others)
    assert study.fingerprint not in prints
    assert study.fingerprint == tiny().fingerprint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"plan": dataclasses.replace(TINY, trials=40)}, "needs 960 canaries and controls"),
        ({"data": DataSettings(examples=5000)}, "not between 1 and the 898"),
        ({"data": DataSettings(name="mnist")}, "read from files"),
        ({"model": ModelSettings(name="mlp1", options={"depth": 3})}, "no option depth"),
        ({"training": TrainingSettings(options={"lr": -1})}, "lr=-1 is not finite"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(changes, words, tmp_path):
    with pytest.raises((PlanError, InvalidInput), match=words):
        run_forgetting(tiny(**changes), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DataSettings(name="imagenet"), "data.name='imagenet'"),
        (lambda: CanarySettings(kind="loud"), "canaries.kind='loud'"),
        (lambda: ModelSettings(name="gpt"), "model.name='gpt'"),
        (lambda: AttackSettings(success="luck"), "attack.success='luck'"),
        (lambda: AttackSettings(limit=0.5), "attack.limit=0.5 is not above chance"),
        (
            lambda: AttackSettings(limit=0.95),
            "attack.limit=0.95 could not fail: the limit of 0.95 is not under 0.909, the maximum",
        ),
        (lambda: AttackSettings(lags=(-1,)), "attack.lags"),
        (lambda: TrainingSettings(learning_rate={"speed": 1}), "unknown field"),
        (lambda: tiny(attack=AttackSettings(lags=(99,))), "beyond watch_steps=10"),
        (lambda: varied(label="as planned"), "'as planned' stands for two"),
        (
            lambda: tiny(compare=[Variant("other", tiny(data=DataSettings(examples=99)))]),
            "'other' has other data",
        ),
        (
            lambda: tiny(plan=PoisonPlan(canaries=4, step=5, watch_steps=5, trials=1)),
            "needs trials >= 2",
        ),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(PlanError, match=words):
        make()


def test_too_few_canaries_for_the_fpr_are_refused_before_training():
    with pytest.raises(NotEnoughEvidence, match=r"canaries=8 cannot .* it takes at least 10"):
        tiny(plan=dataclasses.replace(TINY, canaries=8))
    assert (
        tiny(
            plan=dataclasses.replace(TINY, canaries=8), attack=AttackSettings(success="auc")
        ).plan.canaries
        == 8
    )


def test_a_diverged_training_says_so(tmp_path):
    study = tiny(model=ModelSettings(name="mlp1"), training=TrainingSettings(options={"lr": 1e6}))
    with pytest.raises(InvalidInput, match="diverged"):
        run_forgetting(study, tmp_path / "run", Execution())
