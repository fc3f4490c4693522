"""The study on real digits: directions, controls, resuming, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.errors import (
    InvalidInput,
    NotEnoughEvidence,
    PlanError,
    RecordError,
    RemnantWarning,
)
from remnant.records import Record
from remnant.studies import Execution, ForgettingStudy, estimate_study, run_study
from remnant.studies.forgetting.attack_curves import Attacks, attacks_of
from remnant.studies.forgetting.attack_scores import RunScores
from remnant.studies.forgetting.measure import measure_forgetting
from remnant.studies.forgetting.recipe import AttackSettings
from remnant.studies.forgetting.run import check_comparable
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
    run_study(study, folder, Execution())
    return Record.open(folder).results()


def test_injected_digits_are_found_and_the_controls_stay_at_chance(tmp_path):
    """Ten repeats lie above one; each model finds its own images among those of all."""
    plan = InjectPlan(
        canaries=16,
        step=100,
        watch_steps=300,
        trials=6,
        batch=64,
        twins="fresh",
        fresh_canaries=True,
    )
    often_plan = dataclasses.replace(plan, repeats=10)
    attack = AttackSettings(lags=(0, 1, 10, 50, 100, 200, 300), success="auc", limit=0.9)
    canaries = CanarySettings(kind="hard")
    often = ForgettingStudy(plan=often_plan, attack=attack, canaries=canaries)
    study = ForgettingStudy(
        plan=plan,
        label="1 repeat",
        compare=(Variant("10 repeats", often),),
        attack=attack,
        canaries=canaries,
    )
    found = results(study, tmp_path / "run")
    curve, unplanted = found["curve"], found["curve_aa"]
    once = np.array(curve["value"])
    often = np.array(found["curve_variant1"]["value"])
    assert often[0] > 0.8, "the attack finds what was just injected"
    assert (often[:4] > once[:4]).all(), "ten repeats lie above one"
    (gap,) = found["compare"]["differences"]
    assert gap["label"] == "10 repeats"
    assert gap["mean_low"] > 0
    assert gap["adjusted_p_value"] == gap["p_value"] < 0.05
    ends = zip(unplanted["low"], unplanted["high"], strict=True)
    assert sum(low <= 0.5 <= high for low, high in ends) >= 6, "unplanted twins stay at chance"
    assert found["own_set"]["p_value"][0] < 0.05, "models find their own sets"
    assert found["task"]["test_accuracy"] > 0.9
    assert "an attacker with 10 reference models" in found["verdict"]["sentence"]


def test_what_the_kind_teaches_is_no_memory_of_an_example(tmp_path):
    """Mislabelled images raise the score of others that were never planted, against the twin."""
    plan = InjectPlan(canaries=32, step=100, watch_steps=20, trials=6, twins="fresh")
    attack = AttackSettings(lags=(1, 10, 20), success="auc", limit=0.9)
    found = results(ForgettingStudy(plan=plan, attack=attack), tmp_path / "run")
    assert found["curve_kind"]["low"][0] > 0.6, "never-planted ones look planted beside the twin"
    assert found["curve_twin"]["value"][0] > found["curve"]["value"][0] + 0.1
    assert found["curve"]["value"][0] < 0.7


def test_poison_is_found(tmp_path):
    plan = PoisonPlan(
        canaries=32, step=140, repeats=4, watch_steps=200, trials=6, batch=64, twins="fresh"
    )
    study = ForgettingStudy(
        plan=plan, attack=AttackSettings(success="auc", limit=0.9, lags=(0, 50, 200))
    )
    found = results(study, tmp_path / "run")
    assert found["curve"]["low"][0] > 0.6
    unplanted = found["curve_aa"]
    ends = zip(unplanted["low"], unplanted["high"], strict=True)
    assert sum(low <= 0.5 <= high for low, high in ends) >= 2


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
    for name, study in (("both", both), ("once", once), ("often", often)):
        results(study, tmp_path / name)
    together = Record.open(tmp_path / "both")
    for run, alone in (("primary", "once"), ("variant1", "often")):
        for array in ("signals", "test_accuracy"):
            expected = Record.open(tmp_path / alone).array(f"primary.{array}")
            np.testing.assert_allclose(together.array(f"{run}.{array}"), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["mislabelled", "odd", "hard", "medium", "easy"])
def test_every_kind_of_canary_runs(kind, tmp_path):
    plan = dataclasses.replace(TINY, controls=4, canaries=12)
    found = results(
        tiny(plan=plan, canaries=CanarySettings(kind=kind, judge_steps=20)), tmp_path / "r"
    )
    assert 0 < found["curve"]["value"][0] < 1
    verdict, low = found["verdict"], found["curve"]["low"][-1]
    assert (verdict["outcome"] == "FAIL") == (low > verdict["limit"])
    assert verdict["outcome"] != "PASS", "two trials of twelve canaries show too little"


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "run"
    run_study(tiny(), folder, Execution())
    return folder


@pytest.mark.parametrize("signal", ["log-odds", "loss"])
@pytest.mark.parametrize("calibration", ["references", "checkpoint", "none"])
def test_calibrations_are_what_they_say(calibration, signal, tiny_run):
    """Planted and never-planted examples are scored in the planted model, by hand here."""
    record = Record.open(tiny_run)
    attack = AttackSettings(calibration=calibration, signal=signal)
    found = attacks_of(record, "primary", tiny(attack=attack)).inside()
    signals = record.array("primary.signals")
    values = signals[:, :, 1] if signal == "log-odds" else -signals[:, :, 0]
    planted = values[:, TINY.members_of("planted")[1]]
    others = values[1:, [TINY.members_of(arm)[0] for arm in ("twin", "aa")]]
    scores = (
        planted[1:]
        - {
            "references": others.mean(axis=1),
            "checkpoint": planted[:1],
            "none": 0.0,
        }[calibration]
    )
    own = slice(16, 32)
    np.testing.assert_allclose(found.seen[:, 1], scores[:, own], atol=1e-6)
    unseen = np.delete(scores, np.arange(16, 32), axis=1)
    np.testing.assert_allclose(found.unseen[:, 1], unseen, atol=1e-6)
    assert found.references == (2 if calibration == "references" else 0)


@pytest.mark.parametrize("calibration", ["references", "checkpoint", "none"])
def test_the_comparison_of_the_paper_is_with_the_trials_own_twin(calibration, tiny_run):
    record = Record.open(tiny_run)
    attack = AttackSettings(against="twin", calibration=calibration)
    study = tiny(attack=attack)
    odds = record.array("primary.signals")[:, :, 1]
    scores = RunScores.of(TINY, record.array("primary.signals"), "log-odds", np.empty((0, 2), int))
    seen, unseen = scores.against_twin(calibration)
    own = slice(16, 32)
    planted, twin, other = (
        odds[:, TINY.members_of(arm)[trial], own]
        for arm, trial in (("planted", 1), ("twin", 1), ("twin", 0))
    )
    compared = {"references": other[1:], "checkpoint": planted[:1], "none": 0.0}[calibration]
    np.testing.assert_allclose(seen[:, 1], planted[1:] - compared, atol=1e-6)
    np.testing.assert_allclose(unseen[:, 1], twin[1:] - compared, atol=1e-6)
    curve = attacks_of(record, "primary", study).curve()
    if calibration == "checkpoint":
        assert curve.value[0] > 10 / 11, "lag 0 holds by construction"


def test_near_copies_of_a_trials_canaries_are_not_taken_for_never_planted(tiny_run):
    record = Record.open(tiny_run)
    signals = record.array("primary.signals")
    copies = np.array([[0, 40], [40, 0], [17, 18], [18, 17]])  # 16 canaries, 8 controls a trial
    scores = RunScores.of(TINY, signals, "log-odds", copies)
    found = scores.instance("none")
    assert 40 not in found.groups[1][0]
    assert 0 not in found.groups[0][0], "its near-copy is left out too, so both sides are alike"
    assert {0, 40} <= set(found.groups[1][1]), "in the other trial's model both say something"
    clusters = scores.clusters(np.array([0, 1, 17, 18, 40]))
    assert clusters[2] == clusters[3]
    assert clusters[0] == clusters[4]
    assert np.unique(clusters).size == 3


def test_too_many_near_copies_are_refused_before_training():
    study = tiny(attack=AttackSettings(success="auc"))
    own, other = range(16), range(16, 32)
    copies = np.array([pair for a, b in zip(own, other, strict=True) for pair in ((a, b), (b, a))])
    with pytest.raises(NotEnoughEvidence, match="all canaries of a trial have near-copies"):
        check_comparable(study, copies)
    precise = tiny(plan=dataclasses.replace(TINY, canaries=12, controls=0))
    few = np.array([[0, 12], [12, 0], [1, 13], [13, 1], [2, 14], [14, 2]])
    with pytest.raises(NotEnoughEvidence, match=r"never-planted examples=9 cannot .* at least 10"):
        check_comparable(precise, few)
    check_comparable(tiny(attack=AttackSettings(against="twin")), copies)


def test_an_attacker_that_cannot_be_measured_passes_nothing(tiny_run):
    """Eight shared controls place no threshold, so no attacker inside the model is measured."""
    plan = dataclasses.replace(TINY, fresh_canaries=False)
    study = tiny(plan=plan, attack=AttackSettings(against="twin"))
    signals = np.random.default_rng(0).normal(size=(12, plan.members, 3, 24))
    scores = RunScores.of(plan, signals, "log-odds", np.empty((0, 2), int))
    others = Attacks(study, scores, None).others()
    assert others.curves == {}
    assert set(others.lost) == {"references", "checkpoint", "none"}
    alone = tiny(plan=dataclasses.replace(plan, controls=0), attack=study.attack)
    bare = RunScores.of(alone.plan, signals[..., :16], "log-odds", np.empty((0, 2), int))
    found = Attacks(alone, bare, None).others()
    assert found.lost == {}
    assert {made.reason for made in found.by_calibration.values()} == {
        "there are no canaries that were never planted"
    }


def test_poison_has_the_other_trials_as_references(tmp_path):
    plan = PoisonPlan(canaries=16, step=10, watch_steps=5, trials=3, batch=32, aa=False)
    study = tiny(plan=plan)
    run_study(study, tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    odds = record.array("primary.signals")[1:, :, 1]
    found = attacks_of(record, "primary", study).inside()
    expected = odds[:, 0] - (odds[:, 3] + odds[:, 5]) / 2
    np.testing.assert_allclose(found.scores[:, 0], expected, atol=1e-6)
    assert record.results()["attack"]["references"] == 2
    absent = record.results()["curve_by_checkpoint"]["absent"]
    assert absent == "POISON has no checkpoint before planting"
    assert record.results()["curve_aa"]["n_seen"] == 16, "unplanted twins need no A/A twins"


@pytest.mark.parametrize(
    ("spelled", "plan", "calibration", "signal"),
    [
        ("logit", TINY, "checkpoint", "log-odds"),
        ("loss", TINY, "checkpoint", "loss"),
        ("twins", TINY, "references", "log-odds"),
        (
            "logit",
            PoisonPlan(canaries=16, step=5, watch_steps=5, trials=2),
            "references",
            "log-odds",
        ),
        ("loss", PoisonPlan(canaries=16, step=5, watch_steps=5, trials=2), "references", "loss"),
    ],
)
def test_spellings_of_version_0_2_are_read(spelled, plan, calibration, signal):
    with pytest.warns(RemnantWarning, match="is a name of version 0.2 and is read as"):
        attack = tiny(plan=plan, attack=AttackSettings(calibration=spelled)).attack
    assert (attack.against, attack.calibration, attack.signal) == (
        "never-planted",
        calibration,
        signal,
    )


@pytest.mark.parametrize(
    ("changes", "attack", "calibration"),
    [
        ({}, {}, "checkpoint"),
        ({"trials": 3}, {}, "references"),
        ({"trials": 8}, {}, "references"),
        ({"trials": 8}, {"against": "twin"}, "checkpoint"),
    ],
)
def test_the_calibration_follows_from_the_plan(changes, attack, calibration):
    plan = dataclasses.replace(TINY, **changes)
    study = tiny(plan=plan, attack=AttackSettings(**attack))
    assert study.attack.calibration == calibration
    named = tiny(plan=plan, attack=AttackSettings(calibration=calibration, **attack))
    assert study.fingerprint == named.fingerprint, "the name is in the fingerprint"


def test_a_run_that_an_earlier_version_began_is_refused_with_what_to_do(tmp_path, tiny_run):
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    with Record.open(folder, write=True) as record:
        begun = {**record.attempts()[0], "versions": {"remnant": "0.2.0"}}
        begun.pop("started")
        record._write(
            "UPDATE attempts SET provenance = ? WHERE attempt = ?",
            json.dumps(begun),
            1,
            row=("attempts", 1),
        )
    other = tiny(attack=AttackSettings(against="twin"))
    with pytest.raises(RecordError, match="another plan") as fault:
        run_study(other, folder, Execution())
    assert "Version 0.2.0 began that run" in fault.value.hint


def test_the_estimate_writes_nothing_and_counts_right(tmp_path, monkeypatch, a_minute_a_step):
    monkeypatch.chdir(tmp_path)
    found = estimate_study(varied(repeats=5), Execution())
    assert found["members"] == 6 + 6, "a variant has its own twins and A/A twins"
    assert found["steps"] == 10 + 5 + 10, "one population, as long as its longest run"
    assert found["memory_mib"] > 0
    assert found["minutes"] == found["steps"]
    assert list(tmp_path.iterdir()) == []


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
        run_study(tiny(**changes), tmp_path / "run", Execution())
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
            r"never planted: give each trial its own canaries .* or set plan.controls",
        ),
        (
            lambda: tiny(
                plan=dataclasses.replace(TINY, trials=1),
                attack=AttackSettings(calibration="references"),
            ),
            "calibration='references' .* trials >= 2; with one trial use 'checkpoint' or 'none'",
        ),
        (
            lambda: tiny(plan=dataclasses.replace(TINY, fresh_canaries=False, controls=0)),
            "never planted: give each trial its own canaries",
        ),
        (
            lambda: tiny(
                plan=PoisonPlan(canaries=16, step=5, watch_steps=5),
                attack=AttackSettings(calibration="checkpoint"),
            ),
            "POISON plants from the first step: use 'references' or 'none'",
        ),
        (lambda: AttackSettings(against="nobody"), "attack.against='nobody'"),
        (lambda: AttackSettings(signal="noise"), "attack.signal='noise'"),
        (
            lambda: AttackSettings(calibration="logit", signal="loss"),
            "'logit' of version 0.2 reads log-odds, and attack.signal='loss': name one of",
        ),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(PlanError, match=words):
        make()


def test_too_few_canaries_for_the_fpr_are_refused_before_training():
    few = dataclasses.replace(TINY, canaries=8)
    twin = AttackSettings(against="twin")
    with pytest.raises(NotEnoughEvidence, match=r"canaries=8 cannot .* it takes at least 10"):
        tiny(plan=few, attack=twin)
    assert tiny(plan=few, attack=dataclasses.replace(twin, success="auc")).plan.canaries == 8
    alone = dataclasses.replace(TINY, controls=9, trials=1)
    with pytest.raises(NotEnoughEvidence, match=r"never-planted examples=9 cannot .* at least 10"):
        tiny(plan=alone)


def test_a_diverged_training_says_so(tmp_path):
    study = tiny(model=ModelSettings(name="mlp1"), training=TrainingSettings(options={"lr": 1e6}))
    with pytest.raises(InvalidInput, match="diverged"):
        run_study(study, tmp_path / "run", Execution())
