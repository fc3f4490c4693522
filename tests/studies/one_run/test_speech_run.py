"""One run on patterns and on real files: scores, resuming, verdicts, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput, MissingExtra, NotEnoughEvidence, PlanError
from remnant.measures import OneRunForgetting, Verdict
from remnant.models import conformer
from remnant.models.recogniser import PackedRecogniser, ctc_loss
from remnant.plans.plan import COHORTS
from remnant.plans.schedule import generator
from remnant.probes import transcript_costs
from remnant.records import Record
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.one_run.measure import measure_one_run, one_run_curve
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    SpeechDataSettings,
    UtteranceSettings,
)
from remnant.tasks.planted_speech import InTurns, plant_speech
from remnant.tasks.speech import TASK, fit_recognisers
from remnant.tasks.speech_corpus import load_speech

from ..forgetting.speech_patterns import BANDS, patterns
from .conftest import SPEECH as STUDY
from .conftest import SPEECH_PLAN as PLAN


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planned(**changes):
    return made(plan=dataclasses.replace(PLAN, **changes))


def planted_speech(study=STUDY):
    speak = patterns(study.data)
    return plant_speech(study, load_speech(study.data, Execution(), speak), speak)


def wrong(**changes):
    """The study with wrong transcripts on utterances of the corpus."""
    return made(
        data=dataclasses.replace(STUDY.data, words=6, utterances=140),
        canaries=UtteranceSettings(kind="wrong", words=(2,), commonest=12),
        **changes,
    )


def test_what_was_planted_is_found_and_what_was_not_is_not_yet(spoken_run):
    record = Record.open(spoken_run)
    found = record.results()["one_run"]
    rows = list(zip(found["cohort"], found["repeats"], found["checkpoint"], strict=True))
    for window, end in ((0, 89), (1, 139)):
        assert found["low"][rows.index((window, 8, end))] > 0.5, "right after the window"
        assert found["effect_low"][rows.index((window, 8, end))] > 0, "planting saves bits"
    assert {(window, uses) for window, uses, _ in rows} == {(0, 2), (0, 8), (1, 2), (1, 8)}
    scores = record.array("scores")
    assert scores.shape == (len(STUDY.probe_steps()), 88)
    assert scores.max() <= 0, "a score is minus a cost"
    before = scores[STUDY.probe_steps().index(110)]
    later, never = PLAN.cohort_of == 1, PLAN.cohort_of == -1
    assert abs(before[later].mean() - before[never].mean()) < before[never].std()
    task = record.results()["task"]
    assert task["p_value"] < 1e-3
    assert task["character_error_rate"] < task["swapped_error_rate"]


def test_the_curve_is_that_of_the_scores(spoken_run, tmp_path):
    record = Record.open(spoken_run)
    again = one_run_curve(STUDY, record.array("scores"))
    found = record.results()
    for name in ("lags", "success", "low", "high", "effect", "repeats"):
        np.testing.assert_allclose(found["one_run"][name], getattr(again, name))
    assert found["verdict"]["outcome"] == again.verdict(0.9).outcome
    shutil.copytree(spoken_run, tmp_path / "copy")
    with Record.open(tmp_path / "copy", write=True) as copy:
        measure_one_run(copy, STUDY)
    assert Record.open(tmp_path / "copy").results() == found


def plain_loop(study, planted, steps):
    """Train one Conformer as anybody would, and return the cost of each canary at some steps."""
    torch.manual_seed(0)
    build = {"bands": BANDS, **study.model.options}
    model = PackedRecogniser(conformer(planted.tokens, **build)).double()
    state = fit_recognisers(study, study.plan, planted, Execution(), steps=0)[1].state_dict(0)
    model.load_state_dict(state)
    inputs, targets = planted.inputs.double(), planted.targets
    optimizer = torch.optim.Adam(model.parameters(), **study.training.options)
    schedule = study.plan.schedule(examples=planted.examples)
    found = {}
    for step in range(max(steps) + 1):
        if step in steps:
            found[step] = costs_by_hand(model.recogniser, planted)
        rows = schedule.batch(step)[0][0]
        places = [
            int(planted.second[row]) if (place + step) % 2 == 1 else int(row)
            for place, row in enumerate(rows)
        ]
        model.train()
        optimizer.zero_grad()
        ctc_loss(model(inputs[places]), targets[places]).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), study.training.clip)
        optimizer.step()
    return np.stack([found[step] for step in steps])


def costs_by_hand(recogniser, planted):
    """Return the mean cost of the sounds of each canary, one sound at a time."""
    recogniser.eval()
    asked = planted.probed[0]
    costs = [[] for _ in range(asked.items)]
    for place, item in enumerate(asked.item.tolist()):
        frames = int(asked.inputs[place, :, 0].sum())
        _, count, *tokens = asked.targets[place].tolist()
        features = asked.inputs[place, :frames, 1:].double()
        (cost,) = transcript_costs(recogniser, features=[features], transcripts=[tokens[:count]])[0]
        costs[item].append(cost)
    assert {len(own) for own in costs} == {1, 2}
    return np.array([np.mean(own) for own in costs])


def test_scores_are_those_of_a_plain_loop():
    plan = dataclasses.replace(
        PLAN,
        starts=(2,),
        window=8,
        repeats=(1,),
        canaries=24,
        never=8,
        steps=14,
        precision="float64",
    )
    study = made(plan=plan, attack=OneRunSettings(success="auc", limit=0.9, checkpoints=3))
    planted = planted_speech(study)
    steps = (2, 10)
    trained = TASK.train(study, plan, planted, Execution(), steps=steps)
    by_hand = plain_loop(study, planted, steps)
    np.testing.assert_allclose(trained.scores[:, 0], -by_hand, rtol=1e-7)
    assert np.abs(by_hand[1] - by_hand[0]).min() > 1e-3, "training changed them"


def test_canaries_and_controls_are_drawn_alike_and_apart_from_the_plan():
    planted = planted_speech()
    asked = planted.probed[0]
    assert asked.items == PLAN.canaries
    said = {item: tuple(asked.targets[place].tolist()) for place, item in enumerate(asked.item)}
    transcripts = {row[2 : 2 + row[1]] for row in said.values()}
    assert len(transcripts) == PLAN.canaries, "no two transcripts are alike"
    clean = {tuple(row[2 : 2 + row[1]]) for row in planted.targets[: planted.examples].tolist()}
    assert not clean & transcripts
    cells = STUDY.canary_cells
    counts = [cells.count(cell) for cell in STUDY.canaries.cells]
    assert set(counts) == {11}, "all kinds in turn"
    stored = planted.targets[planted.examples :][: PLAN.canaries].tolist()
    firsts = [asked.targets[np.flatnonzero(asked.item == n)[0]].tolist() for n in range(88)]
    assert [row[1:] for row in stored] == [row[1:] for row in firsts], "row n + j is canary j"
    streams = [
        generator(*key).integers(2**31, size=8).tolist()
        for key in (STUDY.draw_key, *((PLAN.seed, COHORTS, part) for part in range(4)))
    ]
    assert len(set(map(tuple, streams))) == 5, "the plan draws from other streams"
    others = planted_speech(planned(never=44, repeats=(2,)))
    assert torch.equal(planted.inputs, others.inputs), "whoever is planted"
    assert torch.equal(planted.targets, others.targets)


def test_two_speakers_take_turns_and_each_use_is_in_the_ledger(spoken_run):
    planted = planted_speech()
    plain = PLAN.schedule(examples=planted.examples)
    schedule = InTurns(plain, planted.second)
    seconds = planted.examples + PLAN.canaries
    used = np.zeros((2, PLAN.canaries), dtype=int)
    for step in range(PLAN.total_steps):
        turns, rows = schedule.batch(step)[0][0], plain.batch(step)[0][0]
        for turn, row in zip(turns, rows, strict=True):
            assert turn in (row, planted.second[row])
            if row >= planted.examples:
                used[int(turn >= seconds), row - planted.examples] += 1
    np.testing.assert_array_equal(used.sum(axis=0), PLAN.repeats_of)
    two = np.array([cell.speakers == 2 for cell in STUDY.canary_cells])
    assert not used[1, ~two].any()
    both = two & (PLAN.repeats_of == 8)
    assert (np.minimum(*used[:, both]) > 0).mean() > 0.8
    ledger = Record.open(spoken_run).ledger()
    assert ledger["uses"].sum() == PLAN.repeats_of.sum()
    assert set(ledger["canary"].tolist()) == set(np.flatnonzero(PLAN.cohort_of >= 0).tolist())


def test_the_same_study_gives_the_same_bits_elsewhere(
    spoken_run, tmp_path, pattern_speech, elsewhere, same_run
):
    run_study(STUDY, tmp_path / "elsewhere", elsewhere())
    same_run(spoken_run, tmp_path / "elsewhere")


def test_no_canary_is_in_the_record(spoken_run):
    record = Record.open(spoken_run)
    words = json.dumps(record.results()) + json.dumps(record.summary())
    for canary in planted_speech().planted:
        assert canary.transcript not in words
    kept = {path.name for path in spoken_run.iterdir()}
    assert kept <= {"arrays", "record.lock", "record.sqlite"}


def test_wrong_transcripts_are_taken_out_of_the_clean_speech():
    planted = planted_speech(wrong())
    assert planted.examples == 140 - 88, "no model is trained on their right transcripts"
    sounds = planted.inputs.abs().sum(dim=(1, 2)).tolist()
    assert not set(sounds[: planted.examples]) & set(sounds[planted.examples :])
    assert len(planted.inputs) == 140
    assert {cell.speakers for cell in wrong().canary_cells} == {1}


@pytest.mark.parametrize(("changes", "said"), [({}, True), ({"steps": 180}, False)])
def test_a_run_that_ends_soon_after_its_last_window_says_so(
    spoken_run, tmp_path, monkeypatch, changes, said
):
    shutil.copytree(spoken_run, tmp_path / "copy")
    study = planned(**changes)
    scores = np.zeros((len(study.probe_steps()), PLAN.canaries))
    with Record.open(tmp_path / "copy", write=True) as record:
        monkeypatch.setattr(record, "array", lambda name: {"scores": scores}[name])
        measure_one_run(record, study)
    untested = " ".join(Record.open(tmp_path / "copy").results()["scope"]["not_tested"])
    assert ("30 steps after the last window, which hides" in untested) is said


def passing(monkeypatch):
    verdict = Verdict("PASS", "Under the limit.", "At most 0.6.", 0.9, 80.0)
    monkeypatch.setattr(OneRunForgetting, "verdict", lambda *_: verdict)


def test_a_model_that_learnt_nothing_does_not_pass(tmp_path, monkeypatch, pattern_speech):
    idle = made(training=TrainingSettings(optimizer="sgd", options={"lr": 1e-12}))
    run_study(idle, tmp_path / "run", Execution())
    assert Record.open(tmp_path / "run").results()["verdict"]["outcome"] != "PASS"
    passing(monkeypatch)
    with Record.open(tmp_path / "run", write=True) as record:
        measure_one_run(record, idle)
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE", "not even where its curve would"
    assert "is no nearer to what was said" in verdict["claim"]


@pytest.mark.parametrize("seed", range(4))
def test_an_attack_that_sees_nothing_does_not_pass(spoken_run, tmp_path, monkeypatch, seed):
    shutil.copytree(spoken_run, tmp_path / "copy")
    shape = Record.open(spoken_run).array("scores").shape
    blind = np.random.default_rng(seed).normal(size=shape) if seed else np.zeros(shape)
    with Record.open(tmp_path / "copy", write=True) as record:
        monkeypatch.setattr(record, "array", lambda name: {"scores": blind}[name])
        measure_one_run(record, STUDY)
    verdict = Record.open(tmp_path / "copy").results()["verdict"]
    assert verdict["outcome"] != "PASS", verdict
    assert verdict["claim"].startswith("No claim")


def test_a_model_that_learnt_its_task_and_forgot_passes(spoken_run, tmp_path, monkeypatch):
    shutil.copytree(spoken_run, tmp_path / "copy")
    steps, rng = np.array(STUDY.probe_steps()), np.random.default_rng(0)
    scores = rng.normal(size=(len(steps), PLAN.canaries))
    fresh = (steps[:, None] - 1 >= PLAN.last_seen) & (PLAN.last_seen >= 0)
    scores += 4.0 * fresh * (steps[:, None] - 1 < PLAN.last_seen + 35)
    with Record.open(tmp_path / "copy", write=True) as record:
        monkeypatch.setattr(record, "array", lambda name: {"scores": scores}[name])
        measure_one_run(record, STUDY)
    verdict = Record.open(tmp_path / "copy").results()["verdict"]
    assert verdict["outcome"] == "PASS", verdict


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("plan", "seed", 1),
        ("plan", "repeats", (1, 8)),
        ("data", "utterances", 81),
        ("data", "seed", 1),
        ("canaries", "kind", "wrong"),
        ("canaries", "words", (3, 4)),
        ("canaries", "commonest", 300),
        ("canaries", "voices", ("male", "female")),
        ("canaries", "speakers", (1,)),
        ("model", "options", {"width": 32}),
        ("training", "clip", 1.0),
        ("attack", "calibrate", False),
        ("attack", "checkpoints", 6),
    ],
)
def test_the_fingerprint_moves_with_every_field(part, field, value):
    changed = made(**{part: dataclasses.replace(getattr(STUDY, part), **{field: value})})
    assert changed.fingerprint != STUDY.fingerprint
    assert study_from(json.loads(json.dumps(changed.to_dict()))) == changed


def test_a_dry_run_needs_no_synthesizer_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = estimate_study(STUDY, Execution())
    assert (found["members"], found["steps"]) == (1, 170)
    assert found["minutes"] > 0
    assert [group["steps"] for group in found["groups"]] == [170]
    assert not list(tmp_path.iterdir())
    with pytest.raises(MissingExtra, match="The synthesizer flite is not installed"):
        run_study(STUDY, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_the_estimate_counts_steps_checkpoints_and_sentences(a_minute_a_step, tmp_path):
    found = estimate_study(STUDY, Execution(data_folder=tmp_path))
    assert found["minutes"] == pytest.approx(170 + len(STUDY.probe_steps()), abs=1.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: made(attack=OneRunSettings(fpr=0.01)),
            NotEnoughEvidence,
            "plan.never=40 cannot place a threshold at attack.fpr=0.01; it takes at least 100",
        ),
        (
            lambda: made(attack=OneRunSettings(success="auc", limit=0.4)),
            PlanError,
            "attack.limit=0.4 is not above chance",
        ),
        (lambda: made(data=SpeechDataSettings(name="an4")), PlanError, "AN4, which has features"),
        (
            lambda: made(data=SpeechDataSettings(voices=("slt", "rms", "awb"))),
            PlanError,
            "1 female voices, and canaries.speakers needs 2",
        ),
        (lambda: UtteranceSettings(words=(2, 2)), PlanError, "not a list of different numbers"),
        (lambda: planned(never=87), PlanError, "leaves 1 for 4 cohorts"),
        (lambda: planned(starts=(60, 70)), PlanError, "at least window=30 apart"),
        (
            lambda: study_from(STUDY.to_dict() | {"canaries": {"references": 4}}),
            PlanError,
            "references",
        ),
    ],
)
def test_bad_recipes_are_one_sentence(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (
            dataclasses.replace(wrong(), data=dataclasses.replace(STUDY.data, words=6)),
            "needs 88 utterances of at least .* for canaries, and the corpus has",
        ),
        (
            made(canaries=UtteranceSettings(words=(1,), commonest=5)),
            "needs 88 transcripts of 1 words, and 5 words make 5",
        ),
        (made(data=dataclasses.replace(STUDY.data, seconds=0.01)), "no utterance of at most"),
        (
            dataclasses.replace(wrong(), data=SpeechDataSettings(name="an4")),
            "no folder was given",
        ),
    ],
)
def test_what_cannot_be_planted_is_refused(study, words, tmp_path, pattern_speech):
    with pytest.raises((PlanError, InvalidInput), match=words):
        run_study(study, tmp_path / "run", Execution())
    assert not Path(tmp_path / "run").exists()
