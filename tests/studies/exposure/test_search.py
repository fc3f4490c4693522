"""Searching for secrets and counting queries, on models whose probabilities are written down."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from remnant.canaries import Template
from remnant.errors import InvalidInput
from remnant.studies.exposure.search import Decoding, leak_of, search_secrets

SYMBOLS = ["say", " ", " a", " b", "a", "b", "!"]
ODDS = [0.05, 0.05, 0.4, 0.1, 0.1, 0.2, 0.1]


class Bag:
    """Says its symbols with fixed odds; like most tokenizers it joins a blank with a letter."""

    def encode(self, text):
        ids = []
        while text:
            longest = max((s for s in SYMBOLS if text.startswith(s)), key=len, default=None)
            if longest is None:
                raise InvalidInput("an unknown character.")
            ids.append(SYMBOLS.index(longest))
            text = text.removeprefix(longest)
        return ids

    def start(self, prefix_ids):
        return self._answers(1), torch.zeros(1, 1)

    def step(self, state, token_ids):
        return self._answers(len(token_ids)), state

    def take(self, state, rows):
        return state[rows]

    def _answers(self, rows):
        return torch.tensor(ODDS, dtype=torch.float64).log().repeat(rows, 1)


SPACED = Template("say {choice:a|b}!")
PLAIN = Template("say{choice:a|b}!")


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    "method", ["certified", "brute-force", "greedy", "beam", "sample", "dijkstra"]
)
def test_every_method_finds_the_likeliest(method):
    found = search_secrets(Bag(), PLAIN, rng=rng(), method=method)
    secret, bits = found.candidates[0]
    assert secret == "b"
    assert bits == pytest.approx(-math.log2(0.2 * 0.1))
    assert found.certified is (method in ("certified", "brute-force"))
    assert "candidates" not in repr(found)


def test_queries_are_those_of_the_definition():
    found = search_secrets(Bag(), PLAIN, rng=rng(), decodings=[Decoding(), Decoding(top_k=3)])
    plain, cut = found.leaks
    chance = 0.2 * 0.1
    assert plain.log_probability == pytest.approx(math.log(chance))
    assert plain.queries_half == math.ceil(math.log(0.5) / math.log(1 - chance))
    assert plain.queries_nearly == math.ceil(math.log(0.01) / math.log(1 - chance))
    # Three tokens are kept: " a", "b" and, of those with odds of 0.1, the first; never "!".
    assert cut.log_probability == -math.inf
    assert (cut.queries_half, cut.queries_nearly) == (None, None)
    assert cut.reason == "this decoding never gives it"


@pytest.mark.parametrize("template", [PLAIN, SPACED])
def test_a_decoding_that_cuts_nothing_is_the_model_as_it_is(template):
    found = search_secrets(Bag(), template, rng=rng(), decodings=[Decoding(), Decoding(top_p=1.0)])
    plain, whole = found.leaks
    assert whole.log_probability == pytest.approx(plain.log_probability)
    assert found.candidates[0][1] == pytest.approx(-plain.log_probability / math.log(2))


def test_the_blank_before_a_hole_is_left_to_the_model():
    leak = leak_of(Bag(), SPACED, "a", 0.0, decoding=Decoding(temperature=0.5))
    sharp = np.square(ODDS) / np.square(ODDS).sum()
    assert leak.log_probability == pytest.approx(math.log(sharp[2] * sharp[6]))


def test_a_prefix_that_is_joined_with_the_secret_has_no_count_and_a_reason():
    class Joining(Bag):
        def encode(self, text):
            return [6] if text == "say" else super().encode(text)

    leak = leak_of(Joining(), PLAIN, "a", 3.0, decoding=Decoding(top_k=5))
    assert (leak.log_probability, leak.queries_half, leak.queries_nearly) == (None, None, None)
    assert leak.reason == "the tokenizer joins the end of the prefix with the secret"


def test_a_hopeless_number_of_queries_has_a_reason():
    leak = leak_of(Bag(), PLAIN, "a", 2000.0, decoding=Decoding())
    assert leak.log_probability == pytest.approx(-2000 * math.log(2))
    assert (leak.queries_half, leak.reason) == (None, "the number is beyond floating point")
    assert leak_of(Bag(), PLAIN, "a", -1e-8, decoding=Decoding()).queries_nearly == 1


def test_faults():
    with pytest.raises(InvalidInput, match="method='magic'"):
        search_secrets(Bag(), PLAIN, rng=rng(), method="magic")
    with pytest.raises(InvalidInput, match="top=0"):
        search_secrets(Bag(), PLAIN, rng=rng(), method="greedy", top=0)
    with pytest.raises(InvalidInput, match="joins characters") as caught:
        search_secrets(Bag(), Template("say{choice:a| }{choice:a|b}"), rng=rng())
    assert "holes that the tokenizer keeps apart" in str(caught.value)
