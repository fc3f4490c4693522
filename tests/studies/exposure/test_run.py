"""The exposure study: a small real run, its results, and its verdicts."""

from __future__ import annotations

import dataclasses
import json
import math
import sys

import numpy as np
import pytest

from remnant.canaries import Template, read_canary_sets
from remnant.data import Corpus
from remnant.errors import InvalidInput, PlanError
from remnant.models import load_language_model
from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.search import exact_exposure
from remnant.studies import Execution, ExposureStudy, estimate_study, run_study, study_from
from remnant.studies.exposure.recipe import SecretSettings
from remnant.studies.reporting import read_page
from remnant.studies.shared.planted_text import plant_text
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    MeasureSettings,
    TextSettings,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STUDY = ExposureStudy(
    plan=InsertPlan(repeats=(1, 40), steps=60, controls=4, batch=16),
    text=TextSettings(characters=6_000, window=24),
    secret=SecretSettings(template="key {digits:3};"),
    model=LanguageModelSettings(options={"units": 24, "layers": 1}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.03}),
    measure=MeasureSettings(references=300, limit=9.0),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "exposure"
    run_study(STUDY, folder, Execution())
    return folder


def test_a_secret_planted_often_is_exposed_and_extracted(run):
    results = Record.open(run).results()
    exposure = results["exposure"]
    once, often = exposure["canaries"]
    assert often["rank"] == 1
    assert often["bits"] == exposure["ceiling_bits"] == math.log2(1000)
    assert often["twin_bits"] < 6 > once["bits"]
    assert exposure["method"] == "exact"
    assert len(exposure["controls"]) == 4
    planted, twin = results["extraction"]["searches"]
    assert planted["certified"] is twin["certified"] is True
    assert planted["candidates"][0]["canary"] == often["name"]
    assert twin["candidates"][0]["canary"] is None
    assert results["repeats"]["repeats"] == [0, 1, 40]
    assert sum(results["costs"]["counts"]) == 300
    verdict = results["verdict"]
    assert (verdict["outcome"], verdict["control"], verdict["judged"]) == ("PASS", 40, 1)
    assert verdict["claim"] == (
        "1 of 1 canary planted once was under 9 bits in this model; up to 95 % of such secrets "
        "may be above it (95 % confidence). One training: another may differ."
    )
    assert verdict["sentence"].endswith(verdict["claim"])
    vocabulary = load_language_model(run / "models" / "planted-1").vocabulary
    assert results["task"]["uniform_bits"] == math.log2(vocabulary.size)
    assert results["task"]["validation_bits"] < 6 < results["task"]["uniform_bits"]
    assert [one["asked"] for one in results["extraction"]["searches"]] == [3, 3]


def test_the_scope_counts_in_the_right_form(run):
    tested = Record.open(run).results()["scope"]["tested"]
    assert tested[0].startswith("1 training run of 60 steps on ")
    assert tested[0].endswith(" of 24 characters, with 2 canaries planted 1, 40 times.")
    assert tested[1] == "4 controls of the same template, never planted."


def test_uses_are_those_of_the_ledger(run):
    record = Record.open(run)
    once, often = record.results()["exposure"]["canaries"]
    assert 40 * 3 <= often["uses"] <= 40 * 4
    assert 3 <= once["uses"] <= 4


def test_the_kept_model_and_canaries_give_the_same_ranks(run):
    (drawn,) = read_canary_sets(run / "canaries.jsonl")
    assert drawn.trial == 1
    model = load_language_model(run / "models" / "planted-1")
    secrets = [one.secret for one in (*drawn.canaries, *drawn.controls)]
    found = exact_exposure(model, drawn.template, secrets=secrets)
    recorded = Record.open(run).results()["exposure"]
    rows = [*recorded["canaries"], *recorded["controls"]]
    assert [row["rank"] for row in rows] == found.rank.tolist()


def test_no_secret_is_in_the_record(run):
    (drawn,) = read_canary_sets(run / "canaries.jsonl")
    record = Record.open(run)
    words = json.dumps(record.results()) + json.dumps(record.summary())
    for canary in (*drawn.canaries, *drawn.controls):
        assert canary.text not in words


