"""The study on a real text: directions, calibrations, controls, resuming, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.data import Corpus, corpus_fingerprint, load_corpus
from remnant.errors import InvalidInput, NotEnoughEvidence, PlanError, RecordError
from remnant.measures import ExposureCurve, Verdict, exposure_curve
from remnant.population import Population
from remnant.probes import window_signals
from remnant.records import Record
from remnant.studies import (
    Execution,
    TextForgettingStudy,
    estimate_study,
    run_study,
    study_from,
)
from remnant.studies.forgetting.exposure_curves import Attacked, calibrated_bits
from remnant.studies.forgetting.sequence_measure import measure_text_forgetting
from remnant.studies.forgetting.sequence_training import TrialProbes
from remnant.studies.forgetting.text_recipe import TextAttackSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import SectionedStudy
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    TextCanarySettings,
    TextSettings,
)
from remnant.studies.shared.variants import Variant
from remnant.tasks.language_models import language_model_maker
from remnant.tasks.text import TASK, plant_tokens

PLAN = InjectPlan(
    canaries=12,
    copies=(1, 6),
    step=20,
    watch_steps=30,
    trials=3,
    batch=48,
    fresh_canaries=True,
)
STUDY = TextForgettingStudy(
    plan=PLAN,
    text=TextSettings(characters=8_000, window=12),
    canaries=TextCanarySettings(references=60),
    model=LanguageModelSettings(name="gru", options={"units": 24, "layers": 1}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
    attack=TextAttackSettings(lags=(0, 10, 30)),
)


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planned(**changes):
    return made(plan=dataclasses.replace(PLAN, **changes))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "text"
    run_study(STUDY, folder, Execution())
    return folder


def results(study, folder):
    run_study(study, folder, Execution())
    return Record.open(folder).results()


def test_planted_sequences_are_exposed_and_the_controls_stay_at_chance(run):
    found = Record.open(run).results()
    curve, aa = found["curve_exposure"], found["curve_exposure_aa"]
    assert max(curve["low"]) > curve["chance"], "what was planted is exposed"
    assert curve["ceiling"] == math.log2(61)
    assert (curve["trials"], curve["n_canaries"], curve["n_references"]) == (3, 12, 60)
    assert aa["lags"] == [0, 10, 30], "it is compared with other trials' twins, also at lag 0"
    inside = [low <= aa["chance"] <= high for low, high in zip(aa["low"], aa["high"], strict=True)]
    assert all(inside), aa
    once, often = found["by_uses"]["series"]
    assert (once["label"], often["label"]) == ("seen once", "seen 6 times")
    assert (once["n_canaries"], often["n_canaries"]) == (6, 6)
    assert max(often["value"]) > max(once["value"]) + 0.5, "more copies expose more"
    for name in ("curve", "curve_tpr", "curve_auc", "curve_accuracy", "curve_aa"):
        assert 0 <= found[name]["value"][-1] <= 1
    assert max(found["curve_auc"]["value"]) > 0.6
    assert found["curve"]["success"] == "precision"
    traditional = found["traditional"]
    assert traditional["seen_loss"][1] < traditional["unseen_loss"][1]
    assert found["task"]["validation_bits"] < 6
    verdict = found["verdict"]
    assert (verdict["outcome"] == "FAIL") == (curve["low"][-1] > verdict["limit"])
    assert (verdict["outcome"] == "PASS") <= (curve["high"][-1] <= verdict["limit"])
    assert found["compare"] == {"absent": "the recipe compares nothing"}


def test_the_ledger_says_who_saw_what(run):
    ledger = Record.open(run).ledger()
    assert set(ledger["member"].tolist()) == {0, 3, 6}
    assert set(ledger["step"].tolist()) == {20}
    assert ledger["uses"].sum() == 3 * (6 * 1 + 6 * 6)


def test_results_can_be_measured_again_from_the_stored_costs(run):
    before = Record.open(run).results()
    with Record.open(run, write=True) as record:
        measure_text_forgetting(record, STUDY, examples=600, tokens=12)
    assert Record.open(run).results() == before


def by(calibration, **changes):
    return made(attack=dataclasses.replace(STUDY.attack, calibration=calibration), **changes)


def test_calibrations_are_what_they_say(run):
    record = Record.open(run)
    bits = record.array("primary.signals")[:, :, 0]
    assert bits.shape == (3, 9, 72)
    canaries, references = calibrated_bits(record, "primary", by("influence"), "planted")
    np.testing.assert_allclose(canaries[:, 1], bits[:, 3, :12] - bits[:, 4, :12])
    np.testing.assert_allclose(references[:, 2], bits[:, 6, 12:] - bits[:, 7, 12:])
    canaries, _ = calibrated_bits(record, "primary", by("none"), "aa")
    np.testing.assert_array_equal(canaries[:, 0], bits[:, 2, :12])
    twins = record.array("primary.twins_bits")
    assert twins.shape == (3, 3, 72)
    assert STUDY.attack.calibration == "twins"
    canaries, references = calibrated_bits(record, "primary", STUDY, "planted")
    np.testing.assert_allclose(canaries[:, 1], bits[:, 3, :12] - twins[:, 1, :12])
    np.testing.assert_allclose(references[:, 2], bits[:, 6, 12:] - twins[:, 2, 12:])


def test_other_twins_are_the_unplanted_members_of_the_other_trials():
    corpus = load_corpus(STUDY.text.name, characters=STUDY.text.characters)
    planted = plant_tokens(PLAN, STUDY.canaries, STUDY.text, corpus)
    models = Population(language_model_maker(STUDY, planted), seeds=list(range(9)))
    found = TrialProbes(TASK, PLAN, planted).other_twins(models)
    assert found.shape == (3, 72)
    for trial, others in ((0, [4, 5, 7, 8]), (1, [1, 2, 7, 8]), (2, [1, 2, 4, 5])):
        asked = window_signals(
            models, planted.probed[trial], tokens=12, vocabulary_size=planted.vocabulary.size
        )
        np.testing.assert_allclose(found[trial], asked[others, 0].mean(0), rtol=1e-6)
    assert STUDY.other_twins == 4
    alone = planned(aa=False)
    pairs = Population(language_model_maker(STUDY, planted), seeds=list(range(6)))
    found = TrialProbes(TASK, alone.plan, planted).other_twins(pairs)
    asked = window_signals(
        pairs, planted.probed[1], tokens=12, vocabulary_size=planted.vocabulary.size
    )
    np.testing.assert_allclose(found[1], asked[[1, 5], 0].mean(0), rtol=1e-6)


def test_the_calibration_is_that_of_an_attacker_unless_influence_is_asked_for():
    assert STUDY.attack.calibration == "twins"
    old = by("twin")
    assert old.attack.calibration == "influence"
    assert old == by("influence")
    assert old.fingerprint == by("influence").fingerprint != STUDY.fingerprint
    with pytest.raises(PlanError, match="needs trials >= 2; with one trial use 'none'"):
        planned(trials=1)


def test_exposure_stands_beside_that_of_every_other_calibration(run):
    found = Record.open(run).results()
    table, curve = found["calibrations"], found["curve_exposure"]
    assert (table["own"], table["lags"]) == ("twins", [0, 30])
    assert [(row["name"], row["attacker"]) for row in table["rows"]] == [
        *(("twins", True), ("none", True), ("influence", False))
    ]
    own = table["rows"][0]
    assert own["start"]["value"] == curve["value"][0]
    assert own["end"] == {name: curve[name][-1] for name in ("value", "low", "high", "median")}
    assert "less the mean of 4 models trained without these sequences" in own["said"]
    assert "less the mean of 4 models" in found["scope"]["tested"][1]


def exposures(**gains):
    """Attacked curves whose canaries are cheaper by so many deviations at each of three lags."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(3, 8, 30)), rng.normal(size=(3, 8, 200))
    curves = {
        name: exposure_curve(
            canary_losses=normal[0] - np.array(gain)[:, None, None],
            reference_losses=normal[1],
            lags=[0, 1, 2],
            rng=np.random.default_rng(1),
        )
        for name, gain in gains.items()
    }
    name, own = curves.popitem()
    return Attacked(own=own, others=curves, study=by(name))


