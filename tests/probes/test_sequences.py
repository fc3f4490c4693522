"""Costs of sequences equal one pass over each of them alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import LanguageModel, Vocabulary, gru
from remnant.probes import Asked, decoding_log_probability, lay_out, text_costs, token_costs

VOCABULARY = Vocabulary.of_characters("abcd ")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return LanguageModel(gru(VOCABULARY.size, units=6), VOCABULARY, dtype=torch.float64)


def costs_by_hand(model, prefix, path):
    """Bits of each token, one row at a time."""
    log_probs, state = model.start(prefix)
    found = []
    for token in path:
        found.append(-float(log_probs[0, token]) / math.log(2))
        log_probs, state = model.step(state, torch.tensor([token]))
    return found


PATHS = st.lists(
    st.lists(st.integers(0, VOCABULARY.size - 1), min_size=1, max_size=5), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(paths=PATHS, prefix=st.lists(st.integers(0, 4), max_size=3), rows=st.integers(1, 5))
def test_token_costs_equal_one_pass_a_path(model, paths, prefix, rows):
    found = token_costs(Asked(model, prefix), paths, rows=rows)
    for row, path in zip(found, paths, strict=True):
        np.testing.assert_allclose(row[: len(path)], costs_by_hand(model, prefix, path), atol=1e-10)
        assert not row[len(path) :].any()


def test_shared_prefixes_are_read_once(model):
    asked = Asked(model, [])
    token_costs(asked, [[0, 1, 2], [0, 1, 3], [0, 1, 2], [0, 2]])
    assert asked.nodes == 2  # after "0", and after "0 1"


@settings(max_examples=20)
@given(paths=st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=12), rows=st.integers(1, 5))
def test_paths_laid_out_once_are_read_by_many_models(model, paths, rows):
    torch.manual_seed(1)
    other = LanguageModel(gru(VOCABULARY.size, units=3), VOCABULARY, dtype=torch.float64)
    tree = lay_out(paths, rows=rows)
    for one in (model, other, model):
        asked, alone = Asked(one, [1]), Asked(one, [1])
        np.testing.assert_array_equal(tree.costs(asked), token_costs(alone, paths, rows=rows))
        assert asked.nodes == alone.nodes
    for row, path in zip(tree.costs(Asked(other, [1])), paths, strict=True):
        np.testing.assert_allclose(row[: len(path)], costs_by_hand(other, [1], path), atol=1e-10)


def test_no_paths_and_empty_paths(model):
    assert token_costs(Asked(model, []), []).shape == (0, 0)
    assert token_costs(Asked(model, []), [[], []]).shape == (2, 0)


def test_progress_counts_paths(model):
    told = []
    token_costs(Asked(model, []), [[0], [1], [2]], rows=2, progress=lambda *what: told.append(what))
    assert told == [("costs", 2, 3), ("costs", 3, 3)]


def test_a_token_the_model_does_not_know(model):
    with pytest.raises(InvalidInput, match="answers for 5 tokens"):
        token_costs(Asked(model, []), [[7]])
    with pytest.raises(InvalidInput, match="answers for 5 tokens"):
        lay_out([[0, -1]]).costs(Asked(model, []))


def test_text_costs_begin_where_the_prefix_ends(model):
    texts = ["ab cd", "ab dd", "ab c"]
    found = text_costs(model, prefix="ab ", texts=texts)
    for bits, text in zip(found.bits, texts, strict=True):
        tail = VOCABULARY.encode(text[3:])
        expected = sum(costs_by_hand(model, VOCABULARY.encode("ab "), tail))
        assert bits == pytest.approx(expected)
    assert found.prefix_tokens == 3
    with pytest.raises(InvalidInput, match="does not begin with the prefix"):
        text_costs(model, prefix="x", texts=["ab"])


class Merging:
    """A tokenizer that joins "ab" into one token, over the model's other tokens."""

    def __init__(self, model):
        self._model = model
        self.start, self.step, self.take = model.start, model.step, model.take

    def encode(self, text):
        names = ("d" if piece == "ab" else piece for piece in _pieces(text))
        return [VOCABULARY.symbols.index(name) for name in names]


def _pieces(text):
    out, at = [], 0
    while at < len(text):
        size = 2 if text.startswith("ab", at) else 1
        out.append(text[at : at + size])
        at += size
    return out


def test_text_costs_go_back_to_where_all_texts_agree(model):
    merging = Merging(model)
    found = text_costs(merging, prefix="ca", texts=["cab", "cac"])
    assert found.prefix_tokens == 1  # "ca" ends inside the token "ab" of the first text
    c, d, a = (VOCABULARY.symbols.index(s) for s in "cda")
    assert found.bits[0] == pytest.approx(sum(costs_by_hand(model, [c], [d])))
    assert found.bits[1] == pytest.approx(sum(costs_by_hand(model, [c], [a, c])))


def test_decoding_without_a_cut_is_the_models_own_probability(model):
    bits = text_costs(model, prefix="ab", texts=["ab cad"]).bits[0]
    found = decoding_log_probability(model, prefix="ab", continuation=" cad")
    assert found == pytest.approx(-bits * math.log(2))


def test_decoding_cuts_and_makes_it_add_up_again(model):
    total = 0.0
    for symbol in VOCABULARY.symbols:
        found = decoding_log_probability(
            model, prefix="ab", continuation=symbol, temperature=0.7, top_k=3
        )
        total += math.exp(found)
    assert total == pytest.approx(1.0)
    order = model.start(VOCABULARY.encode("ab"))[0][0].argsort(descending=True)
    best, worst = (VOCABULARY.symbols[int(order[i])] for i in (0, -1))
    assert decoding_log_probability(model, prefix="ab", continuation=best, top_k=1) == 0.0
    assert decoding_log_probability(model, prefix="ab", continuation=worst, top_k=4) == -math.inf
    assert decoding_log_probability(model, prefix="ab", continuation=best, top_p=1e-6) == 0.0
    cool = decoding_log_probability(model, prefix="ab", continuation=best, temperature=0.1)
    warm = decoding_log_probability(model, prefix="ab", continuation=best, temperature=2.0)
    assert cool > warm


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature=0"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"continuation": ""}, "adds no token"),
    ],
)
def test_decoding_faults(model, options, message):
    with pytest.raises(InvalidInput, match=message):
        decoding_log_probability(model, **{"prefix": "ab", "continuation": "c", **options})


def test_the_search_leaves_no_switch_turned(model):
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        matmul.allow_tf32 = True
        Asked(model, [])
        assert matmul.allow_tf32 is True
    finally:
        matmul.allow_tf32 = before


def test_a_model_whose_answers_change_width_is_refused(model):
    asked = Asked(model, [])
    asked.vocabulary = 4
    with pytest.raises(UnsupportedModel, match="4 log-probabilities at first and 5 now"):
        asked.step(asked.first_state, torch.tensor([0]))
