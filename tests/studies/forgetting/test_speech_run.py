"""The study on patterns and on real files: directions, controls, resuming, what it refuses."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import wavfile

from remnant import InjectPlan
from remnant.errors import InvalidInput, MissingExtra, PlanError
from remnant.models import conformer
from remnant.population import Population
from remnant.probes import transcript_costs
from remnant.records import Record
from remnant.records.typed import plain
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.forgetting.exposure_curves import calibrated_bits
from remnant.studies.forgetting.sequence_training import TrialProbes
from remnant.studies.forgetting.speech_measure import measure_speech_forgetting
from remnant.studies.forgetting.speech_recipe import (
    SpeechAttackSettings,
    SpeechCanarySettings,
)
from remnant.studies.reporting import read_page
from remnant.studies.shared.gates import not_learnt
from remnant.studies.shared.result_parts import SpeechTask
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    RecogniserSettings,
    SpeechDataSettings,
)
from remnant.studies.shared.variants import Variant
from remnant.tasks import speech
from remnant.tasks.planted_speech import InTurns, plant_speech
from remnant.tasks.speech import (
    recogniser_maker,
    recognition,
    utterance_signals,
    validation_edits,
    validation_lengths,
)
from remnant.tasks.speech_corpus import (
    Heard,
    SpeechCorpus,
    cache_folder,
    load_speech,
    speaker,
)

from .speech_patterns import BANDS, PLAN, STUDY, patterns


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planned(**changes):
    return made(plan=dataclasses.replace(PLAN, **changes))


def planted_speech(study=STUDY):
    speak = patterns(study.data)
    return plant_speech(study, load_speech(study.data, Execution(), speak), speak)


def test_planted_utterances_are_exposed_and_the_controls_stay_at_chance(spoken_run):
    found = Record.open(spoken_run).results()
    curve, aa = found["curve_exposure"], found["curve_exposure_aa"]
    assert curve["low"][0] > curve["chance"], "what was planted is exposed"
    assert (curve["trials"], curve["n_canaries"], curve["n_references"]) == (3, 16, 40)
    inside = [low <= aa["chance"] <= high for low, high in zip(aa["low"], aa["high"], strict=True)]
    assert all(inside), aa
    assert curve["value"][-1] < curve["value"][0], "it is forgotten"
    for name in ("curve", "curve_tpr", "curve_auc", "curve_accuracy", "curve_aa"):
        assert 0 <= found[name]["value"][-1] <= 1
    assert found["curve_auc"]["value"][0] > 0.7
    task = found["task"]
    assert task["character_error_rate"] < task["swapped_error_rate"] - 0.2
    assert task["p_value"] < 1e-3
    assert task["utterances"] == 40
    errors = found["errors"]
    assert errors["seen_bits"][0] < errors["unseen_bits"][0]
    assert errors["seen_error"][0] < errors["unseen_error"][0]
    assert found["compare"] == {"absent": "the recipe compares nothing"}
    assert found["sounds"] == {"absent": "canaries can be heard only with --reveal"}


def test_groups_are_ranked_among_references_of_their_kind(spoken_run):
    found = Record.open(spoken_run).results()
    labels = {
        name: [series["label"] for series in found[name]["series"]]
        for name in ("by_uses", "by_words", "by_voice", "by_speakers")
    }
    assert labels == {
        "by_uses": ["seen 16 times", "seen 128 times"],
        "by_words": ["2 words", "3 words"],
        "by_voice": ["female voice", "male voice"],
        "by_speakers": ["one speaker", "two speakers"],
    }
    once, often = found["by_uses"]["series"]
    assert often["value"][0] > once["value"][0], "more copies expose more"
    (gap,) = found["by_uses"]["differences"]
    assert gap["mean_low"] <= gap["mean"] <= gap["mean_high"]
    cells, references = STUDY.canary_cells, STUDY.reference_cells
    copies = PLAN.copies_of
    for words in (2, 3):
        for voice in ("female", "male"):
            for speakers in (1, 2):
                kind = (words, voice, speakers)
                who = [i for i, c in enumerate(cells) if (c.words, c.voice, c.speakers) == kind]
                assert sorted(copies[who]) == [1, 8], "copies are dealt evenly to all kinds"
                assert sum((c.words, c.voice, c.speakers) == kind for c in references) == 5


def test_the_ledger_says_who_saw_what(spoken_run):
    ledger = Record.open(spoken_run).ledger()
    assert set(ledger["member"].tolist()) == {0, 3, 6}
    assert ledger["step"].max() < 80
    assert ledger["uses"].sum() == 3 * 16 * (8 * 1 + 8 * 8)


def test_results_can_be_measured_again_from_the_stored_costs(spoken_run, tmp_path):
    shutil.copytree(spoken_run, tmp_path / "copy")
    before = Record.open(tmp_path / "copy").results()
    characters = planted_speech().canary_characters
    with Record.open(tmp_path / "copy", write=True) as record:
        measure_speech_forgetting(record, STUDY, examples=80, characters=characters)
    assert Record.open(tmp_path / "copy").results() == before


def test_costs_are_those_of_the_front_door():
    planted = planted_speech()
    population = Population(recogniser_maker(STUDY, planted), seeds=[3])
    asked = planted.probed[1]
    bits = utterance_signals(population, asked)[0, 0].numpy()
    alone = conformer(planted.tokens, bands=BANDS, **STUDY.model.options)
    state = population.state_dict(0)
    alone.load_state_dict({name.partition(".")[2]: tensor for name, tensor in state.items()})
    rows = [0, 4, 20]  # of items with one speaker, and with two
    for item in rows:
        sounds = np.flatnonzero(asked.item == item)
        costs = []
        for place in sounds:
            frames = int(asked.inputs[place, :, 0].sum())
            _, count, *tokens = asked.targets[place].tolist()
            features = asked.inputs[place, :frames, 1:]
            (cost,) = transcript_costs(alone, features=[features], transcripts=[tokens[:count]])[0]
            costs.append(cost)
        assert bits[item] == pytest.approx(np.mean(costs), rel=1e-5)
    assert {np.count_nonzero(asked.item == item) for item in range(asked.items)} == {1, 2}


def test_other_twins_are_the_unplanted_members_of_the_other_trials():
    planted = planted_speech()
    population = Population(recogniser_maker(STUDY, planted), seeds=list(range(9)))
    found = TrialProbes(speech.TASK, PLAN, planted).other_twins(population)
    assert found.shape == (3, planted.probed[0].items)
    for trial, others in ((0, [4, 5, 7, 8]), (2, [1, 2, 4, 5])):
        bits = utterance_signals(population, planted.probed[trial])[others, 0].mean(0)
        np.testing.assert_allclose(found[trial], bits, rtol=1e-5)


def test_two_speakers_take_turns():
    planted = planted_speech()
    schedule = InTurns(PLAN.schedule(examples=planted.examples), planted.second)
    first = planted.examples + 3 * PLAN.canaries  # rows of second speakers begin here
    used = np.zeros(len(planted.second), dtype=int)
    for step in range(schedule.steps):
        plain = PLAN.schedule(examples=planted.examples).batch(step)[0]
        turns = schedule.batch(step)[0]
        moved = turns != plain
        assert np.all(turns[moved] >= first)
        np.testing.assert_array_equal(turns[moved], planted.second[plain[moved]])
        used += np.bincount(turns.ravel(), minlength=len(used))
    two = np.flatnonzero(planted.second[:first] != np.arange(first))
    assert len(two) == 3 * PLAN.canaries / 2
    both = used[two] + used[planted.second[two]]
    assert set(both.tolist()) == {16, 128}
    assert np.all(used[two[both == 128]] > 40), "neither speaker speaks all copies"
    assert np.all(used[planted.second[two[both == 128]]] > 40)
    sounds = planted.inputs[two], planted.inputs[planted.second[two]]
    assert not torch.equal(*sounds)
    assert torch.equal(planted.targets[two][:, 1:], planted.targets[planted.second[two]][:, 1:])


def test_no_canary_is_in_the_record(spoken_run):
    record = Record.open(spoken_run)
    words = json.dumps(record.results()) + json.dumps(record.summary())
    for canary in planted_speech().planted:
        assert canary.transcript not in words
    kept = {path.name for path in spoken_run.iterdir()}
    assert kept <= {"arrays", "record.lock", "record.sqlite"}


def test_transcripts_are_drawn_alike_and_none_is_trained_on_before():
    planted = planted_speech()
    probed = [
        tuple(row[2 : 2 + row[1]]) for asked in planted.probed for row in asked.targets.tolist()
    ]
    items = {
        (trial, item) for trial, asked in enumerate(planted.probed) for item in asked.item.tolist()
    }
    assert len(items) == 3 * 56
    assert len(set(probed)) == 3 * 56, "no two transcripts are alike"
    clean = {tuple(row[2 : 2 + row[1]]) for row in planted.targets[: planted.examples].tolist()}
    assert not clean & set(probed)


def wrong(words=(2,), references=24, **changes):
    return made(
        data=dataclasses.replace(STUDY.data, words=6),
        canaries=SpeechCanarySettings(
            kind="wrong", words=words, commonest=12, references=references
        ),
        plan=dataclasses.replace(PLAN, canaries=8, copies=2, **changes),
        attack=SpeechAttackSettings(lags=(0, 30), limit=2.5),
        hidden=None,
    )


def test_wrong_transcripts_are_dealt_anew_in_every_trial():
    study = wrong(trials=2)
    speak = patterns(study.data)
    corpus = load_speech(study.data, Execution(), speak)
    planted = plant_speech(study, corpus, speak)
    assert planted.examples == 80 - 32, "no model is trained on the right transcripts of these"
    clean = planted.inputs[: planted.examples].abs().sum(dim=(1, 2)).tolist()
    for asked in planted.probed:
        assert len(asked.inputs) == 32
        assert len({round(x, 3) for x in asked.inputs.abs().sum(dim=(1, 2)).tolist()}) == 32
        assert not set(asked.inputs.abs().sum(dim=(1, 2)).tolist()) & set(clean)
    first, second = (asked.inputs[:8].abs().sum(dim=(1, 2)).tolist() for asked in planted.probed)
    assert set(first) != set(second)
    assert not torch.equal(planted.probed[0].targets[:, 2:], planted.probed[1].targets[:, 2:])


def test_inject_on_wrong_transcripts_calibrated_by_reference_models(tmp_path, pattern_speech):
    plan = InjectPlan(
        canaries=8, step=30, repeats=40, watch_steps=10, trials=2, batch=16, fresh_canaries=True
    )
    attack = SpeechAttackSettings(
        calibration="references", reference_models=2, lags=(0, 10), limit=2.5
    )
    study = dataclasses.replace(wrong(), plan=plan, attack=attack)
    run_study(study, tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    others = record.array("primary.reference_bits")
    assert others.shape == (2, 2, 2, 32)
    bits = record.array("primary.signals")[:, :, 0]
    canaries, _ = calibrated_bits(record, "primary", study, "planted")
    np.testing.assert_allclose(canaries[:, 1], bits[:, 3, :8] - others[:, :, 1, :8].mean(axis=1))
    found = record.results()
    assert found["curve_exposure"]["value"][0] > found["curve_exposure"]["chance"] + 1
    for name in ("by_voice", "by_speakers"):
        assert found[name] == {"absent": "the speakers are the corpus's own"}
    assert found["by_uses"] == {"absent": "all canaries were planted equally often"}
    assert found["by_words"] == {"absent": "all canaries are of one kind"}
    assert "2 reference models, each trained on a random 80%" in found["scope"]["tested"][1]


def test_variants_are_drawn_beside_the_study_and_a_dry_run_needs_no_synthesizer(
    tmp_path, monkeypatch
):
    earlier = planned(step=40)
    study = made(label="at 80", title="When", compare=(Variant("at 40", earlier),))
    assert study_from(json.loads(json.dumps(study.to_dict()))) == study
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    estimate = estimate_study(study, Execution())
    assert estimate["members"] == 9 + 9
    assert estimate["steps"] == 110 + 70
    assert estimate["minutes"] > 0
    assert not list(tmp_path.iterdir()), "a dry run writes nothing"
    with pytest.raises(MissingExtra, match="The synthesizer flite is not installed"):
        run_study(study, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_models_that_learnt_nothing_never_pass(tmp_path, pattern_speech):
    idle = made(
        plan=dataclasses.replace(PLAN, trials=6, step=4, watch_steps=2, copies=1),
        training=TrainingSettings(optimizer="sgd", options={"lr": 1e-9}),
        attack=SpeechAttackSettings(lags=(0, 2), limit=4.0),
    )
    run_study(idle, tmp_path / "run", Execution())
    found = Record.open(tmp_path / "run").results()
    assert found["verdict"]["outcome"] != "PASS"
    assert found["task"]["p_value"] > 0.001
    for row in found["hidden"]["disturbances"]:
        assert (row["reading"], row["useful"]) == ("not found", False)
        assert row["exposure_low"] <= found["curve_exposure"]["chance"]


def test_an_attack_that_sees_nothing_never_passes(spoken_run, tmp_path, monkeypatch):
    shutil.copytree(spoken_run, tmp_path / "copy")
    rng = np.random.default_rng(0)
    shape = Record.open(spoken_run).array("primary.signals").shape
    for blind in (np.ones(shape), rng.normal(size=shape)):
        with Record.open(tmp_path / "copy", write=True) as record:
            kept = {
                "primary.signals": blind,
                "primary.hidden": np.concatenate([blind[-1:, :, 0], blind[:, :, 0]]),
                "primary.hidden_task": rng.random((4, 9, 4 * 40)),
                "primary.twins_bits": blind[:, :3, 0],
                "primary.hidden_twins": np.concatenate([blind[-1:, :3, 0], blind[:, :3, 0]]),
            }
            monkeypatch.setattr(record, "array", kept.__getitem__)
            study = made(attack=dataclasses.replace(STUDY.attack, limit=4.0))
            measure_speech_forgetting(record, study, examples=80, characters=100)
        found = Record.open(tmp_path / "copy").results()
        assert found["verdict"]["outcome"] != "PASS", found["verdict"]
        readings = {row["reading"] for row in found["hidden"]["disturbances"]}
        assert readings == {"not found"}
        back = found["returning"]
        assert "absent" in back or back["pvalue"] > 0.05


def test_random_weights_seldom_count_as_trained():
    planted = planted_speech()
    characters, words = validation_lengths(planted)
    population = Population(recogniser_maker(STUDY, planted), seeds=list(range(60)))
    edits = validation_edits(population, planted)
    p_values = [
        recognition(edits[[member]], characters=characters, words=words)["p_value"]
        for member in range(60)
    ]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.12  # 5 %, and four in sixty more by chance


def test_hearing_nothing_the_same_or_only_the_length_does_not_count_as_trained(monkeypatch):
    planted = planted_speech()
    characters, words = validation_lengths(planted)
    said = speech.said_tokens(planted.validation.targets)
    frequent = int(np.bincount(np.concatenate(said)).argmax())
    rng = np.random.default_rng(0)

    def p_value(heard):
        monkeypatch.setattr(speech, "heard_tokens", lambda models, asked: [heard])
        edits = validation_edits(None, planted)
        return recognition(edits, characters=characters, words=words)["p_value"]

    assert p_value([[] for _ in said]) == 1.0
    assert p_value([[frequent] * 4 for _ in said]) == 1.0
    assert p_value([[frequent] * len(tokens) for tokens in said]) == 1.0
    lengths = [max(1, len(tokens) + round(rng.normal())) for tokens in said]
    assert p_value([[frequent] * length for length in lengths]) > 0.05
    assert p_value([said[place] for place in rng.permutation(len(said))]) > 0.05
    assert p_value(said) < 0.05
    # Half of the characters are heard right.
    heard = [[token if rng.random() < 0.5 else frequent for token in tokens] for tokens in said]
    assert p_value(heard) < 0.05


def test_too_few_pairs_of_equal_length_are_no_model_that_learnt_nothing():
    task = SpeechTask(
        character_error_rate=0.1,
        word_error_rate=0.2,
        swapped_error_rate=0.8,
        utterances=9,
        p_value=0.25,
        pairs=2,
    )
    assert "only 2 pairs" in not_learnt(plain(task))
    assert "raise data.validation" in not_learnt(plain(task))
    more = dataclasses.replace(task, pairs=30)
    assert "did not learn their task" in not_learnt(plain(more))


def test_a_task_is_what_its_edits_say():
    edits = np.zeros((2, 4, 5))
    edits[0] = [[1, 0, 1, 0, 2], [4, 4, 4, 4, 4], [1, 0, 1, 0, 1], [2, 1, 1, 3, 2]]
    task = recognition(edits[[0]], characters=20, words=5)
    assert (task["character_error_rate"], task["word_error_rate"]) == (0.2, 0.6)
    assert task["swapped_error_rate"] == 1.0
    assert task["p_value"] == pytest.approx(2.0**-5)
    assert recognition(edits[[1]], characters=20, words=5)["p_value"] == 1.0


def wav_folder(home: Path, sounds: dict[str, tuple[np.ndarray, str]], rate: int = 16_000) -> Path:
    home.mkdir(parents=True)
    with (home / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "transcription"])
        for name, (sound, said) in sounds.items():
            wavfile.write(home / name, rate, sound)
            table.writerow([name, said])
    return home


def noise(seconds: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, int(16_000 * seconds)).astype(np.float32)


def some_sounds(count: int = 12) -> dict[str, tuple[np.ndarray, str]]:
    said = ["go left", "go right", "turn left", "stop"]
    return {f"{n}.wav": (noise(1.0, n), said[n % 4]) for n in range(count)}


def own(path: Path, **changes):
    return SpeechDataSettings(name="files", path=str(path), validation=4, bands=BANDS, **changes)


def test_own_files_are_trained_on(tmp_path):
    home = wav_folder(tmp_path / "own", some_sounds(40))
    plan = dataclasses.replace(PLAN, canaries=4, copies=1, trials=1, step=8, watch_steps=2)
    study = dataclasses.replace(
        wrong(words=(3,), references=12),
        plan=dataclasses.replace(plan, fresh_canaries=False),
        data=own(home),
        attack=SpeechAttackSettings(calibration="none", lags=(0, 2), limit=2.5),
    )
    run_study(study, tmp_path / "run", Execution(reveal=True))
    record = Record.open(tmp_path / "run")
    assert list(record.provenance["data_files"]) == [str(home)]
    found = record.results()
    assert found["task"]["utterances"] == 4
    assert len(found["sounds"]["sounds"]) == 3
    assert record.array("sound1").dtype == np.int16
    assert record.execution["reveal"] is True
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    data = dict(read_page(record).audited)["Data"]
    assert data.startswith(f"files, path {home}, validation 4, voices ")
    assert "standard-library" not in data


SHORT = (noise(0.15), "a transcript that is far too long for its sound")


@pytest.mark.parametrize(
    ("sounds", "said"),
    [
        ({"short.wav": SHORT}, "short.wav is too short for its transcript: 13 frames"),
        ({"tiny.wav": (noise(0.01), "no")}, "tiny.wav: sound has 160 samples; a window has 400"),
        ({"still.wav": (np.zeros(16_000, "f4"), "stop")}, "still.wav is silent"),
        ({"nan.wav": (np.full(16_000, np.nan, "f4"), "stop")}, "nan.wav holds samples that are"),
        ({"two.wav": (np.ones((16_000, 2), "f4"), "stop")}, "two.wav has 2 channels"),
    ],
)
def test_a_bad_recording_is_named(tmp_path, sounds, said):
    home = wav_folder(tmp_path / "own", some_sounds() | sounds)
    study = dataclasses.replace(wrong(words=(3,)), data=own(home))
    with pytest.raises(InvalidInput, match=said):
        run_study(study, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_another_rate_and_a_broken_file_are_named(tmp_path):
    home = wav_folder(tmp_path / "slow", some_sounds(), rate=8_000)
    study = dataclasses.replace(wrong(words=(3,)), data=own(home))
    with pytest.raises(InvalidInput, match=r"0\.wav has 8000 samples a second; 16000 are needed"):
        run_study(study, tmp_path / "run", Execution())
    home = wav_folder(tmp_path / "cut", some_sounds())
    (home / "3.wav").write_bytes((home / "3.wav").read_bytes()[:1000])
    study = dataclasses.replace(wrong(words=(3,)), data=own(home))
    with pytest.raises(InvalidInput, match=r"3\.wav is not a whole WAV file"):
        run_study(study, tmp_path / "run", Execution())


def test_a_character_that_no_training_transcript_has_is_named(tmp_path):
    home = wav_folder(tmp_path / "own", some_sounds(40))
    other = wav_folder(tmp_path / "other", {"odd.wav": (noise(1.0, 99), "zzz go")})
    study = dataclasses.replace(
        wrong(words=(3,), references=12), data=own(home, held_out=str(other))
    )
    with pytest.raises(InvalidInput, match=r"transcript of .*odd\.wav has 'z', which no"):
        run_study(study, tmp_path / "run", Execution())


@pytest.mark.parametrize("name", ["an4", "fsdd"])
def test_a_corpus_of_files_needs_its_folder(name):
    study = dataclasses.replace(wrong(), data=SpeechDataSettings(name=name))
    with pytest.raises(PlanError, match="no folder was given"):
        run_study(study, Path("nowhere"), Execution())


def test_numbers_of_digits_are_judged_by_a_speaker_whom_nobody_was_trained_on(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "fsdd" / "recordings"
    folder.mkdir(parents=True)
    for who in ("ada", "bo", "cy"):
        for take in range(12):
            sound = (3_000 * rng.normal(size=4_000)).astype(np.int16)
            wavfile.write(folder / f"{take % 10}_{who}_{take}.wav", 8_000, sound)
    corpus = load_speech(
        SpeechDataSettings(name="fsdd", words=3), Execution(data_folder=tmp_path), None
    )
    assert {one.path.stem.split("_")[1] for one in corpus.clean} == {"ada", "bo"}
    assert {one.path.stem.split("_")[1] for one in corpus.validation} == {"cy"}
    assert [len(corpus.clean), len(corpus.validation)] == [8, 4]
    assert {len(one.transcript.split()) for one in corpus.clean} == {3}
    with pytest.raises(PlanError, match="no numbers of 13 digits by two speakers"):
        load_speech(
            SpeechDataSettings(name="fsdd", words=13), Execution(data_folder=tmp_path), None
        )


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("plan", "copies", (1, 2)),
        ("data", "utterances", 81),
        ("data", "seconds", 3.0),
        ("data", "validation", 17),
        ("data", "words", 3),
        ("data", "commonest", 7),
        ("data", "sentences", "text"),
        ("data", "voices", ("slt", "en-us+f1", "rms", "awb")),
        ("data", "bands", 9),
        ("data", "seed", 1),
        ("canaries", "kind", "wrong"),
        ("canaries", "words", (3, 4)),
        ("canaries", "commonest", 300),
        ("canaries", "voices", ("male", "female")),
        ("canaries", "references", 48),
        ("model", "options", {"width": 32}),
        ("attack", "calibration", "none"),
    ],
)
def test_the_fingerprint_moves_with_every_field(part, field, value):
    changed = made(**{part: dataclasses.replace(getattr(STUDY, part), **{field: value})})
    assert changed.fingerprint != STUDY.fingerprint
    assert study_from(json.loads(json.dumps(changed.to_dict()))) == changed


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SpeechDataSettings(name="radio"), "data.name='radio'"),
        (lambda: SpeechDataSettings(name="files"), "data.path is needed"),
        (lambda: SpeechDataSettings(path="a"), 'data.path needs data.name = "files"'),
        (lambda: SpeechDataSettings(voices=("hal",)), "data.voices=hal is not one of slt"),
        (lambda: SpeechCanarySettings(words=()), "canaries.words"),
        (lambda: SpeechCanarySettings(words=(2, 2)), "not a list of different numbers"),
        (lambda: SpeechCanarySettings(voices=("alto",)), "canaries.voices"),
        (lambda: SpeechCanarySettings(speakers=(3,)), "canaries.speakers"),
        (lambda: SpeechCanarySettings(speakers=()), "canaries.speakers"),
        (
            lambda: RecogniserSettings(options={"depth": 2}),
            "conformer has no option 'depth'; it has",
        ),
        (
            lambda: RecogniserSettings(options={"bands": 2}),
            "conformer has no option 'bands'; it has",
        ),
        (lambda: RecogniserSettings(options={"width": -1}), "model.options.width=-1"),
        (lambda: planned(canaries=20), "plan.canaries=20 cannot be dealt evenly to 16 kinds"),
        (
            lambda: made(canaries=SpeechCanarySettings(words=(2, 3), references=41)),
            "canaries.references=41 cannot be dealt evenly to 8 kinds",
        ),
        (lambda: made(data=SpeechDataSettings(name="an4")), "AN4, which has features, not sound"),
        (lambda: made(data=SpeechDataSettings(name="fsdd")), "FSDD, which has 8 000 samples"),
        (
            lambda: made(data=SpeechDataSettings(voices=("slt", "rms", "awb"))),
            "1 female voices, and canaries.speakers needs 2",
        ),
        (lambda: planned(controls=3), "plan.controls=3"),
        (lambda: made(attack=SpeechAttackSettings(limit=9.0)), "limit=9 is not between"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(PlanError, match=words):
        make()


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (wrong(words=(40,)), "utterances of at least"),
        (wrong(words=(3,), references=96), "needs 104 utterances"),
        (
            made(canaries=SpeechCanarySettings(words=(1, 2), commonest=5, references=40)),
            "transcripts of 1 words, and 5 words make 5",
        ),
        (made(data=dataclasses.replace(STUDY.data, seconds=0.01)), "no utterance of at most"),
        (made(data=dataclasses.replace(STUDY.data, text="a.txt")), "read from a file"),
    ],
)
def test_what_cannot_be_planted_is_refused(study, words, tmp_path, pattern_speech):
    with pytest.raises((PlanError, InvalidInput), match=words):
        run_study(study, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_real_voices_are_kept_and_spoken_once(tmp_path):
    settings = SpeechDataSettings(utterances=3, validation=1, words=1, voices=("kal16",))
    execution = Execution(data_folder=tmp_path)
    seen = []
    speak = speaker(settings, execution, lambda done, of: seen.append((done, of)))
    corpus = load_speech(settings, execution, speak)
    assert isinstance(corpus, SpeechCorpus)
    assert isinstance(corpus.clean[0], Heard)
    assert corpus.clean[0].features.shape[1] == 40
    assert seen[-1] == (4, 4)
    assert len(list((tmp_path / "speech").glob("*.npy"))) == len(
        {one.path for one in (*corpus.clean, *corpus.validation)}
    )
    assert cache_folder(execution) == tmp_path / "speech"