def test_a_pass_names_the_attacker_and_holds_for_all_that_were_computed():
    passed = exposures(none=[0, 1, 0], influence=[0, 3, 2], twins=[0, 3, 0])
    verdict = passed.verdict()
    assert verdict.outcome == "PASS", "influence is no attacker and has no say"
    assert "to an attacker with 4 models trained without these sequences is" in verdict.sentence
    assert "The same holds for an attacker with the model alone (at most 1." in verdict.claim
    assert passed.stored().safe_after.lag == 2
    doubted = exposures(none=[0, 3, 2], twins=[0, 3, 0])
    verdict = doubted.verdict()
    assert verdict.outcome == "INCONCLUSIVE"
    assert "not shown to be within the limit of 3 for an attacker with the model" in verdict.claim
    assert doubted.stored().safe_after.lag is None
    assert "for another attacker" in doubted.stored().safe_after.reason


@pytest.mark.parametrize(("gain", "outcome"), [([0, 3, 0], "PASS"), ([3, 3, 3], "FAIL")])
def test_influence_decides_no_gate(gain, outcome):
    attacker = exposures(influence=[0, 1, 0], twins=gain).verdict()
    assert attacker.outcome == outcome
    measured = exposures(none=[0, 1, 0], twins=[0, 1, 0], influence=gain)
    assert measured.own.verdict(STUDY.attack.limit).outcome == outcome
    verdict = measured.verdict()
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.sentence.endswith(
        " But no attacker has the trial's own twin: what was measured is the influence of "
        "planting. Set attack.calibration to twins, references or none."
    )
    assert verdict.claim == (
        "No claim: no attacker has the trial's own twin: what was measured is the influence of "
        "planting."
    )
    assert measured.stored().safe_after.lag is None
    assert measured.stored().safe_after.reason.startswith("No attacker has the trial's own twin")


