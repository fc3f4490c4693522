"""A tiny run with every kind of remedy: against slow definitions, resumed, and its faults."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from remnant.errors import PlanError
from remnant.privacy import epsilon_spent
from remnant.records import Record
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.choices import run as module
from remnant.studies.choices.measure import unigram_bits
from remnant.studies.choices.population import populations
from remnant.studies.choices.post_training import clean_rows, planted_rows
from remnant.studies.choices.recipe import BASE
from remnant.studies.choices.sanitising import halves, trained_rows, without_rows
from remnant.tasks.language_models import fit_language_models, language_model_maker

from .conftest import DEFENCES

STUDY = study_from(DEFENCES)
LABELS = [remedy["label"] for remedy in DEFENCES["remedy"]]
NAMES = {label: f"remedy{i}" for i, label in enumerate(LABELS, start=1)}


@pytest.fixture(scope="module")
def record(defended):
    return Record.open(defended)


@pytest.fixture(scope="module")
def results(record):
    return record.results()


@pytest.fixture(scope="module")
def runs():
    return module.planted_runs(STUDY, Execution())


def bits_by_hand(run, trial, state):
    """Exposure of a trial's canary: its rank among all 1 000 secrets, one after another."""
    net = language_model_maker(run.study, run.planted)().double()
    net.load_state_dict(state)
    net.eval()
    template, encode = run.study.secret.known, run.planted.vocabulary.encode
    before = len(encode(template.prefix))
    ids = torch.tensor([encode(template.text(f"{number:03d}")) for number in range(1000)])
    with torch.no_grad():
        log_probs = net(ids[:, :-1]).log_softmax(-1)
    costs = -log_probs.gather(-1, ids[:, 1:, None])[..., 0][:, before - 1 :].sum(1)
    own = costs[int(run.planted.sets[trial].canaries[0].secret)]
    return math.log2(1000) - math.log2(int((costs <= own + 1e-9).sum()))


@pytest.mark.parametrize("label", ["decay", "dropout", "clipped", "once", "scanned", "slower"])
def test_a_remedy_is_that_of_its_training_alone(record, runs, label):
    run = runs[NAMES[label]]
    alone = fit_language_models(run.study, run.plan, run.planted, Execution())[1]
    found = record.array(f"{NAMES[label]}.bits")
    for trial, member in enumerate(run.plan.members_of("planted")):
        assert found[trial, 0] == bits_by_hand(run, trial, alone.state_dict(int(member)))


def test_remedies_of_trained_models_are_those_of_the_training_as_planned(record, runs):
    run = runs[BASE]
    alone = fit_language_models(run.study, run.plan, run.planted, Execution())[1]
    for trial in range(run.plan.trials):
        state = alone.state_dict(trial)
        coarse = {}
        for name, tensor in state.items():
            step = (tensor.max() - tensor.min()) / 15
            coarse[name] = tensor.min() + ((tensor - tensor.min()) / step).round() * step
        assert record.array("primary.bits")[trial, 0] == bits_by_hand(run, trial, state)
        assert record.array(f"{NAMES['levels']}.bits")[trial, 0] == pytest.approx(
            bits_by_hand(run, trial, coarse)
        )


def test_a_scan_leaves_no_canary_in_the_text(runs):
    run, plain = runs[NAMES["scanned"]], runs[BASE]
    texts = [run.planted.vocabulary.decode(row) for row in run.planted.store]
    before = [plain.planted.vocabulary.decode(row) for row in plain.planted.store]
    canary = plain.planted.sets[0].canaries[0].text
    assert any(canary in text for text in before)
    assert not any("@uni.edu" in text for text in texts)
    assert any("[EMAIL]" in text for text in texts)
    assert run.planted.store.shape == plain.planted.store.shape


def test_rows_that_are_left_out_are_never_trained_on(record, runs):
    run = runs[NAMES["halves"]]
    replaced = record.array(f"{NAMES['halves']}.replaced")
    run = dataclasses.replace(run, replaced=replaced)
    given = np.stack([run.schedule().batch(step)[0] for step in range(run.plan.steps)])
    for trial in range(run.plan.trials):
        rows = trained_rows(run, trial)
        dropped = rows[replaced[trial, rows] != rows]
        assert len(dropped) == math.ceil(0.1 * len(rows))
        assert not np.isin(given[:, trial], dropped).any()
        assert np.isin(given[:, trial], rows).all()
        first, second = halves(run, trial)
        assert sorted([*first, *second]) == sorted(rows)
    nothing = without_rows(run, [np.array([], dtype=np.int64)] * run.plan.trials)
    np.testing.assert_array_equal(nothing, np.tile(np.arange(nothing.shape[1]), (3, 1)))


