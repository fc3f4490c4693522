"""Models that are harder than tables: coarse arithmetic, certainty, tokenizers with rare merges."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from remnant.canaries.template import Template
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.search import MergedTokens, exact_exposure, extract
from remnant.search.baselines import brute_force


class Coarse:
    """Works in float32 and answers as float64: the type promises more than the numbers hold."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.embed, self.cell = torch.nn.Embedding(10, 64), torch.nn.GRUCell(64, 128)
        self.out = torch.nn.Linear(128, 10)

    def encode(self, text):
        return [int(c) for c in text]

    def start(self, prefix_ids):
        return self._answer(torch.zeros(1, 128))

    def step(self, state, token_ids):
        return self._answer(self.cell(self.embed(token_ids), state))

    def take(self, state, rows):
        return state[rows]

    def _answer(self, state):
        # In which order is summed depends on how many rows there are, as it does of real kernels.
        turned = (1,) if len(state) % 2 else ()
        logits = state.flip(turned) @ self.out.weight.flip(turned).t() + self.out.bias
        return logits.double().log_softmax(-1), state


class Certain:
    """Gives the token ``sure`` probability 1 everywhere, and all others none."""

    def __init__(self, characters, sure):
        self.characters, self.sure = characters, characters.index(sure)

    def encode(self, text):
        return [self.characters.index(c) for c in text]

    def start(self, prefix_ids):
        return self.step(None, torch.zeros(1))

    def step(self, state, token_ids):
        answer = torch.full((len(token_ids), len(self.characters)), -torch.inf)
        answer[:, self.sure] = 0.0
        return answer.double(), None

    def take(self, state, rows):
        return None


@pytest.mark.parametrize("seed", range(6))
def test_arithmetic_coarser_than_its_type_leaves_a_bracket(seed):
    model, template = Coarse(seed), Template("{digits:4}")
    everything = brute_force(model, template, top=10_000).candidates
    costs = np.array([bits for _, bits in everything])
    picked = [everything[place][0] for place in (0, 1, 1700, 9_999)]
    found = exact_exposure(model, template, secrets=picked)
    for one, (place, secret) in zip(
        found, zip((0, 1, 1700, 9_999), picked, strict=True), strict=True
    ):
        truth = int((costs <= costs[place]).sum())
        near = int((np.abs(costs - costs[place]) < 1e-5).sum())
        assert one.rank_low - near <= truth <= one.rank_high + near, secret
        assert one.rank >= 1
    best = extract(model, template, top=3)
    assert best.certified
    assert best.candidates[0][1] == pytest.approx(costs[0], abs=1e-4)


def test_arithmetic_coarser_than_its_type_is_noticed():
    template = Template("{digits:4}")
    secrets = [one.secret for one in template.sample(20, rng=np.random.default_rng(0))]
    found = [exact_exposure(Coarse(seed), template, secrets=secrets)[0] for seed in range(4)]
    assert any(one.tolerance > 1e-9 for one in found)


def test_impossible_prefixes_are_not_walked():
    model, template = Certain("x 0123456789", "7"), Template("x {digits:9}")
    found = exact_exposure(model, template, secrets=["777777777", "123456789"])
    assert found.rank.tolist() == [1, 10**9]
    assert found.finished
    assert found.nodes < 100
    best = extract(model, template, top=3)
    assert best.certified
    assert best.nodes < 1000
    assert best.candidates[0] == ("777777777", 0.0)
    assert [bits for _, bits in best.candidates[1:]] == [float("inf")] * 2
    assert len({secret for secret, _ in best.candidates}) == 3


def test_where_every_secret_is_impossible_all_rank_last():
    model, template = Certain("x 0123456789", "x"), Template("x {digits:3}")
    found = exact_exposure(model, template, secrets=["777", "123"])
    assert found.rank.tolist() == [1000, 1000]
    assert [bits for _, bits in extract(model, template).candidates] == [float("inf")]


class Merging:
    """A uniform tokenizer model in which one string of characters is a token of its own."""

    def __init__(self, characters, merged, likely=()):
        self.symbols, self.likely = [*characters, merged], list(likely)

    def encode(self, text):
        ids, merged = [], self.symbols[-1]
        while text:
            if text.startswith(merged):
                ids.append(len(self.symbols) - 1)
                text = text[len(merged) :]
            else:
                ids.append(self.symbols.index(text[0]))
                text = text[1:]
        return ids

    def start(self, prefix_ids):
        return self._answer([()])

    def step(self, state, token_ids):
        return self._answer(
            [(*s, self.symbols[t]) for s, t in zip(state, token_ids.tolist(), strict=True)]
        )

    def take(self, state, rows):
        return [state[row] for row in rows.tolist()]

    def _answer(self, histories):
        """The characters of ``likely``, one after another, are nearly certain."""
        odds = torch.zeros((len(histories), len(self.symbols)), dtype=torch.float64)
        for row, history in enumerate(histories):
            if len(history) < len(self.likely) and list(history) == self.likely[: len(history)]:
                odds[row, self.symbols.index(self.likely[len(history)])] = 9.0
        return odds.log_softmax(1), histories


def test_every_pair_of_a_middling_alphabet_is_looked_at():
    characters = [chr(i) for i in range(33, 124)]
    model = Merging(characters, "%m")
    with pytest.raises(MergedTokens):
        extract(model, Template("{tokens:2}", tokens=characters))