@pytest.mark.parametrize("outcome", ["PASS", "FAIL"])
def test_a_study_by_influence_is_never_decided(tmp_path, monkeypatch, outcome):
    decided = Verdict(outcome, "So it is.", "Some bits.", 3.0, 30.0)
    monkeypatch.setattr(ExposureCurve, "verdict", lambda *_, **__: decided)
    verdict = results(by("influence"), tmp_path / "influence")["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "Set attack.calibration to twins" in verdict["sentence"]
    assert results(STUDY, tmp_path / "twins")["verdict"]["outcome"] == outcome


def begun_by_0_2(study, finished, folder, *, fingerprint):
    """A run that 0.2 began: its groups are finished, nothing is measured, no twins are stored."""
    corpus = load_corpus(STUDY.text.name, characters=STUDY.text.characters)
    with Record.create(
        folder,
        question=study.QUESTION,
        plan=study.to_dict(),
        plan_fingerprint=fingerprint,
        data_fingerprint=corpus_fingerprint(corpus),
        execution=Execution().facts(),
        provenance={"versions": {"remnant": "0.2.0"}},
    ) as record:
        for name in ("signals", "validation_bits"):
            record.put_array(f"primary.{name}", Record.open(finished).array(f"primary.{name}"))


def test_a_run_that_0_2_began_is_refused(run, tmp_path):
    study = by("none")
    of_0_2 = SectionedStudy.fingerprint.fget(study)
    begun_by_0_2(study, run, tmp_path / "old", fingerprint=of_0_2)
    with pytest.raises(RecordError, match="another plan") as refused:
        run_study(study, tmp_path / "old", Execution())
    assert "Version 0.2.0 began that run" in refused.value.hint
    assert "choose another --out folder, or finish it with 0.2.0" in refused.value.hint


def test_costs_without_other_trials_twins_are_not_judged(run, tmp_path):
    study = by("none")
    begun_by_0_2(study, run, tmp_path / "old", fingerprint=study.fingerprint)
    with pytest.raises(RecordError, match=r"lacks the array primary\.twins_bits") as refused:
        run_study(study, tmp_path / "old", Execution())
    assert "new --out folder" in refused.value.hint
    assert "verdict" not in Record.open(tmp_path / "old").results()


def test_poison_is_calibrated_by_reference_models(tmp_path):
    study = made(
        plan=PoisonPlan(
            canaries=12, step=40, watch_steps=10, epoch_steps=10, trials=2, batch=32, repeats=4
        ),
        attack=TextAttackSettings(
            calibration="references", reference_models=3, lags=(0, 10), limit=2.5
        ),
    )
    found = results(study, tmp_path / "run")
    record = Record.open(tmp_path / "run")
    others = record.array("primary.reference_bits")
    assert others.shape == (2, 3, 2, 72)
    bits = record.array("primary.signals")[:, :, 0]
    canaries, _ = calibrated_bits(record, "primary", study, "planted")
    np.testing.assert_allclose(canaries[:, 1], bits[:, 3, :12] - others[:, :, 1, :12].mean(axis=1))
    names = [row["name"] for row in found["calibrations"]["rows"]]
    assert names == ["twins", "references", "none", "influence"]
    curve, aa = found["curve_exposure"], found["curve_exposure_aa"]
    assert curve["value"][0] > curve["chance"] + 1
    assert aa["lags"] == [0, 10]
    assert aa["low"][0] <= aa["chance"] <= aa["high"][0]
    assert found["by_uses"] == {"absent": "all canaries were planted equally often"}
    assert "3 reference models, each trained on a random 80%" in found["scope"]["tested"][1]
    assert study.reference_plan().steps == 50


def test_reference_models_have_had_as_many_clean_updates():
    study = made(
        plan=dataclasses.replace(PLAN, repeats=5),
        attack=TextAttackSettings(calibration="references"),
    )
    assert study.reference_plan().steps == 20 + 30
    assert STUDY.reference_plan() is None


def test_variants_are_drawn_beside_the_study(tmp_path):
    later = planned(step=35)
    study = made(label="at 20", title="When", compare=(Variant("at 35", later),))
    found = results(study, tmp_path / "run")
    compare = found["compare"]
    assert [one["label"] for one in compare["series"]] == ["at 20", "at 35"]
    assert compare["title"] == "When"
    assert compare["success"] == "exposure"
    assert found["curve_variant1"]["label"] == "at 35"
    assert study_from(json.loads(json.dumps(study.to_dict()))) == study
    assert estimate_study(study, Execution())["members"] == 9 + 9
    influence = by("influence", compare=(Variant("at 35", by("influence", plan=later.plan)),))
    assert estimate_study(influence, Execution())["members"] == 9 + 6, "no use for A/A twins"


def test_without_aa_the_controls_are_said_to_be_absent(tmp_path):
    plan = dataclasses.replace(PLAN, aa=False, trials=1, copies=2)
    found = results(by("none", plan=plan), tmp_path / "run")
    for name in ("curve_aa", "curve_exposure_aa"):
        assert found[name] == {"absent": "the plan has no A/A twins"}
    assert "there was no negative control" in " ".join(found["scope"]["not_tested"])
    assert [row["name"] for row in found["calibrations"]["rows"]] == ["none", "influence"]
    assert found["calibrations"]["own"] == "none"


def test_no_canary_is_in_the_record(run):
    corpus = load_corpus(STUDY.text.name, characters=STUDY.text.characters)
    planted = plant_tokens(PLAN, STUDY.canaries, STUDY.text, corpus)
    record = Record.open(run)
    words = json.dumps(record.results()) + json.dumps(record.summary())
    for row in planted.store[planted.examples :]:
        assert planted.vocabulary.decode(row[1:]) not in words
    kept = {path.name for path in run.iterdir()}
    assert kept <= {"arrays", "record.lock", "record.sqlite"}


@pytest.mark.parametrize("tokens", [None, 5])
def test_a_canary_stands_at_the_end_of_its_window(tokens):
    corpus = Corpus("abcdefghij " * 90, "jihgfedcba " * 9)
    plan = dataclasses.replace(PLAN, canaries=4, trials=2)
    settings = TextCanarySettings(tokens=tokens, references=30, commonest=4)
    planted = plant_tokens(plan, settings, STUDY.text, corpus)
    assert planted.probed.shape == (2, 34, 13)
    assert planted.tokens == (tokens or 12)
    np.testing.assert_array_equal(
        planted.store[planted.examples :], planted.probed[:, :4].reshape(8, 13)
    )
    own = planted.probed[:, :, -planted.tokens :].reshape(-1, planted.tokens)
    assert len({tuple(row) for row in own.tolist()}) == len(own), "no two are alike"
    assert len(np.unique(own)) == 4
    starts = {tuple(row) for row in planted.store[: planted.examples, : -planted.tokens].tolist()}
    assert {tuple(row) for row in planted.probed[0, :, : -planted.tokens].tolist()} <= starts


def test_shared_canaries_have_references_of_each_trials_own():
    corpus = Corpus("abcdefghij " * 90, "jihgfedcba " * 9)
    plan = dataclasses.replace(PLAN, fresh_canaries=False)
    planted = plant_tokens(plan, STUDY.canaries, STUDY.text, corpus)
    np.testing.assert_array_equal(planted.probed[0, :12], planted.probed[2, :12])
    assert len(planted.store) == planted.examples + 12
    assert not np.array_equal(planted.probed[0, 12:], planted.probed[1, 12:])


def curve_of(gains):
    rng = np.random.default_rng(0)
    return exposure_curve(
        canary_losses=rng.normal(size=(3, 8, 30)) - np.array(gains)[:, None, None],
        reference_losses=rng.normal(size=(3, 8, 200)),
        lags=[0, 1, 2],
        rng=rng,
    )


def test_a_pass_needs_canaries_that_were_exposed_at_some_lag():
    assert curve_of([0, 3, 0]).verdict(3.0).outcome == "PASS"
    found = curve_of([0, 0, 0]).verdict(3.0)
    assert found.outcome == "INCONCLUSIVE"
    assert "did not find the canaries at any lag" in found.sentence
    assert curve_of([3, 3, 3]).verdict(3.0).outcome == "FAIL"


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("plan", "seed", 1),
        ("text", "window", 13),
        ("text", "deduplicate", True),
        ("canaries", "tokens", 6),
        ("canaries", "references", 61),
        ("canaries", "commonest", 20),
        ("model", "name", "lstm"),
        ("training", "clip", 1.0),
        ("attack", "calibration", "none"),
        ("attack", "reference_models", 5),
        ("attack", "fraction", 0.7),
        ("attack", "fpr", 0.2),
        ("attack", "confidence", 0.9),
        ("attack", "limit", 2.5),
        ("attack", "lags", (0, 5)),
    ],
)
def test_the_fingerprint_moves_with_every_field(part, field, value):
    changed = made(**{part: dataclasses.replace(getattr(STUDY, part), **{field: value})})
    assert changed.fingerprint != STUDY.fingerprint
    assert study_from(json.loads(json.dumps(changed.to_dict()))) == changed


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TextSettings(deduplicate=1), "text.deduplicate=1"),
        (lambda: TextCanarySettings(tokens=0), "canaries.tokens=0"),
        (lambda: TextCanarySettings(references=0, commonest=1), "references=0 .*commonest=1"),
        (lambda: TextAttackSettings(calibration="luck"), "attack.calibration='luck'"),
        (lambda: TextAttackSettings(fraction=1.0), "attack.fraction=1.0"),
        (lambda: TextAttackSettings(limit=-1), "attack.limit=-1"),
        (lambda: TextAttackSettings(lags=(-1,)), "attack.lags"),
        (lambda: made(attack=TextAttackSettings(limit=1.2)), "limit=1.2 is not between 1.3"),
        (lambda: made(attack=TextAttackSettings(limit=6.0)), "5.93, the most that 60 references"),
        (lambda: planned(controls=3), "plan.controls=3"),
        (lambda: made(attack=TextAttackSettings(lags=(99,))), "beyond watch_steps=30"),
        (lambda: made(compare=(Variant("as planned", STUDY),)), "stands for two"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(PlanError, match=words):
        make()


def test_too_few_references_for_the_fpr_are_refused():
    with pytest.raises(NotEnoughEvidence, match=r"references=60 cannot .* at least 100"):
        made(attack=TextAttackSettings(fpr=0.01))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"canaries": TextCanarySettings(references=60, tokens=13)}, "do not fit a window"),
        (
            {"canaries": TextCanarySettings(references=60, tokens=2, commonest=2)},
            "and there are 4",
        ),
        ({"text": TextSettings(name="a.txt", window=12)}, "read from a file"),
        ({"model": LanguageModelSettings(options={"depth": 3})}, "no option depth"),
        ({"model": LanguageModelSettings(name="gpt", options={"context": 4})}, "4"),
        ({"training": TrainingSettings(options={"lr": -1})}, "lr=-1 is not finite"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(changes, words, tmp_path):
    with pytest.raises((PlanError, InvalidInput, TypeError), match=words):
        run_study(made(**changes), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_a_diverged_training_says_so(tmp_path):
    study = made(training=TrainingSettings(optimizer="sgd", options={"lr": 1e38}))
    with pytest.raises(InvalidInput, match="diverged"):
        run_study(study, tmp_path / "run", Execution())


def test_the_estimate_writes_nothing_and_counts_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = made(attack=TextAttackSettings(calibration="references", reference_models=2))
    found = estimate_study(study, Execution())
    assert found["members"] == 9 + 2
    assert found["steps"] == 51 + 50
    assert found["memory_mib"] > 0
    assert list(tmp_path.iterdir()) == []


def test_passages_are_held_out_text_and_leave_the_validation_windows():
    corpus = load_corpus("standard-library", folder=None, characters=60_000, seed=0)
    text = TextSettings(characters=60_000, window=12)
    random = plant_tokens(PLAN, STUDY.canaries, text, corpus)
    settings = dataclasses.replace(STUDY.canaries, kind="text")
    found = plant_tokens(PLAN, settings, text, corpus)
    assert found.probed.shape == random.probed.shape
    known = {row.tobytes() for row in random.validation}
    drawn = [row.tobytes() for trial in found.probed for row in trial]
    assert all(row in known for row in drawn), "every passage is a window of held-out text"
    used = len(drawn)
    assert len(found.validation) == len(random.validation) - used
    short = load_corpus("standard-library", folder=None, characters=8_000, seed=0)
    with pytest.raises(PlanError, match="needs 216 passages, and the held-out text has 66 windows"):
        plant_tokens(PLAN, settings, STUDY.text, short)
    with pytest.raises(PlanError, match=r"canaries\.kind=.prose."):
        TextCanarySettings(kind="prose")


def test_a_study_of_passages_says_what_it_planted(tmp_path):
    study = made(
        text=TextSettings(characters=60_000, window=12),
        canaries=TextCanarySettings(references=60, kind="text"),
    )
    scope = results(study, tmp_path / "run")["scope"]
    assert "12 characters of held-out text" in scope["tested"][0]
    assert "no model can predict" in scope["not_tested"][0]


def test_models_that_did_not_learn_their_text_do_not_pass(tmp_path, monkeypatch):
    passing = Verdict("PASS", "Under the limit.", "At most 2 bits.", 3.0, 30.0)
    monkeypatch.setattr(ExposureCurve, "verdict", lambda *_, **__: passing)
    untrained = TrainingSettings(optimizer="adam", options={"lr": 1e-12})
    verdict = results(made(training=untrained), tmp_path / "run")["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "did not learn their task: a validation character costs" in verdict["claim"]