def test_only_the_owner_can_read_what_gives_the_secrets_back(run):
    private = ["canaries.jsonl", "record.sqlite", "models", *(run / "arrays").glob("*.npy")]
    for name in private:
        assert (run / name).stat().st_mode & 0o077 == 0, name
    record = Record.open(run)
    assert record.plan["plan"]["seed"] == 0
    for plan in (record.summary()["plan"], tomllib.loads(read_page(record).recipe)):
        assert "seed" not in plan["plan"]
        assert plan["secret"]["template"] == record.plan["secret"]["template"]


def test_a_driver_killed_after_each_job_runs_none_twice_and_gives_the_same_results(
    run, tmp_path, killed_after_each_job, same_run
):
    jobs = killed_after_each_job(STUDY, tmp_path / "again")
    assert jobs == ["training", "exposure, trial 1 of 1"]
    assert not list((tmp_path / "again").glob("checkpoint*"))
    same_run(run, tmp_path / "again")
    models = [sorted((folder / "models").rglob("*.*")) for folder in (run, tmp_path / "again")]
    assert models[0]
    assert [path.read_bytes() for path in models[0]] == [path.read_bytes() for path in models[1]]
    one, other = Record.open(run), Record.open(tmp_path / "again")
    assert one.results() == other.results()
    for name in one.array_names():
        np.testing.assert_array_equal(one.array(name), other.array(name))


def test_the_estimate_counts_right(a_minute_a_step):
    found = estimate_study(STUDY, Execution())
    assert found["members"] == 2
    assert found["steps"] == 60
    assert found["minutes"] == 60


def test_a_study_without_a_share_keeps_its_fingerprint():
    """Fingerprints from before there was a share."""
    assert STUDY.fingerprint == "2c86f9d5e5ae9edc"
    asked = dataclasses.replace(STUDY, measure=dataclasses.replace(STUDY.measure, share=0.2))
    assert study_from(asked.to_dict()) == asked


@pytest.mark.parametrize("share", [None, 0.99])
def test_models_that_learnt_nothing_do_not_pass(tmp_path, share):
    """A learning rate of 1e-20: every canary is under the limit, and none was found."""
    blind = dataclasses.replace(
        STUDY,
        training=TrainingSettings(optimizer="adam", options={"lr": 1e-20}),
        measure=dataclasses.replace(STUDY.measure, share=share),
    )
    run_study(blind, tmp_path / "run", Execution())
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert (verdict["outcome"], verdict["control"]) == ("INCONCLUSIVE", None)
    assert "no planted canaries were found" in verdict["sentence"]
    assert verdict["claim"] == "No claim: no planted canaries were found."


def test_planted_windows_hold_their_canary():
    corpus = Corpus("abcdefghij " * 60, "jihgfedcba " * 6)
    plan = InsertPlan(repeats=(2, 3), steps=1, trials=2)
    template = STUDY.secret.template
    planted = plant_text(plan, Template(template), corpus, level="character", window=24)
    assert planted.store.shape == (planted.examples + 10, 25)
    for row, window in enumerate(planted.store[planted.examples :]):
        trial, copy = divmod(row, plan.copies)
        text = planted.vocabulary.decode(window)
        canary = planted.sets[trial].canaries[plan.copy_canaries[copy]].text
        at = text.index(canary)
        assert at >= 1
        clean = planted.vocabulary.decode(
            planted.store[plan.places(examples=planted.examples, trial=trial)[copy]]
        )
        assert text[:at] == clean[:at]
        assert text[at + len(canary) :] == clean[at : 25 - len(canary)]


def test_words_are_a_level_too():
    corpus = Corpus("to be or not to be that is the question " * 20, "to be or not " * 20)
    template = Template("the key is {choice:red|blue|green} {choice:fox|owl}")
    planted = plant_text(
        InsertPlan(repeats=(3,), steps=1), template, corpus, level="word", window=12
    )
    text = planted.vocabulary.decode(planted.store[planted.examples])
    assert planted.sets[0].canaries[0].text in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"secret": SecretSettings(template="{choice:a|b}")}, "needs 6 secrets"),
        (
            {
                "measure": MeasureSettings(judged=1, limit=9.0),
                "plan": InsertPlan(repeats=(2,), steps=1),
            },
            "judges",
        ),
        ({"measure": MeasureSettings()}, r"measure.limit=10 cannot be reached.*at most 9.97 bits"),
    ],
)
def test_a_study_that_contradicts_itself(change, message):
    with pytest.raises(PlanError, match=message):
        dataclasses.replace(STUDY, **change)


