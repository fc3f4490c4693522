"""Gone or hidden in a study of speech: neighbours of both kinds, speakers in turn, the slow way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from remnant.errors import PlanError
from remnant.models.recogniser import ctc_loss
from remnant.plans.schedule import generator
from remnant.population import Population
from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.studies import Execution, estimate_study, run_study
from remnant.studies.forgetting.sequence_result import SpeechForgettingResult
from remnant.studies.forgetting.sequence_training import SequenceBench, TrialProbes
from remnant.studies.forgetting.speech_recipe import (
    SpeechAttackSettings,
    SpeechCanarySettings,
)
from remnant.studies.reporting import read_page
from remnant.studies.residual_memory.disturbances import disturb
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.tasks.planted_speech import plant_speech
from remnant.tasks.speech import (
    TASK,
    error_shares,
    utterance_bits,
    utterance_signals,
    validation_edits,
    validation_lengths,
)
from remnant.tasks.speech_corpus import load_speech

from .speech_patterns import PLAN, STUDY, patterns

NEIGHBOURS = STUDY.hidden.neighbours


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planted_speech(study=STUDY):
    speak = patterns(study.data)
    return plant_speech(study, load_speech(study.data, Execution(), speak), speak)


def wrong(**changes):
    return made(
        data=dataclasses.replace(STUDY.data, words=6),
        canaries=SpeechCanarySettings(kind="wrong", words=(2, 3), commonest=12, references=24),
        plan=dataclasses.replace(PLAN, canaries=8, copies=2, trials=2),
        attack=SpeechAttackSettings(lags=(0, 10, 30), limit=2.5),
        **changes,
    )


def sounds(inputs):
    """A number for each sound, whatever its padding."""
    return [round(value, 2) for value in inputs.double().abs().sum(dim=(1, 2)).tolist()]


def said(targets):
    return {tuple(row[2 : 2 + row[1]]) for row in targets.tolist()}


def test_every_disturbance_has_its_row(spoken_run):
    record = Record.open(spoken_run)
    found = record.results()
    hidden = found["hidden"]
    assert [(row["kind"], row["amount"]) for row in hidden["disturbances"]] == [
        *(("noise", 0.2), ("relearn", 1), ("relearn", 3))
    ]
    assert hidden["before"] == found["curve_auc"]["value"][-1]
    assert hidden["exposure"] == found["curve_exposure"]["value"][-1]
    assert hidden["character_error_rate"] == pytest.approx(found["task"]["character_error_rate"])
    for row in hidden["disturbances"]:
        assert row["aa_low"] <= row["aa"] <= row["aa_high"]
        assert row["character_error_rate"] > 0
        assert row["useful"] is True
    assert found["returning"]["checkpoints"] == 3
    bits = record.array("primary.hidden")
    assert bits.shape == (4, 9, 56)
    np.testing.assert_allclose(bits[0], record.array("primary.signals")[-1, :, 0], rtol=1e-12)
    for slot in (1, 2, 3):
        assert np.abs(bits[slot] - bits[0]).mean() > 0.1


def test_the_page_says_what_was_searched(spoken_run, page_text):
    text = page_text(read_page(Record.open(spoken_run)).blocks)
    for words in (
        "Weight noise, relearning on similar examples and a scan of later checkpoints were run",
        "AUC at lag 30, before and after the models were disturbed",
        "Undisturbed, the character error rate on validation utterances is",
        "Character error rate",
    ):
        assert words in text, words


def test_older_records_have_no_search(spoken_run, changed, page_text):
    record = changed(spoken_run, without={"hidden", "returning"})
    result = read_result(record, SpeechForgettingResult)
    assert result.hidden == result.returning == Absent("this run recorded none")
    assert "were not run" in page_text(read_page(record).blocks)


def test_spoken_neighbours_are_drawn_alike_and_change_nothing_else():
    planted, bare = planted_speech(), planted_speech(made(hidden=None))
    assert bare.neighbours is None
    torch.testing.assert_close(planted.inputs, bare.inputs)
    for own, other in zip(planted.probed, bare.probed, strict=True):
        torch.testing.assert_close(own.inputs, other.inputs)
        assert torch.equal(own.targets, other.targets)
    near = planted.neighbours
    rows = PLAN.trials * NEIGHBOURS
    assert (near.each, len(near.inputs)) == (NEIGHBOURS, len(near.second))
    two = near.second[:rows] != np.arange(rows)
    kinds = STUDY.neighbour_cells * PLAN.trials
    assert two.tolist() == [cell.speakers == 2 for cell in kinds]
    assert len(near.inputs) == rows + two.sum()
    assert torch.equal(near.targets[near.second[:rows]][:, 1:], near.targets[:rows][:, 1:])
    used = set().union(*(said(asked.targets) for asked in planted.probed))
    assert len(said(near.targets[:rows])) == rows, "no two are alike, in no trial"
    assert not used & said(near.targets)


def test_wrong_neighbours_are_taken_out_of_the_clean_utterances():
    study = wrong()
    planted = planted_speech(study)
    near = planted.neighbours
    assert planted.examples == 80 - 8 - 24 - NEIGHBOURS
    assert len(near.inputs) == 2 * NEIGHBOURS
    own = set(sounds(near.inputs))
    assert len(own) == NEIGHBOURS, "every trial has the same utterances, with new transcripts"
    assert len(said(near.targets)) == 2 * NEIGHBOURS
    for asked in planted.probed:
        assert not own & set(sounds(asked.inputs))
    assert not own & set(sounds(planted.inputs))
    with pytest.raises(PlanError, match=r"needs 82 utterances .* references and neighbours"):
        planted_speech(wrong(hidden=HiddenSettings(neighbours=50)))


def test_a_search_on_wrong_transcripts_runs(tmp_path, pattern_speech):
    study = wrong(hidden=HiddenSettings(noise=(), relearn_steps=(2,), neighbours=12))
    run_study(study, tmp_path / "run", Execution())
    (row,) = Record.open(tmp_path / "run").results()["hidden"]["disturbances"]
    assert (row["kind"], row["amount"]) == ("relearn", 2)


def test_the_search_is_what_one_model_after_another_would_show():
    """The slow definition: one recogniser, relearning by hand, two speakers in turn."""
    study = made(
        plan=dataclasses.replace(PLAN, trials=2, aa=False, batch=8),
        hidden=HiddenSettings(noise=(0.3,), draws=2, relearn_steps=(2,), neighbours=8),
        training=dataclasses.replace(STUDY.training, clip=None),
    )
    planted = planted_speech(study)
    make_model = TASK.maker(study, planted)
    population = Population(make_model, seeds=study.plan.seeds)
    states = [population.state_dict(member) for member in range(4)]
    probes = TrialProbes(TASK, study.plan, planted)
    bench = SequenceBench(make_model=make_model, states=states, plan=study.plan, probes=probes)
    lesson, items = TASK.lesson(study, planted), planted.probed[0].items
    found = disturb(bench, study.hidden, study.training, lesson)[..., :items]
    near = planted.neighbours
    for member in (0, 3):
        trial = member // 2
        asked = planted.probed[trial]

        class One:
            def __init__(self, model):
                self.model = model.eval()

            def logits(self, inputs):
                with torch.no_grad():
                    return self.model(inputs)[None]

        noisy = []
        for draw in range(2):
            rng = np.random.default_rng([study.plan.seed, 3, trial, draw])
            model = make_model()
            model.load_state_dict(states[member])
            with torch.no_grad():
                for weight in model.parameters():
                    normal = torch.from_numpy(np.asarray(rng.standard_normal(tuple(weight.shape))))
                    spread = weight.double().std(correction=0)
                    weight.copy_((weight.double() + 0.3 * spread * normal).float())
            noisy.append(utterance_bits(One(model), asked)[0])
        np.testing.assert_allclose(found[0, member], np.mean(noisy, axis=0), rtol=1e-3)
        model = make_model()
        model.load_state_dict(states[member])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(2):  # each step is one pass over the trial's eight neighbours
            rows = generator(study.plan.seed, 5, trial, step).permutation(8) + 8 * trial
            turns = (np.arange(8) + step) % 2 == 1
            rows = np.where(turns, near.second[rows], rows)
            optimizer.zero_grad()
            ctc_loss(model.train()(near.inputs[rows]), near.targets[rows]).mean().backward()
            optimizer.step()
        slow = utterance_bits(One(model), asked)[0]
        np.testing.assert_allclose(found[1, member], slow, rtol=5e-3)
        assert np.abs(found[1, member] - utterance_bits(One(make_model()), asked)).max() > 1


def test_costs_and_errors_of_the_search_are_those_of_the_curves():
    planted = planted_speech()
    models = Population(TASK.maker(STUDY, planted), seeds=list(range(9)))
    slow = utterance_signals(models, planted.probed[2])[6:9, 0].numpy()
    np.testing.assert_allclose(TrialProbes(TASK, PLAN, planted).costs(models)[6:9], slow, rtol=1e-6)
    shares = error_shares(models, planted).reshape(9, 4, -1)
    characters, words = validation_lengths(planted)
    edits = validation_edits(models, planted)
    np.testing.assert_allclose(shares[:, :2] * characters, edits[:, :2])
    np.testing.assert_allclose(shares[:, 2] * words, edits[:, 2])


def test_the_estimate_counts_the_search(a_minute_a_step, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bare = estimate_study(made(hidden=None), Execution())["minutes"]
    searched = estimate_study(STUDY, Execution())["minutes"]
    # Asked once as they are, twice with noise, twice while relearning for three steps, in each of
    # three trials: about costs, in four more of three members' places also about the other trials',
    # and task. The neighbours have to be spoken too, which takes less than a tenth of a minute.
    asked = (1 + 2 + 2) * (1 + 4 / 3 + 1)
    assert searched == pytest.approx(bare + 3 * (asked + 3), abs=0.1)