def test_the_rows_of_fine_tuning_are_clean_and_those_of_ascent_planted(runs):
    run = runs[BASE]
    clean, planted = clean_rows(run, 6, 1), planted_rows(run, 4)
    assert clean.shape == (6, 3, 16)
    assert clean.max() < run.planted.examples
    assert planted.shape == (4, 3, 12)
    for trial in range(3):
        first = run.planted.examples + 12 * trial
        assert set(planted[:, trial].ravel()) == set(range(first, first + 12))


def test_the_results_say_what_was_measured(record, results, runs):
    defences = results["defences"]
    rows = {row["label"]: row for row in defences["remedies"]}
    assert list(rows) == ["nothing", *LABELS]
    assert defences["unigram_bits"] == pytest.approx(unigram_bits(runs[BASE]))
    for row in defences["remedies"]:
        bits = record.array(f"{row['name']}.bits")
        assert row["each"] == bits.ravel().tolist()
        assert row["exposure"][0] == pytest.approx(bits.mean())
        losses = record.array(f"{row['name']}.losses")[:, 0]
        assert row["validation_bits"][0] == pytest.approx(losses.mean())
        if row["name"] != BASE:
            base = record.array("primary.losses")[:, 0]
            assert row["cost"]["difference"][0] == pytest.approx((losses - base).mean())
    spent = epsilon_spent(
        sampling_rate=16 / runs[BASE].planted.examples,
        noise=1.0,
        steps=runs[BASE].plan.steps,
        delta=1e-5,
    )
    assert rows["private"]["privacy"] == {"epsilon": spent, "delta": 1e-5, "reason": ""}
    assert rows["ascent"]["relearnt"] is not None
    assert rows["levels"]["relearnt"] is None
    assert rows["scanned"]["exposure"][0] < rows["nothing"]["exposure"][0] - 2
    json.dumps(results, allow_nan=False)


def test_three_trials_are_too_few_for_fifteen_remedies(results):
    assert results["verdict"]["outcome"] in ("INCONCLUSIVE", "FAIL")
    assert results["verdict"]["holding"] == []


def unlearnt(**changes):
    few = {"plan": {**DEFENCES["plan"], "controls": 0}, "measure": DEFENCES["measure"]}
    slow = {"label": "frozen", "kind": "training", "training": {"options": {"lr": 1e-20}}}
    return study_from({**DEFENCES, **few, "remedy": [slow], **changes})


def test_a_training_that_learns_nothing_is_no_remedy(tmp_path):
    run_study(unlearnt(), tmp_path / "run", Execution())
    results = Record.open(tmp_path / "run").results()
    assert results["defences"]["remedies"][1]["status"] == "useless model"
    assert results["verdict"]["outcome"] != "PASS"
    assert results["verdict"]["useless"] == ["frozen"]


def test_where_nothing_was_learnt_no_remedy_is_shown_to_help(tmp_path):
    training = {"optimizer": "adam", "options": {"lr": 1e-20}}
    remedy = [{"label": "levels", "kind": "levels"}, {"label": "scanned", "kind": "sanitising"}]
    run_study(unlearnt(training=training, remedy=remedy), tmp_path / "run", Execution())
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "learnt nothing of use" in verdict["sentence"]
    assert verdict["holding"] == []


def test_the_time_of_every_remedy_is_in_the_execution(record):
    execution = record.execution
    for label, name in NAMES.items():
        own = (
            "seconds_after"
            if label in ("levels", "int8", "pruned", "tuned", "ascent")
            else "seconds"
        )
        assert execution[f"{name}.{own}"] > 0


def test_what_can_be_trained_together_is(runs):
    groups = [set(group) for group in populations(runs)]
    together = {BASE, *(NAMES[label] for label in ("decay", "once", "halves", "first", "slower"))}
    assert together <= groups[0]


def test_no_secret_is_in_the_record(record, results, runs):
    words = json.dumps(results) + json.dumps(record.summary())
    for run in runs.values():
        for drawn in run.planted.sets:
            for canary in drawn.canaries:
                assert canary.text not in words