def test_a_budget_too_small_for_the_template_is_refused_before_training(tmp_path):
    measure = dataclasses.replace(STUDY.measure, max_nodes=2)
    with pytest.raises(InvalidInput, match="max_nodes=2 is less than the template's depth"):
        run_study(dataclasses.replace(STUDY, measure=measure), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_a_canary_longer_than_a_window(tmp_path):
    study = dataclasses.replace(STUDY, text=dataclasses.replace(STUDY.text, window=6))
    with pytest.raises(PlanError, match="A canary has 8 tokens, and a window learns 6"):
        run_study(study, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        ("text", {"level": "byte"}, "text.level='byte'"),
        ("text", {"window": 1}, "text.window=1"),
        ("text", {"name": ""}, "text.name=''"),
        ("text", {"characters": 0}, "text.characters=0"),
        ("secret", {"template": "no hole"}, "secret.template"),
        ("secret", {"template": 3}, "secret.template"),
        ("model", {"name": "rnn"}, "model.name='rnn'"),
        ("measure", {"method": "guess"}, "measure.method='guess'"),
        ("measure", {"limit": 0}, "measure.limit=0"),
        ("measure", {"top": 0}, "measure.top=0"),
        ("measure", {"share": 0}, "measure.share=0 is not between 0 and 1"),
        ("measure", {"share": 1.0}, "measure.share=1.0 is not between 0 and 1"),
        ("measure", {"share": "all"}, "measure.share='all' is not between 0 and 1"),
        ("measure", {"method": "sampled", "references": 0}, "needs measure.references"),
        ("plan", {"kind": "inject"}, "plan.kind='inject' is not one of insert"),
        ("data", {"name": "digits"}, "lacks path"),
    ],
)
def test_a_faulty_recipe_is_one_sentence(section, fields, message):
    table = STUDY.to_dict()
    table[section] = {**table.get(section, {}), **fields}
    with pytest.raises(PlanError, match=message.replace("(", "\\(")):
        study_from(table)


def test_an_unknown_question():
    with pytest.raises(
        PlanError, match="question='why' is not one of forgetting, one-run, text-forgetting, speech"
    ):
        study_from({"question": "why"})


@pytest.mark.parametrize("broken", ["measure_each", "extract", "put_exposure_results"])
def test_a_run_cut_short_goes_on_to_the_same_results(run, tmp_path, monkeypatch, broken):
    def cut(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"remnant.studies.exposure.planted_run.{broken}", cut)
        with pytest.raises(KeyboardInterrupt):
            run_study(STUDY, tmp_path / "cut", Execution(checkpoint_seconds=0.0))
    run_study(STUDY, tmp_path / "cut", Execution())
    whole, cut_short = Record.open(run), Record.open(tmp_path / "cut")
    assert cut_short.status == "complete"
    assert cut_short.results() == whole.results()
    for name in whole.array_names():
        np.testing.assert_array_equal(whole.array(name), cut_short.array(name))
    assert not list((tmp_path / "cut").glob("checkpoint*"))


def test_a_model_that_did_not_learn_its_text_does_not_pass(tmp_path, monkeypatch, passing):
    monkeypatch.setattr("remnant.studies.exposure.measure.judge_exposure", lambda *_, **__: passing)
    untrained = TrainingSettings(optimizer="adam", options={"lr": 1e-12})
    run_study(dataclasses.replace(STUDY, training=untrained), tmp_path / "run", Execution())
    results = Record.open(tmp_path / "run").results()
    assert results["verdict"]["outcome"] == "INCONCLUSIVE"
    assert "did not learn their task: a validation character costs" in results["verdict"]["claim"]
