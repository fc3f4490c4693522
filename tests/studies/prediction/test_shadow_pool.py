"""Shadow pools: topped up, resumed, and never served to another target."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population, ShadowPlan
from remnant.errors import InvalidInput, NotEnoughEvidence, RecordError
from remnant.probes import label_signals
from remnant.records import Record
from remnant.studies.prediction.shadow_pool import (
    check_pool,
    fill_pool,
    missing_blocks,
    models_in,
    pool_key,
    read_pool,
)

PLAN = ShadowPlan(models=6, steps=8, batch=8)
KNOWN = {"recipe": {"lr": 0.1}, "data_fingerprint": "a71e"}
RNG = np.random.default_rng(0)
INPUTS = torch.from_numpy(RNG.normal(size=(40, 5)).astype(np.float32))
LABELS = torch.from_numpy(RNG.integers(0, 3, 40))


def trainer(plan, calls=None):
    """Train the plan's real members; ``calls`` notes who was trained."""

    def train(first, stop, folder):
        if calls is not None:
            calls.append((first, stop))
        some = range(first, stop)
        population = Population(lambda: nn.Linear(5, 3), seeds=plan.seeds[first:stop])
        population.fit(INPUTS, LABELS, plan.schedule(examples=40, members=some), lr=0.1)
        return label_signals(population, INPUTS, LABELS).numpy()

    return in_turn(train)


def in_turn(train):
    """Train the blocks of a pool one after another; ``train`` returns the scores of one."""

    def train_all(blocks, record, keep):
        for block in blocks:
            keep(block, train(*block, record.folder))

    return train_all


def test_topping_up_gives_the_pool_that_would_have_been(tmp_path):
    calls = []
    few = dataclasses.replace(PLAN, models=3)
    assert fill_pool(tmp_path / "a", few, **KNOWN, train=trainer(few, calls), block=2) == 3
    assert fill_pool(tmp_path / "a", PLAN, **KNOWN, train=trainer(PLAN, calls), block=2) == 3
    assert calls == [(0, 2), (2, 3), (3, 5), (5, 6)], "nobody is trained twice"
    fill_pool(tmp_path / "b", PLAN, **KNOWN, train=trainer(PLAN), block=6)
    grown = read_pool(tmp_path / "a", PLAN, **KNOWN)
    whole = read_pool(tmp_path / "b", PLAN, **KNOWN)
    np.testing.assert_allclose(grown.scores, whole.scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(grown.seen, PLAN.seen(examples=40))
    assert fill_pool(tmp_path / "a", few, **KNOWN, train=trainer(few, calls)) == 0
    assert read_pool(tmp_path / "a", few, **KNOWN).scores.shape == (3, 3, 40)


class Killed(BaseException):
    pass


def test_a_pool_cut_short_goes_on_after_its_last_block(tmp_path):
    honest = trainer(PLAN)

    def train(blocks, record, keep):
        honest(blocks[:2], record, keep)
        raise Killed

    with pytest.raises(Killed):
        fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=train, block=2)
    with pytest.raises(NotEnoughEvidence, match="has 4 models; 6 were asked for"):
        read_pool(tmp_path / "pool", PLAN, **KNOWN)
    assert fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=honest, block=2) == 2


@pytest.mark.parametrize(
    ("plan", "known", "words"),
    [
        (dataclasses.replace(PLAN, seed=1), KNOWN, "another plan"),
        (dataclasses.replace(PLAN, steps=9), KNOWN, "another plan"),
        (PLAN, KNOWN | {"recipe": {"lr": 0.2}}, "another plan"),
        (PLAN, KNOWN | {"data_fingerprint": "b82f"}, "other data"),
    ],
)
def test_another_targets_pool_is_refused(plan, known, words, tmp_path):
    fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=trainer(PLAN))
    with pytest.raises(RecordError, match=words):
        fill_pool(tmp_path / "pool", plan, **known, train=trainer(plan))
    with pytest.raises(RecordError, match=words):
        read_pool(tmp_path / "pool", plan, **known)
    with pytest.raises(RecordError, match=f"{words}.*Choose another pool folder"):
        check_pool(tmp_path / "pool", plan, **known)


