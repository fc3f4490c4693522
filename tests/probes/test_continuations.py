"""Costs of continuations, many models and lengths at once, against one at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput
from remnant.models import LanguageModel, Vocabulary, gpt, lstm
from remnant.population import Population
from remnant.probes import text_costs
from remnant.probes.continuations import continuation_bits, continuation_rows

LETTERS = Vocabulary.of_characters("abcdefgh")
MODELS = {
    "lstm": lambda: lstm(8, units=6, layers=1).double(),
    "gpt": lambda: gpt(8, units=8, layers=1, heads=2, context=12).double(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("prefix", ["", "a", "hag"])
def test_costs_are_those_of_the_models_asked_one_by_one(name, prefix):
    population = Population(MODELS[name], seeds=[3, 4, 5])
    texts = ["bad", "c", "head", "deaf"]
    rows, counted = continuation_rows(
        LETTERS.encode(prefix), [LETTERS.encode(one) for one in texts], begin=LETTERS.size
    )
    found = continuation_bits(population, rows, counted, vocabulary_size=8)
    for member in range(3):
        module = MODELS[name]()
        module.load_state_dict(population.state_dict(member))
        model = LanguageModel(module, LETTERS)
        alone = text_costs(model, prefix=prefix, texts=[prefix + one for one in texts]).bits
        np.testing.assert_allclose(found[member], alone, rtol=1e-9)


def test_many_rows_are_read_in_pieces_to_the_same_numbers():
    population = Population(MODELS["lstm"], seeds=[0])
    rng = np.random.default_rng(0)
    many = rng.integers(0, 8, (2500, 3))
    rows, counted = continuation_rows([1], many.tolist(), begin=8)
    found = continuation_bits(population, rows, counted, vocabulary_size=8)
    few = continuation_bits(population, rows[1020:1030], counted[1020:1030], vocabulary_size=8)
    torch.testing.assert_close(found[:, 1020:1030], few)
    assert math.isclose(float(found.mean()), 9, rel_tol=0.2)  # an untrained model: 3 bits a letter


@pytest.mark.parametrize("continuations", [[], [[1], []]])
def test_nothing_to_continue_with(continuations):
    with pytest.raises(InvalidInput, match="at least one, and none that is empty"):
        continuation_rows([1], continuations, begin=8)
