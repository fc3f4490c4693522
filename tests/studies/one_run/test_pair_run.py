"""One run of a translator: what is planted, what a score is, what is found and shown."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from remnant.data.pairs import PairCorpus
from remnant.errors import NotEnoughEvidence, PlanError
from remnant.plans import StaggeredPlan
from remnant.plans.plan import COHORTS, SEQUENCES
from remnant.plans.schedule import generator
from remnant.records import Record
from remnant.report.blocks import Figure, walk
from remnant.studies import Execution, run_study, study_from
from remnant.studies.one_run.page import PAIR_TITLE
from remnant.studies.one_run.pair_recipe import TranslationOneRunStudy
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.reporting import read_page
from remnant.studies.shared.pair_settings import (
    DrawnPairSettings,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.shared.settings import TrainingSettings
from remnant.tasks.pairs import TASK, plant_drawn_pairs

from ..forgetting.test_pair_run import PAIRS

HELD_OUT = tuple(PAIRS[::3])
CORPUS = PairCorpus(tuple(pair for pair in PAIRS if pair not in HELD_OUT), HELD_OUT)
PLAN = StaggeredPlan(
    canaries=90,
    never=30,
    starts=(80, 130),
    window=30,
    repeats=(2, 12),
    per_batch=10,
    steps=180,
    batch=32,
)
STUDY = TranslationOneRunStudy(
    plan=PLAN,
    pairs=PairSettings(source="en", target="de", longest=6, words=40),
    canaries=DrawnPairSettings(tokens=5),
    model=TranslatorSettings(options={"units": 16, "layers": 1, "heads": 2}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.02}),
    attack=OneRunSettings(success="auc", limit=0.9, checkpoints=4),
)


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def planned(**changes):
    return made(plan=dataclasses.replace(PLAN, **changes))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation-one-run")
    for name, side in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    run_study(STUDY, folder / "run", Execution(data_folder=folder))
    return folder / "run"


def test_what_was_planted_is_found_and_what_was_not_is_not_yet(run):
    record = Record.open(run)
    found = record.results()["one_run"]
    rows = list(zip(found["cohort"], found["repeats"], found["checkpoint"], strict=True))
    for window, end in ((0, 109), (1, 159)):
        assert found["low"][rows.index((window, 12, end))] > 0.5, "right after the window"
        assert found["effect_low"][rows.index((window, 12, end))] > 0, "planting saves bits"
    scores = record.array("scores")
    assert scores.shape == (len(STUDY.probe_steps()), 90)
    assert scores.max() <= 0, "a score is minus a cost"
    before = scores[STUDY.probe_steps().index(130)]
    later, never = PLAN.cohort_of == 1, PLAN.cohort_of == -1
    assert abs(before[later].mean() - before[never].mean()) < before[never].std()
    task = record.results()["task"]
    assert task["validation_bits"] < 0.9 * task["uniform_bits"]


def test_a_score_is_minus_the_cost_of_the_target_given_its_source():
    planted = plant_drawn_pairs(STUDY, CORPUS)
    plan = dataclasses.replace(PLAN, precision="float64")
    trained = TASK.train(STUDY, plan, planted, Execution(), steps=(180,))
    (rows,) = planted.probed
    logits = trained.population.logits(torch.from_numpy(rows.inputs))[0]
    odds = torch.log_softmax(logits.double(), -1) / math.log(2.0)
    by_hand = [
        sum(float(odds[row, place, token]) for place, token in enumerate(labels) if token >= 0)
        for row, labels in enumerate(rows.labels.tolist())
    ]
    np.testing.assert_allclose(trained.scores[-1, 0], by_hand, rtol=1e-9)


def test_canaries_and_controls_are_one_draw_apart_from_the_plan():
    planted = plant_drawn_pairs(STUDY, CORPUS)
    (probed,) = planted.probed
    np.testing.assert_array_equal(planted.store.inputs[planted.examples :], probed.inputs)
    np.testing.assert_array_equal(planted.store.labels[planted.examples :], probed.labels)
    assert len({row.tobytes() for row in probed.labels}) == PLAN.canaries, "no two are alike"
    streams = [
        generator(*key).integers(2**31, size=8).tolist()
        for key in ((PLAN.seed, SEQUENCES), *((PLAN.seed, COHORTS, part) for part in range(4)))
    ]
    assert len(set(map(tuple, streams))) == 5, "the plan draws from other streams"
    others = plant_drawn_pairs(planned(never=32, repeats=(2,)), CORPUS)
    np.testing.assert_array_equal(planted.store.labels, others.store.labels)
    moved = plant_drawn_pairs(planned(seed=1), CORPUS)
    assert not np.array_equal(probed.labels, moved.probed[0].labels)


def test_controls_are_never_trained_on(run):
    planted, ledger = plant_drawn_pairs(STUDY, CORPUS), Record.open(run).ledger()
    schedule = PLAN.schedule(examples=planted.examples)
    rows = np.concatenate([schedule.batch(step)[0][0] for step in range(PLAN.total_steps)])
    used = np.bincount(rows[rows >= planted.examples] - planted.examples, minlength=PLAN.canaries)
    np.testing.assert_array_equal(used, PLAN.repeats_of)
    assert (used == 0).sum() == PLAN.never
    assert set(ledger["canary"].tolist()) == set(np.flatnonzero(used).tolist())


def test_held_out_pairs_leave_the_validation_pairs():
    study = made(
        plan=dataclasses.replace(PLAN, canaries=20, never=10),
        canaries=DrawnPairSettings(kind="held-out"),
    )
    planted = plant_drawn_pairs(study, CORPUS)
    assert len(planted.validation.inputs) == len(HELD_OUT) - 20
    left = {row.tobytes() for row in planted.validation.labels}
    assert not left & {row.tobytes() for row in planted.probed[0].labels}


def test_the_page_speaks_of_pairs_and_the_record_holds_none(run, page_text):
    record = Record.open(run)
    page = read_page(record)
    assert page.title == PAIR_TITLE
    text = page_text(page.blocks)
    for words in (
        "Canaries are pairs of random words, so that no source predicts its target. 60 canaries "
        "were planted along one ordinary training run of 180 steps",
        "What planting did to the cost of the targets",
        "60 canaries (pairs with 5 random words on each side) planted 2 times or 12 times",
        "the cost of a target given its source, less its cost before the window",
        "how little its target costs the model given its source",
        "attackers without the source",
    ):
        assert words in text, words
    assert "log-odds" not in text
    assert {"timeline", "success", "effect"} <= {
        block.key for block in walk(page.blocks) if isinstance(block, Figure)
    }
    planted = plant_drawn_pairs(STUDY, CORPUS)
    stored = json.dumps(record.results(), ensure_ascii=False) + json.dumps(record.summary())
    for row in planted.store.labels[planted.examples :, :5]:
        assert planted.vocabulary.decode(row.tolist()) not in stored


def test_without_calibration_the_scope_names_no_earlier_cost():
    study = made(attack=dataclasses.replace(STUDY.attack, calibrate=False))
    assert TASK.scope(study).scored == ("the cost of a target given its source",)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: made(attack=OneRunSettings(fpr=0.01)),
            NotEnoughEvidence,
            "plan.never=30 cannot place a threshold at attack.fpr=0.01",
        ),
        (
            lambda: made(pairs=PairSettings()),
            PlanError,
            r"nor pairs\.source names the pairs",
        ),
        (
            lambda: study_from(STUDY.to_dict() | {"canaries": {"references": 4}}),
            PlanError,
            "references",
        ),
        (
            lambda: plant_drawn_pairs(made(canaries=DrawnPairSettings(tokens=7)), CORPUS),
            PlanError,
            "canaries.tokens=7 are more than pairs.longest=6",
        ),
    ],
)
def test_bad_recipes_are_one_sentence(make, error, words):
    with pytest.raises(error, match=words):
        make()