def test_a_pool_can_be_asked_for_before_all_of_its_recipe_is_known(tmp_path):
    whole = KNOWN | {"recipe": {"lr": 0.1, "shape": (5, 3), "scored": [4, 8]}}
    early = KNOWN | {"recipe": {"lr": 0.1, "shape": (5, 3)}}
    check_pool(tmp_path / "pool", PLAN, **early)
    fill_pool(tmp_path / "pool", PLAN, **whole, train=trainer(PLAN))
    check_pool(tmp_path / "pool", dataclasses.replace(PLAN, models=9), **early)
    with pytest.raises(RecordError, match="another plan"):
        fill_pool(tmp_path / "pool", PLAN, **early, train=trainer(PLAN))
    with pytest.raises(RecordError, match="another plan or recipe"):
        check_pool(tmp_path / "pool", PLAN, **KNOWN | {"recipe": {"lr": 0.1, "depth": 2}})
    provenance = {"remnant": "0", "python": "3", "platform": "x", "device": "cpu", "seeds": {}}
    other = Record.create(
        tmp_path / "run",
        question="prediction",
        plan={"plan": {}},
        plan_fingerprint="c93a",
        data_fingerprint="a71e",
        execution={},
        provenance=provenance,
    )
    other.close()
    with pytest.raises(RecordError, match="holds no shadow pool"):
        check_pool(tmp_path / "run", PLAN, **early)


def test_every_field_but_the_number_of_models_moves_the_key():
    changed = {
        "steps": 9,
        "batch": 4,
        "seed": 1,
        "fraction": 0.4,
        "sampling": "replacement",
        "precision": "float64",
    }
    assert set(changed) == {f.name for f in dataclasses.fields(ShadowPlan)} - {"models"}
    keys = {
        pool_key(dataclasses.replace(PLAN, **{name: value}), {}) for name, value in changed.items()
    }
    assert len(keys | {pool_key(PLAN, {})}) == len(changed) + 1
    assert pool_key(dataclasses.replace(PLAN, models=9), {}) == pool_key(PLAN, {})


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.zeros((3, 2, 4)), r"shape \(3, 2, 4\)"),
        (np.zeros((2, 4)), r"shape \(2, 4\)"),
        (np.full((2, 1, 4), np.nan), "diverged"),
    ],
)
def test_scores_that_cannot_be_are_refused(scores, words, tmp_path):
    with pytest.raises(InvalidInput, match=words):
        fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=in_turn(lambda *_: scores), block=2)


def test_blocks_are_kept_in_any_order_and_only_the_gaps_are_filled(tmp_path):
    honest, calls = trainer(PLAN), []

    def backwards_and_killed(blocks, record, keep):
        honest([blocks[2], blocks[0]], record, keep)
        raise Killed

    with pytest.raises(Killed):
        fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=backwards_and_killed, block=2)
    assert models_in(Record.open(tmp_path / "pool")) == 2
    with pytest.raises(NotEnoughEvidence, match="has 2 models; 6 were asked for"):
        read_pool(tmp_path / "pool", PLAN, **KNOWN)
    assert fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=trainer(PLAN, calls), block=2) == 2
    assert calls == [(2, 4)]
    fill_pool(tmp_path / "other", PLAN, **KNOWN, train=honest, block=2)
    scores = [read_pool(tmp_path / name, PLAN, **KNOWN).scores for name in ("pool", "other")]
    np.testing.assert_array_equal(*scores)


def test_blocks_follow_from_what_is_stored_and_not_from_who_trains(tmp_path):
    fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=trainer(PLAN), block=2)
    with Record.open(tmp_path / "pool", write=True) as record:
        assert missing_blocks(record, 6, 4) == []
        assert missing_blocks(record, 13, 4) == [(6, 10), (10, 13)]
        record.put_array("models-8-9", np.zeros((1, 3, 40)))
        assert models_in(record) == 6
        assert missing_blocks(record, 13, 4) == [(6, 8), (9, 13)]
        assert missing_blocks(record, 7, 4) == [(6, 7)]


def test_a_block_of_none_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="block=0"):
        fill_pool(tmp_path / "pool", PLAN, **KNOWN, train=trainer(PLAN), block=0)