def test_a_secret_that_wins_by_tokens_it_does_not_have_is_refused():
    """A rare merge escapes every sample, and the likeliest path is one that no text has."""
    model, template = Merging("0123456789", "1234", likely="12345"), Template("{digits:5}")
    with pytest.raises(MergedTokens, match="cuts"):
        extract(model, template)


def test_budgets_bind_the_beam_too():
    steps = 0

    class Slow(Coarse):
        def step(self, state, token_ids):
            nonlocal steps
            steps += 1
            time.sleep(0.02)
            return super().step(state, token_ids)

    found = extract(Slow(0), Template("{digits:100}"), max_seconds=0.2)
    assert steps < 50  # the beam alone would take a hundred
    assert not found.certified


@pytest.mark.parametrize("budget", [4, 9, 50, 100, 1000])
def test_no_more_nodes_than_the_budget(float32_table, budget):
    model = float32_table("0123456789", order=2, seed=1)
    found = extract(model, Template("{digits:4}"), max_nodes=budget)
    assert found.nodes == model.rows_seen <= budget


def test_log_probabilities_a_little_above_zero_do_not_break_the_order():
    class Over(Certain):
        def step(self, state, token_ids):
            answer = torch.tensor([[9e-4, -20.0]], dtype=torch.float64)
            return answer.repeat(len(token_ids), 1), None

    model, template = Over("ab", "a"), Template("{choice:a|b}{choice:a|b}")
    both = exact_exposure(model, template, secrets=["aa", "ba"])
    assert both[0].cost == 0.0
    assert both.rank.tolist() == [1, 3]
    assert extract(model, template).candidates[0] == ("aa", 0.0)


def test_rows_far_down_a_batch_are_looked_at():
    class Late(Coarse):
        def _answer(self, state):
            log_probs, state = super()._answer(state)
            return log_probs + 3.0 * (torch.arange(len(state)) > 70)[:, None], state

    with pytest.raises(UnsupportedModel, match="not normalised"):
        exact_exposure(Late(0), Template("{digits:4}"), secrets=["1234"])


def test_choices_that_overlap_without_end_are_refused_in_time(monkeypatch, table_model):
    monkeypatch.setattr("remnant.search.automaton.LARGEST", 1000)
    rng = np.random.default_rng(0)
    pieces = {"".join(rng.choice(list("ab"), size=rng.integers(4, 8))) for _ in range(40)}
    chosen = [p for p in sorted(pieces) if not any(o != p and p.endswith(o) for o in pieces)]
    with pytest.raises(MergedTokens, match="overlap in more than 1000 ways"):
        extract(table_model("ab"), Template("{tokens:6}", tokens=chosen))


def test_a_special_token_at_the_end_is_named():
    class Ended(Coarse):
        def encode(self, text):
            return [*super().encode(text), 9]

    with pytest.raises(MergedTokens, match="end every text with token 9"):
        extract(Ended(0), Template("1{choice:2|3}"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"template": "{digits:4}"}, "template is a str, not a Template"),
        ({"max_nodes": 1e2}, "max_nodes=100.0 is not a whole number"),
        ({"max_nodes": "5"}, "max_nodes='5' is not a whole number"),
        ({"max_seconds": "5"}, "max_seconds='5' is not a number"),
        ({"memory": 1.5}, "memory=1.5 is not a whole number"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(table_model, arguments, words):
    asked = {"template": Template("{digits:4}")} | arguments
    template = asked.pop("template")
    model = table_model("0123456789")
    with pytest.raises(InvalidInput, match=words):
        extract(model, template, **asked)
    with pytest.raises(InvalidInput, match=words):
        exact_exposure(model, template, secrets=["1234"], **asked)


@pytest.mark.parametrize("top", [2.5, None, 0, True])
def test_top_is_a_whole_number(table_model, top):
    with pytest.raises(InvalidInput, match="top="):
        extract(table_model("0123456789"), Template("{digits:2}"), top=top)


def test_secrets_may_be_any_row_of_them_but_not_none(table_model):
    model, template = table_model("0123456789"), Template("{digits:2}")
    assert len(exact_exposure(model, template, secrets=(s for s in ["12", "34"]))) == 2
    for wrong in (None, "12", [], 12):
        with pytest.raises(InvalidInput, match="secrets is not a list"):
            exact_exposure(model, template, secrets=wrong)


@pytest.mark.parametrize("answer", [RuntimeError("no"), None])
def test_an_encoder_that_fails_is_named(table_model, answer):
    model = table_model("0123456789")

    def encode(text):
        if isinstance(answer, Exception):
            raise answer
        return answer

    model.encode = encode
    with pytest.raises(InvalidInput, match="cannot encode"):
        extract(model, Template("{digits:2}"))


def test_an_impossible_secret_does_not_hide_that_a_budget_ended_the_walk():
    class Sure(Certain):
        def step(self, state, token_ids):
            answer = torch.full((len(token_ids), len(self.characters)), 1e-9).double()
            answer[:, self.characters.index("0")] = 0.0
            return (answer / answer.sum(1, keepdim=True)).log(), None

    model = Sure("x 0123456789", "7")
    found = exact_exposure(
        model, Template("x {digits:6}"), secrets=["000000", "777777"], max_nodes=9
    )
    assert found[0].finished
    assert not found[1].finished
    assert not found.finished
