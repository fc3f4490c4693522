"""Costs of the last tokens of windows: against a model with known probabilities, and torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput
from remnant.models import lstm
from remnant.population import Population
from remnant.probes import WINDOW_SIGNALS, window_signals


class Bigram:
    """Two members; the first knows the next token with probability 3/4, the second nothing."""

    def __init__(self, vocabulary):
        self.vocabulary, self.largest = vocabulary, 0

    def logits(self, inputs):
        ids = torch.as_tensor(inputs)
        self.largest = max(self.largest, len(ids))
        sure = math.log(3 * (self.vocabulary - 1))
        knows = sure * nn.functional.one_hot((ids + 1) % self.vocabulary, self.vocabulary)
        return torch.stack([knows, torch.zeros_like(knows)]).float()


def test_costs_are_the_known_ones():
    windows = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, 2, 3]])
    found = window_signals(Bigram(5), windows, tokens=3, vocabulary_size=5)
    assert WINDOW_SIGNALS == ("bits", "right")
    hit, miss = -math.log2(0.75), -math.log2(0.25 / 4)
    expected = torch.tensor([[3 * hit, 2 * hit + miss], [3 * math.log2(5)] * 2]).double()
    torch.testing.assert_close(found[:, 0], expected, rtol=1e-6, atol=1e-6)
    assert found[0, 1].tolist() == pytest.approx([1.0, 2 / 3])


def test_pieces_bound_the_memory_and_change_nothing(monkeypatch):
    windows = torch.randint(0, 5, (20, 6))
    model = Bigram(5)
    whole = window_signals(model, windows, tokens=5, vocabulary_size=5)
    monkeypatch.setattr("remnant.probes.windows._NUMBERS", 3 * 6 * 5)
    model.largest = 0
    torch.testing.assert_close(window_signals(model, windows, tokens=5, vocabulary_size=5), whole)
    assert model.largest == 3


def test_a_population_is_asked_as_torch_would_be():
    population = Population(lambda: lstm(7, units=4, layers=1), seeds=[0, 1])
    windows = torch.randint(0, 7, (5, 9))
    found = window_signals(population, windows, tokens=8, vocabulary_size=7)
    for member in range(2):
        model = lstm(7, units=4, layers=1)
        model.load_state_dict(population.state_dict(member))
        nats = nn.functional.cross_entropy(
            model(windows[:, :-1]).movedim(-1, 1), windows[:, 1:], reduction="none"
        )
        torch.testing.assert_close(
            found[member, 0], (nats.sum(1) / math.log(2)).double(), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("tokens", [0, 5, 9])
def test_what_nothing_predicts_cannot_be_scored(tokens):
    with pytest.raises(InvalidInput, match=f"tokens={tokens} of windows of 5"):
        window_signals(Bigram(3), torch.zeros(2, 5).long(), tokens=tokens, vocabulary_size=3)
