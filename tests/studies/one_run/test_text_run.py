"""One run of a language model: scores, resuming, verdicts, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures import OneRunForgetting, Verdict
from remnant.plans.plan import COHORTS, SEQUENCES
from remnant.plans.schedule import generator
from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.report.blocks import Figure, Table, walk
from remnant.studies import Execution, estimate_study, read_recipe, run_study, study_from
from remnant.studies.one_run.measure import measure_one_run, one_run_curve
from remnant.studies.one_run.page import TEXT_TITLE
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.one_run.result import TextOneRunResult
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.reporting import read_page
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import SequenceSettings, TextFileSettings, TextSettings
from remnant.tasks.text import TASK

from .conftest import TEXT as STUDY
from .conftest import TEXT_PLAN as PLAN


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planned(**changes):
    return made(plan=dataclasses.replace(PLAN, **changes))


def planted_text(study=STUDY):
    return TASK.plant(study, TASK.load(study, Execution()), Execution())


def test_what_was_planted_is_found_and_what_was_not_is_not_yet(text_run):
    record = Record.open(text_run)
    found = record.results()["one_run"]
    rows = list(zip(found["cohort"], found["repeats"], found["checkpoint"], strict=True))
    for window, end in ((0, 99), (1, 159)):
        assert found["low"][rows.index((window, 12, end))] > 0.6, "right after the window"
        assert found["effect_low"][rows.index((window, 12, end))] > 0, "planting saves bits"
    assert {(window, uses) for window, uses, _ in rows} == {(0, 2), (0, 12), (1, 2), (1, 12)}
    scores = record.array("scores")
    assert scores.shape == (len(STUDY.probe_steps()), 120)
    assert scores.max() <= 0, "a score is minus a cost"
    before = scores[STUDY.probe_steps().index(120)]
    later, never = PLAN.cohort_of == 1, PLAN.cohort_of == -1
    assert abs(before[later].mean() - before[never].mean()) < before[never].std()
    task = record.results()["task"]
    assert task["validation_bits"] < 0.9 * task["uniform_bits"]
    assert task["token"] == "character"


def test_the_curve_is_that_of_the_scores(text_run, tmp_path):
    record = Record.open(text_run)
    again = one_run_curve(STUDY, record.array("scores"))
    found = record.results()
    for name in ("lags", "success", "low", "high", "effect", "repeats"):
        np.testing.assert_allclose(found["one_run"][name], getattr(again, name))
    assert found["verdict"]["outcome"] == again.verdict(0.9).outcome
    shutil.copytree(text_run, tmp_path / "copy")
    with Record.open(tmp_path / "copy", write=True) as copy:
        measure_one_run(copy, STUDY)
    assert Record.open(tmp_path / "copy").results() == found


def costs_by_hand(logits, windows, tokens):
    """Return what the last tokens of each window cost, one token at a time."""
    costs = []
    for row, window in zip(logits, windows, strict=True):
        places = range(len(window) - 1 - tokens, len(window) - 1)
        odds = [torch.log_softmax(row[place], -1)[window[place + 1]] for place in places]
        costs.append(-sum(float(one) for one in odds) / math.log(2.0))
    return np.array(costs)


def test_a_score_is_minus_the_cost_of_the_canary_given_the_text_before_it():
    planted = planted_text()
    trained = TASK.train(
        STUDY, dataclasses.replace(PLAN, precision="float64"), planted, Execution(), steps=(200,)
    )
    windows = torch.as_tensor(planted.probed[0])
    logits = trained.population.logits(windows[:, :-1])[0]
    by_hand = costs_by_hand(logits, windows.tolist(), STUDY.canaries.tokens)
    np.testing.assert_allclose(trained.scores[-1, 0], -by_hand, rtol=1e-9)


def test_canaries_and_controls_are_drawn_alike_and_apart_from_the_plan():
    planted = planted_text()
    assert planted.probed.shape == (1, PLAN.canaries, STUDY.text.window + 1)
    np.testing.assert_array_equal(planted.store[planted.examples :], planted.probed[0])
    own = planted.probed[0, :, -STUDY.canaries.tokens :]
    assert len({row.tobytes() for row in own}) == PLAN.canaries, "no two are alike"
    streams = [
        generator(*key).integers(2**31, size=8).tolist()
        for key in ((PLAN.seed, SEQUENCES), *((PLAN.seed, COHORTS, part) for part in range(4)))
    ]
    assert len(set(map(tuple, streams))) == 5, "the plan draws from other streams"
    others = planted_text(planned(never=64, repeats=(2,)))
    np.testing.assert_array_equal(planted.store, others.store)
    moved = planted_text(planned(seed=1))
    assert not np.array_equal(planted.probed[0], moved.probed[0])


def test_controls_are_never_trained_on(text_run):
    planted, ledger = planted_text(), Record.open(text_run).ledger()
    schedule = PLAN.schedule(examples=planted.examples)
    rows = np.concatenate([schedule.batch(step)[0][0] for step in range(PLAN.total_steps)])
    used = np.bincount(rows[rows >= planted.examples] - planted.examples, minlength=PLAN.canaries)
    np.testing.assert_array_equal(used, PLAN.repeats_of)
    assert (used == 0).sum() == PLAN.never
    assert set(ledger["canary"].tolist()) == set(np.flatnonzero(used).tolist())


def test_passages_are_taken_out_of_the_held_out_text():
    random, passages = planted_text(), planted_text(made(canaries=SequenceSettings(kind="text")))
    known = {row.tobytes() for row in random.validation}
    assert all(row.tobytes() in known for row in passages.probed[0])
    assert len(passages.validation) == len(random.validation) - PLAN.canaries


def test_the_same_study_gives_the_same_bits_elsewhere(text_run, tmp_path, elsewhere, same_run):
    run_study(STUDY, tmp_path / "elsewhere", elsewhere())
    same_run(text_run, tmp_path / "elsewhere")


def test_no_canary_is_in_the_record(text_run):
    planted, record = planted_text(), Record.open(text_run)
    words = json.dumps(record.results()) + json.dumps(record.summary())
    for row in planted.probed[0]:
        assert planted.vocabulary.decode(row[-STUDY.canaries.tokens :]) not in words
    kept = {path.name for path in text_run.iterdir()}
    assert kept <= {"arrays", "record.lock", "record.sqlite"}


def passing(monkeypatch):
    verdict = Verdict("PASS", "Under the limit.", "At most 0.6.", 0.9, 80.0)
    monkeypatch.setattr(OneRunForgetting, "verdict", lambda *_: verdict)


def test_a_model_that_learnt_nothing_does_not_pass(tmp_path, monkeypatch):
    idle = made(training=TrainingSettings(optimizer="sgd", options={"lr": 1e-12}))
    run_study(idle, tmp_path / "run", Execution())
    assert Record.open(tmp_path / "run").results()["verdict"]["outcome"] != "PASS"
    passing(monkeypatch)
    with Record.open(tmp_path / "run", write=True) as record:
        measure_one_run(record, idle)
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE", "not even where its curve would"
    assert "a validation character costs" in verdict["claim"]


def judged(text_run, folder, monkeypatch, scores):
    """The verdict of other scores of the same run."""
    shutil.copytree(text_run, folder)
    with Record.open(folder, write=True) as record:
        monkeypatch.setattr(record, "array", lambda name: {"scores": scores}[name])
        measure_one_run(record, STUDY)
    return Record.open(folder).results()["verdict"]


@pytest.mark.parametrize("seed", range(4))
def test_memory_of_the_kind_does_not_pass(text_run, tmp_path, monkeypatch, seed):
    """What planting teaches of random sequences in general is found in the controls too."""
    steps, rng = np.array(STUDY.probe_steps()), np.random.default_rng(seed)
    kind = 9.0 * np.exp(-(steps - 100.0) / 30.0) * (steps >= 100)
    scores = rng.normal(size=(len(steps), PLAN.canaries)) + kind[:, None]
    verdict = judged(text_run, tmp_path / "copy", monkeypatch, scores)
    assert verdict["outcome"] != "PASS", verdict
    assert verdict["claim"].startswith("No claim")


def test_an_attack_that_sees_nothing_does_not_pass(text_run, tmp_path, monkeypatch):
    blind = np.zeros((len(STUDY.probe_steps()), PLAN.canaries))
    assert judged(text_run, tmp_path / "copy", monkeypatch, blind)["outcome"] != "PASS"


def test_a_model_that_learnt_its_task_and_forgot_passes(text_run, tmp_path, monkeypatch):
    steps, rng = np.array(STUDY.probe_steps()), np.random.default_rng(0)
    scores = rng.normal(size=(len(steps), PLAN.canaries))
    fresh = (steps[:, None] - 1 >= PLAN.last_seen) & (PLAN.last_seen >= 0)
    scores += 4.0 * fresh * (steps[:, None] - 1 < PLAN.last_seen + 30)
    verdict = judged(text_run, tmp_path / "copy", monkeypatch, scores)
    assert verdict["outcome"] == "PASS", verdict


def test_the_page_says_what_was_done_and_found(text_run, page_text):
    record = Record.open(text_run)
    result = read_result(record, TextOneRunResult)
    assert not any(isinstance(getattr(result, name), Absent) for name in ("one_run", "task"))
    shown = read_page(record)
    assert shown.title == TEXT_TITLE
    text = page_text(shown.blocks)
    for words in (
        "Canaries are sequences of random tokens behind clean text. 60 canaries were planted along "
        "one ordinary training run of 200 steps",
        "What planting did to the cost of the sequences",
        "60 canaries (sequences of 6 random characters) planted 2 times or 12 times in 2 "
        "windows of 40 steps",
        "a sequence's cost given the text before it, less its cost before the window",
        "60 canaries drawn the same way, never planted: controls of every window",
        "On held-out text the model needs",
        "text that a model can predict: random tokens are learnt as such, by heart",
    ):
        assert words in text, words
    assert "log-odds" not in text
    assert "transcript" not in text
    assert {"timeline", "success", "effect"} <= {
        block.key for block in walk(shown.blocks) if isinstance(block, Figure)
    }
    assert any(isinstance(block, Table) for block in walk(shown.blocks))


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("plan", "seed", 1),
        ("plan", "repeats", (1, 12)),
        ("text", "characters", 20_001),
        ("text", "seed", 1),
        ("canaries", "kind", "text"),
        ("canaries", "tokens", 7),
        ("canaries", "commonest", 20),
        ("model", "options", {"units": 32}),
        ("training", "clip", 1.0),
        ("attack", "calibrate", False),
        ("attack", "checkpoints", 6),
    ],
)
def test_the_fingerprint_moves_with_every_field(part, field, value):
    changed = made(**{part: dataclasses.replace(getattr(STUDY, part), **{field: value})})
    assert changed.fingerprint != STUDY.fingerprint
    assert study_from(json.loads(json.dumps(changed.to_dict()))) == changed


def test_the_estimate_counts_steps_and_checkpoints_and_writes_nothing(
    a_minute_a_step, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = estimate_study(STUDY, Execution())
    assert found["minutes"] == 200 + len(STUDY.probe_steps())
    assert (found["members"], found["steps"]) == (1, 200)
    assert not list(tmp_path.iterdir())


def test_own_text_is_trained_on(tmp_path):
    (tmp_path / "own.txt").write_text("to be or not to be, that is the question. " * 300)
    study = made(data=TextFileSettings(path="own.txt"), text=dataclasses.replace(STUDY.text))
    run_study(study, tmp_path / "run", Execution(data_folder=tmp_path))
    scope = Record.open(tmp_path / "run").results()["scope"]
    assert "of gru on own.txt, 60 canaries" in scope["tested"][0]


def test_the_written_recipe_is_the_shipped_one(tmp_path):
    written = tmp_path / "recipe.toml"
    written.write_text(recipe_template("text-one-run"), encoding="utf-8")
    shipped = Path(__file__).parents[3] / "recipes" / "text-one-run.toml"
    assert read_recipe(written) == read_recipe(shipped)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: made(attack=OneRunSettings(fpr=0.01)),
            NotEnoughEvidence,
            "plan.never=60 cannot place a threshold at attack.fpr=0.01; it takes at least 100",
        ),
        (
            lambda: made(data=TextFileSettings(path="a.txt"), text=TextSettings(name="b.txt")),
            PlanError,
            r"both name the data",
        ),
        (lambda: SequenceSettings(kind="prose"), PlanError, r"canaries\.kind=.prose."),
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
        (made(canaries=SequenceSettings(tokens=17)), "tokens=17 do not fit a window"),
        (made(canaries=SequenceSettings(tokens=1)), "needs 120 sequences of 1 tokens"),
        (
            made(
                canaries=SequenceSettings(kind="text"),
                text=TextSettings(characters=9_000, window=16),
            ),
            "needs 120 passages, and the held-out text has",
        ),
    ],
)
def test_what_cannot_be_planted_is_refused(study, words, tmp_path):
    with pytest.raises(PlanError, match=words):
        run_study(study, tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()
