"""Forgetting of translators: what is planted, what targets cost, and what a small run shows."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch

from remnant import InjectPlan
from remnant.data.pairs import PairCorpus
from remnant.errors import PlanError
from remnant.population import Population
from remnant.records import Record
from remnant.studies import Execution, run_study
from remnant.studies.forgetting.pair_recipe import TranslationForgettingStudy
from remnant.studies.forgetting.text_recipe import TextAttackSettings
from remnant.studies.reporting import read_page
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.pair_settings import (
    PairCanarySettings,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.shared.settings import TrainingSettings
from remnant.tasks.pairs import TASK, plant_drawn_pairs
from remnant.tasks.translators import END, target_signals

SIDES = (
    ["one two three four five", "dogs cats birds cows mice", "sleep play eat run"],
    ["eins zwei drei vier fünf", "hunde katzen vögel kühe mäuse", "schlafen spielen essen laufen"],
)
PAIRS = list(
    zip(*([" ".join(t) for t in itertools.product(*map(str.split, s))] for s in SIDES), strict=True)
)
CORPUS = PairCorpus(tuple(PAIRS[:80]), tuple(PAIRS[80:]))
PLAN = InjectPlan(
    canaries=6, copies=(2, 8), step=40, watch_steps=10, trials=3, batch=32, fresh_canaries=True
)
STUDY = TranslationForgettingStudy(
    plan=PLAN,
    pairs=PairSettings(source="en", target="de", longest=6, words=40),
    canaries=PairCanarySettings(tokens=5, references=40),
    model=TranslatorSettings(options={"units": 16, "layers": 1, "heads": 2}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.02}),
    attack=TextAttackSettings(lags=(0, 10)),
)


def made(**changes):
    return dataclasses.replace(STUDY, **changes)


def tokens(rows):
    """Each pair as what is read of it: source, then target with its end."""
    return {
        (*source, *target) for source, target in zip(*map(np.ndarray.tolist, rows), strict=True)
    }


def arrays(rows):
    return rows.inputs[:, : STUDY.pairs.longest], rows.labels


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for name, side in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    run_study(STUDY, folder / "run", Execution(data_folder=folder))
    return folder / "run"


def test_random_pairs_are_drawn_alike_and_their_sides_say_nothing_of_each_other():
    planted = plant_drawn_pairs(STUDY, CORPUS)
    assert planted.examples == 80
    assert len(planted.store.inputs) == 80 + 3 * 6
    assert planted.tokens == 6, "five words and the end"
    words, (end,) = planted.vocabulary, planted.vocabulary.encode(END)
    every = []
    for trial, probed in enumerate(planted.probed):
        own = probed.take(np.arange(6))
        stored = planted.store.take(np.arange(80 + 6 * trial, 86 + 6 * trial))
        assert tokens(arrays(own)) == tokens(arrays(stored)), "each trial's own canaries"
        every += [*zip(*(side.tolist() for side in arrays(probed)), strict=True)]
    assert len({tuple(target) for _, target in every}) == 3 * 46, "no target is planted twice"
    for source, target in every:
        assert target[5] == end
        assert not {0, end} & {*source[:5], *target[:5]}, "neither unknown words nor ends"
        assert all(token < words.size for token in source[:5])
    alike = np.mean([source[:5] == target[:5] for source, target in every])
    assert alike == 0


def test_held_out_pairs_leave_the_validation_pairs():
    study = made(
        plan=dataclasses.replace(PLAN, canaries=2, trials=2),
        canaries=PairCanarySettings(kind="held-out", references=4),
        attack=TextAttackSettings(lags=(0,), limit=2.0, fpr=0.3),
    )
    planted = plant_drawn_pairs(study, CORPUS)
    drawn = set().union(*(tokens(arrays(probed)) for probed in planted.probed))
    left = tokens(arrays(planted.validation))
    assert len(drawn) == 2 * 6
    assert len(left) == 20 - 12
    assert not drawn & left
    with pytest.raises(PlanError, match="needs 138 pairs, and 20 are held out"):
        plant_drawn_pairs(made(canaries=PairCanarySettings(kind="held-out", references=40)), CORPUS)


def test_neighbours_change_nothing_else():
    hidden = HiddenSettings(noise=(), relearn_steps=(1,), neighbours=5)
    searched, bare = (plant_drawn_pairs(made(hidden=part), CORPUS) for part in (hidden, None))
    assert len(searched.neighbours.inputs) == 3 * 5
    assert not len(bare.neighbours.inputs)
    for one, other in zip(searched.probed, bare.probed, strict=True):
        np.testing.assert_array_equal(one.inputs, other.inputs)
        np.testing.assert_array_equal(one.labels, other.labels)
    assert not tokens(arrays(searched.neighbours)) & set().union(
        *(tokens(arrays(probed)) for probed in searched.probed)
    )


def test_costs_are_those_of_one_pair_at_a_time():
    planted = plant_drawn_pairs(STUDY, CORPUS)
    models = Population(TASK.maker(STUDY, planted), seeds=[3, 4])
    rows = planted.validation
    found = target_signals(models, rows)
    for row in (0, 7, 19):
        logits = models.logits(torch.from_numpy(rows.inputs[row : row + 1]))[:, 0].double()
        odds = torch.log_softmax(logits, -1) / np.log(2.0)
        said = [token for token in rows.labels[row].tolist() if token >= 0]
        for member in (0, 1):
            bits = -sum(odds[member, place, token] for place, token in enumerate(said))
            right = [int(odds[member, place].argmax()) == t for place, t in enumerate(said)]
            assert float(found[member, 0, row]) == pytest.approx(float(bits), rel=1e-5)
            assert float(found[member, 1, row]) == pytest.approx(np.mean(right))


def test_what_was_planted_gets_cheaper_than_references(run):
    record = Record.open(run)
    found, bits = record.results(), record.array("primary.signals")[:, :, 0]
    assert bits.shape == (2, 9, 46)
    planted, twins = bits[0, PLAN.members_of("planted")], bits[0, PLAN.members_of("twin")]
    gain = (twins - planted).reshape(3, 46)
    often = PLAN.copies_of == 8
    assert gain[:, :6][:, often].mean() > gain[:, 6:].mean() + 3, "bits, by eight copies"
    curve = found["curve_exposure"]
    assert (curve["trials"], curve["n_canaries"], curve["n_references"]) == (3, 6, 40)
    assert curve["value"][0] > curve["chance"]
    assert found["task"]["validation_bits"] < found["task"]["uniform_bits"]
    assert [row["label"] for row in found["by_uses"]["series"]] == ["seen 2 times", "seen 8 times"]
    assert "less the mean of 4 models trained without these pairs" in found["scope"]["tested"][1]


def test_the_page_speaks_of_pairs_and_the_record_holds_none(run, page_text):
    record = Record.open(run)
    page = read_page(record)
    assert page.title == "Forgetting in translation"
    text = page_text(page.blocks)
    assert "Pairs of sentences were planted into a translator’s training" in text
    planted = plant_drawn_pairs(STUDY, CORPUS)
    words = json.dumps(record.results(), ensure_ascii=False) + json.dumps(record.summary())
    for row in planted.store.labels[planted.examples :, :5]:
        assert planted.vocabulary.decode(row.tolist()) not in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"canaries": PairCanarySettings(tokens=9, references=40)}, "canaries.tokens=9 are more"),
        (
            {"canaries": PairCanarySettings(tokens=1, references=40)},
            "needs 138 sequences of 1 tokens",
        ),
    ],
)
def test_what_cannot_be_planted_is_refused(changes, words):
    with pytest.raises(PlanError, match=words):
        plant_drawn_pairs(made(**changes), CORPUS)


def test_the_pairs_are_named_once():
    with pytest.raises(PlanError, match=r"nor pairs\.source names the pairs"):
        made(pairs=PairSettings())
