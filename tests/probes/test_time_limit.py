"""A time limit holds while a prefix is encoded and read, whatever the model."""

from __future__ import annotations

import itertools

import pytest
import torch

from remnant.models import LanguageModel, Vocabulary, gpt, lstm
from remnant.probes import Asked, text_costs
from remnant.probes import counted_model as module
from remnant.probes.counted_model import OutOfTime, TimeLimit

SYMBOLS = "abcdefghij0123456789"


@pytest.fixture
def a_second_a_look(monkeypatch):
    """A clock that a second passes on whenever it is looked at."""
    seconds = itertools.count()
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(seconds)))


class Counting:
    """A model without ``read_on`` that counts what it reads and encodes."""

    def __init__(self):
        self.read = self.encoded = 0

    def encode(self, text):
        self.encoded += len(text)
        return [SYMBOLS.index(one) for one in text]

    def start(self, prefix_ids):
        self.read += len(prefix_ids)
        return torch.full((1, len(SYMBOLS)), 1 / len(SYMBOLS)).log(), None

    def step(self, state, token_ids):
        self.read += len(token_ids)
        return torch.full((len(token_ids), len(SYMBOLS)), 1 / len(SYMBOLS)).log(), None

    def take(self, state, rows):
        return None


def test_a_prefix_is_not_read_to_its_end_once_the_limit_is_over(a_second_a_look):
    model = Counting()
    with pytest.raises(OutOfTime, match=r"limit of 5 s .* read: 512 of 100000 tokens were read"):
        Asked(model, [0] * 100_000, limit=TimeLimit(5))
    assert model.read < 600


def test_a_model_that_reads_on_is_stopped_between_pieces(a_second_a_look):
    model = LanguageModel(lstm(20, units=4), Vocabulary.of_characters(SYMBOLS))
    with pytest.raises(OutOfTime, match="1536 of 5000 tokens"):
        Asked(model, [0] * 5000, limit=TimeLimit(3))


def test_a_prefix_is_not_encoded_again_once_the_limit_is_over(a_second_a_look):
    model = Counting()
    prefix = "a" * 100_000
    with pytest.raises(OutOfTime, match="characters were encoded"):
        text_costs(model, prefix=prefix, texts=[prefix + "1"] * 1000, max_seconds=5)
    assert model.encoded < 20 * len(prefix)
    assert model.read == 0


def test_what_a_usual_template_costs_is_always_paid(a_second_a_look):
    found = text_costs(Counting(), prefix="abc", texts=["abc1", "abc22"], max_seconds=1e-9)
    torch.testing.assert_close(found.bits.tolist(), [4.3219281, 8.6438562])


@pytest.mark.parametrize("make", [lstm, gpt])
def test_a_prefix_read_in_pieces_gives_the_same_bits(make):
    torch.manual_seed(0)
    sizes = {"units": 8} if make is lstm else {"units": 8, "layers": 1, "heads": 1, "context": 600}
    model = LanguageModel(make(20, **sizes), Vocabulary.of_characters(SYMBOLS))
    prefix = torch.randint(20, (590,)).tolist()
    whole, pieces = Asked(model, prefix), Asked(model, prefix, limit=TimeLimit(1e9))
    assert torch.equal(whole.first, pieces.first)
    after = [model.step(one.first_state, [3])[0] for one in (whole, pieces)]
    assert torch.equal(*after)


def test_a_model_that_only_steps_reads_the_same_prefix():
    model = Counting()
    Asked(model, [0] * 1300, limit=TimeLimit(1e9))
    assert model.read == 1300