@pytest.mark.parametrize("label", ["levels", "ascent"])
def test_an_interrupted_run_resumes_to_the_arrays_of_a_whole_one_elsewhere(
    tmp_path, monkeypatch, label, killed_after_each_job
):
    table = {
        **DEFENCES,
        "remedy": [
            row
            for row in DEFENCES["remedy"]
            if row["label"] in ("decay", "stopped", "halves", "levels", "ascent")
        ],
    }
    study = study_from(table)
    whole, apart = tmp_path / "whole", tmp_path / "apart"
    jobs = killed_after_each_job(study, whole)
    assert jobs[0].startswith("halves of ")
    assert len(jobs) > 2
    changed = module.changed_models

    def interrupted(settings, own, *others):
        if own.study.label == label:
            raise KeyboardInterrupt
        return changed(settings, own, *others)

    monkeypatch.setattr(module, "changed_models", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, apart, Execution())
    monkeypatch.undo()
    with Record.open(apart) as begun:
        assert begun.status != "complete"
    run_study(study, apart, Execution())
    first, second = Record.open(whole), Record.open(apart)
    assert first.array_names() == second.array_names()
    for name in first.array_names():
        np.testing.assert_array_equal(first.array(name), second.array(name), err_msg=name)
    assert first.results() == second.results()


def test_the_estimate_counts_all_models():
    found = estimate_study(STUDY, Execution())
    trained, halves = 1 + 10, 2
    assert found["members"] == 3 * (trained + halves)
    assert found["minutes"] > 0


def remedy(**fields):
    return {"remedy": [{"label": "x", **fields}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (remedy(kind="prayer"), "remedy.kind='prayer' is not one of training, weight-decay"),
        (remedy(), "remedy 'x': .*lacks kind"),
        (remedy(kind="dropout"), "remedy 'x': remedy.rate is needed with kind = 'dropout'"),
        (remedy(kind="dropout", rate=0.95), "remedy.rate=0.95 is not above 0 and at most 0.9"),
        (remedy(kind="int8", rate=0.5), "remedy.rate does not belong to kind = 'int8'"),
        (remedy(kind="sanitising", share=0.1), "remedy.share needs by = 'disagreement'"),
        (remedy(kind="int8", training={"clip": 1.0}), "takes no \\[training\\] of its own"),
        (remedy(kind="training"), "remedy 'x': it changes nothing"),
        (remedy(kind="training", plan={"seed": 4}), "it changes plan.seed"),
        (remedy(kind="training", text={"window": 30}), "it changes text"),
        (remedy(kind="training", plan={"repeats": [1, 1]}), "how many canaries"),
        (remedy(kind="training", plan={"bach": 1}), "remedy 'x': unknown field plan.bach"),
        ({"remedy": [{"kind": "int8"}]}, "remedy is not a list of tables, each with a label"),
        (remedy(label="nothing", kind="int8"), "'nothing' stands for two"),
        ({"measure": {"limit": 12.0}}, "measure.limit=12 bits cannot be reached"),
    ],
)
def test_a_faulty_recipe_is_one_sentence(changes, message):
    with pytest.raises(PlanError, match=message):
        study_from({**DEFENCES, **changes})


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path):
    for fields, message in (
        ({"kind": "order", "steps": 5_000}, "5000 clean steps at the end leave none"),
        ({"kind": "sanitising"}, "needs text.level = 'character'"),
    ):
        table = {**DEFENCES, **remedy(**fields)}
        if fields["kind"] == "sanitising":
            table["text"] = {**table["text"], "level": "word"}
            table["secret"] = {"template": "key {choice:a|b|c|d|e|f|g|h}"}
            table["measure"] = {**table["measure"], "limit": 2.0}
        with pytest.raises(PlanError, match=message):
            run_study(study_from(table), tmp_path / "run", Execution())
        assert not (tmp_path / "run").exists()


def test_a_recipe_without_a_remedy_is_refused_before_anything_is_trained(tmp_path):
    alone = dataclasses.replace(STUDY, remedy=())
    with pytest.raises(PlanError, match=r"The recipe has no \[\[remedy\]\]"):
        run_study(alone, tmp_path / "run", Execution())
    with pytest.raises(PlanError, match=r"The recipe has no \[\[remedy\]\]"):
        estimate_study(alone, Execution())
    assert not (tmp_path / "run").exists()
