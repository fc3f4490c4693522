"""Gone or hidden in a study of text: neighbours, disturbances, what is recorded and said."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from remnant import InjectPlan, PoisonPlan
from remnant.data import load_corpus
from remnant.errors import InvalidInput, PlanError
from remnant.models import sequence_model_maker
from remnant.population import Population
from remnant.probes import window_signals
from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.studies import Execution, TextForgettingStudy, estimate_study, run_study, study_from
from remnant.studies.forgetting import sequence_training as trained
from remnant.studies.forgetting.exposure_curves import calibrated_bits
from remnant.studies.forgetting.sequence_measure import beaten, measure_text_forgetting
from remnant.studies.forgetting.sequence_result import TextForgettingResult
from remnant.studies.forgetting.text_recipe import TextAttackSettings
from remnant.studies.reporting import read_page
from remnant.studies.residual_memory.measured import NOT_ASKED, residual_memory, scan
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    TextCanarySettings,
    TextSettings,
)
from remnant.studies.shared.variants import Variant
from remnant.tasks.text import TASK, plant_tokens

PLAN = InjectPlan(
    canaries=12, copies=6, step=20, watch_steps=30, trials=3, batch=72, fresh_canaries=True
)
HIDDEN = HiddenSettings(noise=(0.1, 3.0), draws=2, relearn_steps=(1, 3), neighbours=20)
STUDY = TextForgettingStudy(
    plan=PLAN,
    text=TextSettings(characters=8_000, window=12),
    canaries=TextCanarySettings(references=60),
    model=LanguageModelSettings(name="gru", options={"units": 24, "layers": 1}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
    attack=TextAttackSettings(lags=(0, 5, 10, 20), limit=3.0),
    hidden=HIDDEN,
)
MEMBERS, ITEMS = 9, 72


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planted_tokens(study=STUDY):
    corpus = load_corpus(study.text.name, characters=study.text.characters)
    return plant_tokens(study.plan, study.canaries, study.text, corpus, neighbours=study.neighbours)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hidden") / "run"
    run_study(STUDY, folder, Execution())
    return folder


def results(study, folder):
    run_study(study, folder, Execution())
    return Record.open(folder).results()


def test_every_disturbance_has_its_row(run):
    record = Record.open(run)
    found = record.results()
    hidden, rows = found["hidden"], found["hidden"]["disturbances"]
    assert [(row["kind"], row["amount"]) for row in rows] == [
        *(("noise", 0.1), ("noise", 3.0), ("relearn", 1), ("relearn", 3))
    ]
    assert (hidden["success"], hidden["lag"], hidden["trials"]) == ("auc", 20, 3)
    assert hidden["before"] == found["curve_auc"]["value"][-1], "before is the curve's last lag"
    assert hidden["exposure"] == found["curve_exposure"]["value"][-1]
    for row in rows:
        assert 0 <= row["after_low"] <= row["after"] <= row["after_high"] <= 1
        assert row["aa_low"] <= row["aa"] <= row["aa_high"]
        assert row["rise"] == pytest.approx(row["after"] - hidden["before"])
        assert row["exposure_low"] <= row["exposure"] <= row["exposure_high"]
        assert row["validation_bits"] > 0
    assert record.array("primary.hidden").shape == (5, MEMBERS, ITEMS)
    twins = record.array("primary.hidden_twins")
    assert twins.shape == (5, 3, ITEMS)
    np.testing.assert_array_equal(twins[0], record.array("primary.twins_bits")[-1])
    assert np.abs(twins[2] - twins[0]).mean() > 0.1, "the other trials' twins are disturbed too"
    assert record.array("primary.hidden_task").shape == (5, MEMBERS, 1)


def test_disturbances_change_the_numbers_and_strong_noise_breaks_the_models(run):
    record = Record.open(run)
    bits = record.array("primary.hidden")
    np.testing.assert_array_equal(bits[0], record.array("primary.signals")[-1, :, 0])
    weak, strong = (np.abs(bits[slot] - bits[0]).mean() for slot in (1, 2))
    assert 0.1 < weak < strong
    assert np.abs(bits[4] - bits[3]).mean() > 0.1, "each number of steps has models of its own"
    hidden = record.results()["hidden"]
    task = [row["validation_bits"] for row in hidden["disturbances"]]
    assert task[0] == pytest.approx(hidden["validation_bits"], abs=0.1)
    assert task[1] > hidden["validation_bits"] + 0.5
    assert [row["useful"] for row in hidden["disturbances"]][:2] == [True, False]


def alone(state):
    model = sequence_model_maker("gru", vocabulary_size=planted_tokens().vocabulary.size,
                                 **STUDY.model.options)()  # fmt: skip
    model.load_state_dict(state)
    return model


def test_the_search_is_what_one_model_after_another_would_show(monkeypatch, tmp_path):
    """The slow definition: noise and relearning of one member by hand, without a population."""
    kept = []
    original = trained.hidden_probe

    def watched(study, settings, probes, *, device):
        probe = original(study, settings, probes, device=device)

        def read(population):
            kept.extend(population.state_dict(member) for member in range(len(population)))
            return probe(population)

        return read

    monkeypatch.setattr(trained, "hidden_probe", watched)
    # A batch holds all neighbours of a trial, so that their order does not matter.
    study = made(
        plan=dataclasses.replace(STUDY.plan, batch=80),
        hidden=dataclasses.replace(HIDDEN, noise=(0.3,), neighbours=80, learning_rate=0.004),
    )
    run_study(study, tmp_path / "run", Execution())
    planted = planted_tokens(study)
    record = Record.open(tmp_path / "run")
    bits, task = record.array("primary.hidden"), record.array("primary.hidden_task")

    def costs(model, windows):
        answers = torch.log_softmax(model(torch.from_numpy(windows[:, :-1])).double(), -1)
        own = answers.gather(2, torch.from_numpy(windows[:, 1:])[..., None])[..., 0]
        return -own.sum(1).detach().numpy() / np.log(2.0)

    for member in (0, 4, 8):
        trial = member // 3
        noisy, held_out = [], []
        for draw in range(study.hidden.draws):
            rng = np.random.default_rng([study.plan.seed, 3, trial, draw])
            state = {}
            for name, _ in alone(kept[member]).named_parameters():
                own = kept[member][name].double()
                normal = torch.from_numpy(rng.standard_normal(tuple(own.shape)))
                state[name] = (own + 0.3 * own.std(correction=0) * normal).float()
            model = alone({**kept[member], **state})
            noisy.append(costs(model, planted.probed[trial]))
            held_out.append(costs(model, planted.validation).mean() / 12)
        np.testing.assert_allclose(bits[1, member], np.mean(noisy, axis=0), rtol=1e-4)
        assert task[1, member, 0] == pytest.approx(np.mean(held_out), rel=1e-4)
        model = alone(kept[member])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
        near = torch.from_numpy(planted.neighbours[trial])
        for step in range(3):
            optimizer.zero_grad()
            output = model(near[:, :-1]).flatten(0, 1)
            torch.nn.functional.cross_entropy(output, near[:, 1:].flatten()).backward()
            optimizer.step()
            if step in (0, 2):
                slot = 2 if step == 0 else 3
                found = costs(model, planted.probed[trial])
                np.testing.assert_allclose(bits[slot, member], found, rtol=2e-3)


def test_neighbours_are_drawn_alike_and_are_neither_planted_nor_ranked():
    planted, bare = planted_tokens(), planted_tokens(made(hidden=None))
    assert planted.neighbours.shape == (3, 20, 13)
    assert bare.neighbours.shape == (3, 0, 13)
    for name in ("store", "probed", "validation"):
        np.testing.assert_array_equal(getattr(planted, name), getattr(bare, name))
    used = {row.tobytes() for row in planted.probed[..., 1:].reshape(-1, 12)}
    near = {row.tobytes() for row in planted.neighbours[..., 1:].reshape(-1, 12)}
    assert len(near) == 60, "no two are alike, in no trial"
    assert not used & near
    noise_only = made(hidden=dataclasses.replace(HIDDEN, relearn_steps=()))
    assert noise_only.neighbours == 0


def test_passages_for_relearning_leave_the_validation_text():
    study = made(
        text=TextSettings(characters=60_000, window=12),
        canaries=TextCanarySettings(references=60, kind="text"),
    )
    planted, bare = planted_tokens(study), planted_tokens(dataclasses.replace(study, hidden=None))
    np.testing.assert_array_equal(planted.probed, bare.probed)
    assert len(planted.validation) == len(bare.validation) - 60
    near = {row.tobytes() for row in planted.neighbours.reshape(-1, 13)}
    assert near <= {row.tobytes() for row in bare.validation}
    with pytest.raises(PlanError, match="needs 276 passages"):
        planted_tokens(dataclasses.replace(study, text=STUDY.text))


def test_too_few_sequences_for_neighbours_are_refused(tmp_path):
    narrow = made(canaries=TextCanarySettings(references=60, tokens=8, commonest=2))
    with pytest.raises(PlanError, match="needs 276 sequences of 8 tokens, and there are 256"):
        run_study(narrow, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_killed_after_the_search_goes_on_to_the_same_arrays(run, tmp_path, same_run):
    class Cut(Exception):
        pass

    def stop(part, done, of):
        if done == 46:  # the last lag is at step 41
            raise Cut

    eager = Execution(checkpoint_seconds=0)
    with pytest.raises(Cut):
        run_study(STUDY, tmp_path / "cut", eager, progress=stop)
    assert list((tmp_path / "cut").glob("checkpoint-*"))
    run_study(STUDY, tmp_path / "cut", eager)
    same_run(run, tmp_path / "cut")


def test_the_search_is_the_same_on_another_machine(run, tmp_path, elsewhere, same_run):
    run_study(STUDY, tmp_path / "elsewhere", elsewhere())
    same_run(run, tmp_path / "elsewhere")


def test_residual_memory_is_measured_again_from_the_stored_costs(run):
    before = Record.open(run).results()
    with Record.open(run, write=True) as record:
        measure_text_forgetting(record, STUDY, examples=600, tokens=12)
    after = Record.open(run).results()
    assert [after[name] for name in ("hidden", "returning", "verdict", "scope")] == [
        before[name] for name in ("hidden", "returning", "verdict", "scope")
    ]


def test_without_the_section_only_checkpoints_are_scanned(run, tmp_path):
    found = results(made(hidden=None), tmp_path / "run")
    assert found["hidden"] == {"absent": NOT_ASKED}
    searched = Record.open(run).results()
    assert found["returning"] == searched["returning"], "the search changes nothing else"
    assert found["curve_exposure"] == searched["curve_exposure"]
    assert found["returning"]["reference"] == "A/A twins"
    assert found["returning"]["checkpoints"] == 4
    assert "by: a scan of all later checkpoints" in found["scope"]["tested"][-1]
    said = " ".join(found["scope"]["not_tested"])
    assert "no weight noise and no relearning on similar examples was run" in said
    told = " ".join(searched["scope"]["tested"])
    assert "weight noise, relearning on similar examples, a scan" in told
    assert "was run, and" not in " ".join(searched["scope"]["not_tested"])


def test_without_aa_a_scan_needs_costs_that_the_twin_does_not_calibrate(tmp_path):
    plan = dataclasses.replace(STUDY.plan, aa=False)
    influence = dataclasses.replace(STUDY.attack, calibration="influence")
    found = results(made(plan=plan, attack=influence), tmp_path / "twin")
    assert "Give the plan A/A twins (aa = true), or set" in found["returning"]["absent"]
    assert "aa" not in found["hidden"]["disturbances"][0]
    assert "no scan of all later checkpoints was run" in " ".join(found["scope"]["not_tested"])
    for calibration in ("none", "twins"):
        attack = dataclasses.replace(STUDY.attack, calibration=calibration)
        found = results(made(plan=plan, attack=attack), tmp_path / calibration)
        assert found["returning"]["reference"] == "unplanted twins"
        assert found["returning"]["checkpoints"] == 4


def test_reference_models_calibrate_as_they_are(tmp_path):
    study = made(
        plan=PoisonPlan(
            canaries=12, step=40, watch_steps=10, epoch_steps=10, trials=2, batch=32, repeats=4
        ),
        attack=TextAttackSettings(
            calibration="references", reference_models=3, lags=(0, 5, 10), limit=2.5
        ),
        hidden=HiddenSettings(noise=(0.1,), draws=1, relearn_steps=()),
    )
    found = results(study, tmp_path / "run")
    record = Record.open(tmp_path / "run")
    canaries, references = calibrated_bits(record, "primary", study, "planted")
    hidden = record.array("primary.hidden")
    others = record.array("primary.reference_bits")[-1].mean(axis=0)
    after = hidden[1, study.plan.members_of("planted")] - others
    wins = after[:, :12, None] < after[:, None, 12:]
    (row,) = found["hidden"]["disturbances"]
    assert row["after"] == pytest.approx(wins.mean(), abs=1e-12)
    wins = canaries[-1][:, :, None] < references[-1][:, None]
    assert found["hidden"]["before"] == pytest.approx(wins.mean(), abs=1e-12)


@pytest.mark.parametrize("calibration", ["twins", "influence", "none"])
def test_models_that_learnt_nothing_hide_nothing(tmp_path, calibration):
    idle = made(
        training=TrainingSettings(optimizer="sgd", options={"lr": 1e-12}),
        attack=dataclasses.replace(STUDY.attack, calibration=calibration),
    )
    found = results(idle, tmp_path / "run")
    rows = found["hidden"]["disturbances"]
    assert {(row["reading"], row["useful"]) for row in rows} == {("not found", False)}
    assert found["verdict"]["outcome"] != "PASS"
    back = found["returning"]
    assert "absent" in back or back["returned"] == back["chance_returned"]


def test_an_attack_that_sees_nothing_finds_nothing_hidden(run, tmp_path, changed, monkeypatch):
    rng = np.random.default_rng(0)
    shape = Record.open(run).array("primary.signals").shape
    for blind in (np.ones(shape), rng.normal(size=shape)):
        copy = changed(run).folder
        with Record.open(copy, write=True) as record:
            hidden = np.concatenate([blind[-1:, :, 0], blind[:, :, 0]])
            twins = blind[:, :3, 0]
            kept = {"primary.signals": blind, "primary.hidden": hidden, "primary.twins_bits": twins}
            kept["primary.hidden_twins"] = np.concatenate([twins[-1:], twins])
            task = record.array("primary.hidden_task")
            monkeypatch.setattr(
                record, "array", lambda name, kept=kept, task=task: kept.get(name, task)
            )
            measure_text_forgetting(record, STUDY, examples=600, tokens=12)
        found = Record.open(copy).results()
        assert {row["reading"] for row in found["hidden"]["disturbances"]} == {"not found"}
        assert found["verdict"]["outcome"] != "PASS"


def test_a_memory_that_only_relearning_shows_fails_a_pass(run, changed, monkeypatch):
    """Costs at chance at the last lag, and far below the references after one disturbance."""
    rng = np.random.default_rng(1)
    study = made(
        plan=dataclasses.replace(PLAN, trials=8),
        attack=dataclasses.replace(STUDY.attack, limit=4.5),
    )
    planted, members = study.plan.members_of("planted"), study.plan.members
    signals = rng.normal(30, 3, size=(4, members, 2, ITEMS))
    signals[1, planted, 0, :12] -= 30  # found at lag 5: the positive control
    hidden = rng.normal(30, 3, size=(5, members, ITEMS))
    hidden[0] = signals[-1, :, 0]
    copy = changed(run).folder

    def measured(hidden, study=study):
        kept = {"primary.signals": signals, "primary.hidden": hidden}
        kept["primary.hidden_task"] = np.full((5, members, 1), 5.0)
        kept["primary.twins_bits"] = np.full((4, 8, ITEMS), 30.0)
        kept["primary.hidden_twins"] = np.full((5, 8, ITEMS), 30.0)
        with Record.open(copy, write=True) as record:
            monkeypatch.setattr(record, "array", kept.__getitem__)
            measure_text_forgetting(record, study, examples=600, tokens=12)
        return Record.open(copy).results()

    quiet = measured(hidden)
    assert quiet["verdict"]["outcome"] == "PASS", quiet["verdict"]
    loud = hidden.copy()
    loud[3, planted, :12] -= 30
    found = measured(loud)
    row = found["hidden"]["disturbances"][2]
    assert row["reading"] == "comes back"
    assert found["verdict"]["outcome"] == "FAIL"
    assert f"mean exposure is at least {row['exposure_low']:.2f} bits" in found["verdict"]["claim"]
    assert found["hidden"]["disturbances"][0]["reading"] == "not found"
    attack = dataclasses.replace(study.attack, calibration="influence")
    influence = measured(loud, dataclasses.replace(study, attack=attack))
    row = influence["hidden"]["disturbances"][2]
    assert row["exposure_low"] > study.attack.limit, "by influence, which no attacker sees"
    assert influence["verdict"]["outcome"] == "INCONCLUSIVE"


def test_what_a_model_learnt_about_all_such_sequences_does_not_bring_canaries_back():
    rng = np.random.default_rng(0)
    costs, references = rng.normal(size=(4, 3, 10)), rng.normal(size=(4, 3, 50))
    shift = 7.0 * rng.normal(size=(4, 3, 1))
    np.testing.assert_array_equal(
        beaten(costs, references), beaten(costs + shift, references + shift)
    )
    slow = (references[:, :, None] > costs[..., None]).sum(-1)
    np.testing.assert_array_equal(beaten(costs, references), slow)


def wandering(rng):
    """Costs of a model at (8 checkpoints, 4 trials, 16 canaries and 64 references)."""
    costs = rng.normal(size=(8, 4, 80))
    for lag in range(1, 8):
        costs[lag] = 0.7 * costs[lag - 1] + 0.71 * costs[lag]
    costs += rng.normal(size=(8, 4, 1))  # how well the model knows such sequences at all
    return costs[..., :16], costs[..., 16:]


def test_a_model_that_knows_such_sequences_better_does_not_seem_to_remember():
    rng = np.random.default_rng(5)
    false, found, claims = [], [], []
    for audit in range(120):
        canaries, references = (costs - 20.0 for costs in wandering(rng))
        null, null_references = wandering(rng)
        kept = canaries.copy()
        kept[-2:] -= 3.0
        for costs, claimed in ((canaries, false), (kept, found)):
            scanned = scan(
                seen=beaten(costs, references),
                null=beaten(null, null_references),
                unseen=beaten(references, references),
                fpr=0.1,
                confidence=0.95,
                reference="A/A twins",
            )
            claimed.append(scanned.significant)
        if audit < 40:
            memory = residual_memory(
                HiddenSettings(noise=(0.1, 0.2), relearn_steps=(1,)),
                planted=(-canaries[:4], -references[:4]),
                unplanted=None,
                success="auc",
                fpr=0.1,
                confidence=0.95,
                seed=audit,
                lag=0.0,
                columns=[{}] * 3,
            )
            claims.append(any(row.reading != "not found" for row in memory.disturbances))
    assert np.mean(false) <= 0.1, "5 %, and six of 120 more by chance"
    assert np.mean(found) > 0.8, "what really comes back is found"
    assert np.mean(claims) <= 0.15, "5 %, and four of 40 more by chance"


def test_the_page_says_what_was_searched(run, page_text):
    shown = read_page(Record.open(run))
    text = page_text(shown.blocks)
    for words in (
        "Weight noise, relearning on similar examples and a scan of later checkpoints were run",
        "AUC at lag 20, before and after the models were disturbed",
        "Canaries are compared with references of the same disturbed model",
        "Undisturbed, a validation token costs",
        "Mean exposure after",
        "Task above chance",
    ):
        assert words in text, words


def test_a_broken_model_is_said_to_be_broken(run, changed, page_text):
    row = Record.open(run).results()["hidden"]
    broken = [dict(one, useful=place != 1) for place, one in enumerate(row["disturbances"])]
    record = changed(run, {"hidden": row | {"disturbances": broken}})
    text = page_text(read_page(record).blocks)
    assert "The models do their task no better than chance after weight noise, 3" in text


def test_older_records_have_no_search(run, changed, page_text):
    record = changed(run, without={"hidden", "returning"})
    result = read_result(record, TextForgettingResult)
    assert result.hidden == result.returning == Absent("this run recorded none")
    assert "were not run" in page_text(read_page(record).blocks)


def test_variants_are_not_searched_and_set_the_same_neighbours_aside(tmp_path):
    later = made(plan=dataclasses.replace(STUDY.plan, step=25), hidden=None)
    study = made(compare=(Variant("later", later),))
    parts = study.parts()
    assert parts["variant1"].neighbours == parts["primary"].neighbours == 20
    run_study(study, tmp_path / "run", Execution())
    names = Record.open(tmp_path / "run").array_names()
    assert {name for name in names if "hidden" in name} == {
        *("primary.hidden", "primary.hidden_task", "primary.hidden_twins")
    }


def test_the_estimate_counts_the_search(a_minute_a_step):
    bare = estimate_study(made(hidden=None), Execution())["minutes"]
    searched = estimate_study(STUDY, Execution())["minutes"]
    # Asked once as they are, four times with noise, twice while relearning for three steps; each
    # time about costs, in four more of nine members' places also about the other trials', and task.
    assert searched == pytest.approx(bare + (1 + 4 + 2) * (1 + 2 * 2 / 3 + 1) + 3, abs=0.01)


def test_one_trial_is_refused_and_a_diverged_search_says_so(tmp_path):
    with pytest.raises(PlanError, match="needs trials >= 2"):
        made(plan=dataclasses.replace(STUDY.plan, trials=1))
    wild = made(hidden=dataclasses.replace(HIDDEN, noise=(), learning_rate=1e38))
    with pytest.raises(InvalidInput, match=r"not finite.*Lower hidden\.noise"):
        run_study(wild, tmp_path / "run", Execution())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("noise", (0.1,)),
        ("draws", 3),
        ("relearn_steps", (2,)),
        ("neighbours", 21),
        ("learning_rate", 0.1),
    ],
)
def test_the_fingerprint_moves_with_every_field(field, value):
    changed = made(hidden=dataclasses.replace(HIDDEN, **{field: value}))
    assert changed.fingerprint != STUDY.fingerprint != made(hidden=None).fingerprint
    assert study_from(json.loads(json.dumps(changed.to_dict()))) == changed


def test_costs_of_the_probe_are_those_of_the_curve():
    planted = planted_tokens()
    probes = trained.TrialProbes(TASK, PLAN, planted)
    models = Population(TASK.maker(STUDY, planted), seeds=list(range(MEMBERS)))
    slow = window_signals(
        models, planted.probed[1], tokens=12, vocabulary_size=planted.vocabulary.size
    )
    np.testing.assert_allclose(probes.costs(models)[3:6], slow[3:6, 0].numpy(), rtol=1e-6)
