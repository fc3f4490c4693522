"""Words of the text as the secret: a word-level run against its definition, and bad input."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from remnant.canaries import read_canary_sets
from remnant.errors import PlanError
from remnant.models import lstm
from remnant.models.model_folder import load_language_model
from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.studies import Execution, ExposureStudy, run_study
from remnant.studies.exposure.recipe import SecretSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    MeasureSettings,
    TextSettings,
)

WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay")
OPTIONS = {"units": 16, "layers": 1, "embedding": 8}
STUDY = ExposureStudy(
    plan=InsertPlan(repeats=(1, 20), steps=80, controls=3, batch=16),
    text=TextSettings(name="words.txt", characters=None, level="word", window=12),
    secret=SecretSettings(template="we saw {words:3} there"),
    model=LanguageModelSettings(options=OPTIONS),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.03}),
    measure=MeasureSettings(references=100, limit=9.0),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    drawn = np.random.default_rng(0).choice([*WORDS, "<unk>"], 5000)
    (folder / "words.txt").write_text(" ".join(drawn))
    return Execution(data_folder=folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run") / "words"
    run_study(STUDY, folder, data)
    return folder


def test_the_secrets_are_words_of_the_text_alone(run):
    (drawn,) = read_canary_sets(run / "canaries.jsonl")
    assert set(drawn.template.words) == set(WORDS)
    assert drawn.template.space == 10**3
    results = Record.open(run).results()["exposure"]
    assert results["template"] == "we saw {words:3} there"
    assert results["space"] == 1000


def test_ranks_are_those_of_scoring_all_secrets_one_by_one(run):
    (drawn,) = read_canary_sets(run / "canaries.jsonl")
    loaded = load_language_model(run / "models" / "planted-1")
    module = lstm(loaded.vocabulary.size, **OPTIONS)
    module.load_state_dict(loaded._module.state_dict())
    module.double().eval()
    secrets = [" ".join(three) for three in itertools.product(WORDS, repeat=3)]
    ids = torch.tensor([loaded.encode(f"we saw {secret} there") for secret in secrets])
    with torch.no_grad():
        log_probs = module(ids[:, :-1]).log_softmax(-1)
    each = log_probs.gather(-1, ids[:, 1:, None])[..., 0]
    costs = dict(zip(secrets, (-each[:, 1:].sum(1) / math.log(2)).tolist(), strict=True))
    results = Record.open(run).results()["exposure"]
    rows = [*results["canaries"], *results["controls"]]
    assert results["method"] == "exact"
    for canary, row in zip((*drawn.canaries, *drawn.controls), rows, strict=True):
        assert row["cost"] == pytest.approx(costs[canary.secret], abs=1e-3)
        assert row["rank"] == sum(one <= costs[canary.secret] for one in costs.values())
    assert rows[1]["bits"] > 9 > 7 > rows[1]["twin_bits"]


def test_the_most_frequent_words_are_taken(data):
    frequent = dataclasses.replace(STUDY.secret, words=3)
    assert frequent.filled("a a a b b c c d <unk> <unk> <unk>").words == ("a", "b", "c")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": 11}, "The text has 10 different words, fewer than the 11"),
        ({"template": "we saw {words:1} there"}, "cannot be reached"),
        ({"template": "we saw {digits:4}"}, "a word that is not in the vocabulary"),
        ({"template": "we saw ({words:3})"}, "a word that is not in the vocabulary"),
    ],
)
def test_words_that_the_text_does_not_have_are_refused(changes, message, data, tmp_path):
    study = dataclasses.replace(STUDY, secret=dataclasses.replace(STUDY.secret, **changes))
    with pytest.raises(ValueError, match=message):
        run_study(study, tmp_path / "run", data)
    assert not (tmp_path / "run" / "record.sqlite").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": 1}, r"secret\.words=1 is not a whole number of at least 2"),
        ({"template": "{digits:6}", "words": 5}, r"has no \{words:n\} hole"),
        ({"template": "{words:0}"}, r"secret\.template is no template"),
    ],
)
def test_faulty_settings_are_refused(changes, message):
    with pytest.raises(PlanError, match=message):
        dataclasses.replace(STUDY.secret, **changes)


def test_the_fingerprint_moves_with_the_number_of_words():
    other = dataclasses.replace(STUDY, secret=dataclasses.replace(STUDY.secret, words=5))
    assert other.fingerprint != STUDY.fingerprint
