"""Exact rank equals brute force on models whose every probability is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries.template import Template
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.search import MergedTokens, exact_exposure, extract

SYMBOLS = list("0123456789ab- .x")
PATTERNS = [
    "x{digits:3}",
    "{digits:2}",
    "x {digits:1}-{digits:1}-{digits:1}.",
    "{choice:a|ab|b}{digits:1}",
    "x{choice:a|ab}",
    "x{choice:a|ab|aba}",
    "{choice:a|ab}{choice:b|bb|}.",
    "{choice:a|ab}{choice:b|bb|}",
    "{choice:|a|ab}x",
    "{choice:00|01|1}-{choice:a|b}{digits:1} x.",
    "{choice:a|b|-}{choice:a|b|-}{choice:a|b|-}{choice:a|b|-}..x",
]


def rank_by_hand(costs, secret):
    return sum(c <= costs[secret] + 1e-9 for c in costs.values())


@settings(max_examples=120)
@given(
    pattern=st.sampled_from(PATTERNS),
    order=st.integers(0, 2),
    seed=st.integers(0, 10_000),
    levels=st.sampled_from([None, 1, 2, 3]),
    data=st.data(),
)
def test_rank_and_exposure_equal_brute_force(
    table_model, brute, pattern, order, seed, levels, data
):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=order, seed=seed, levels=levels)
    costs = brute(model, template)
    assert len(costs) == template.space
    secrets = data.draw(st.lists(st.sampled_from(sorted(costs)), min_size=1, max_size=12))
    found = exact_exposure(model, template, secrets=secrets)
    assert found.finished is True
    for one, secret in zip(found, secrets, strict=True):
        assert one.rank == one.rank_high == rank_by_hand(costs, secret)
        assert 1 <= one.rank_low <= one.rank_high
        assert one.cost == pytest.approx(costs[secret], abs=1e-9)
        assert one.bits == math.log2(template.space) - math.log2(one.rank)
        if levels is None and order == 2:  # no ties by construction
            assert one.rank_low == one.rank_high
        assert one.nodes == found.nodes == model.rows_seen


@settings(max_examples=80)
@given(
    pattern=st.sampled_from(PATTERNS),
    seed=st.integers(0, 10_000),
    budget=st.integers(8, 400),
    data=st.data(),
)
def test_a_budget_leaves_bounds_that_hold(table_model, brute, pattern, seed, budget, data):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=1, seed=seed, levels=3)
    costs = brute(model, template)
    secret = data.draw(st.sampled_from(sorted(costs)))
    (one,) = exact_exposure(model, template, secrets=[secret], max_nodes=budget)
    assert one.rank_low <= rank_by_hand(costs, secret) <= one.rank_high == one.rank
    assert one.nodes <= budget
    if one.finished:
        assert one.rank == rank_by_hand(costs, secret)


def test_a_budget_that_ends_the_walk_says_so(table_model):
    template = Template("{digits:5}")
    model = table_model(SYMBOLS, seed=3)
    costly = max((model.cost(template, s), s) for s in ("00000", "99999", "12345"))[1]
    (ended,) = exact_exposure(model, template, secrets=[costly], max_nodes=50)
    (whole,) = exact_exposure(model, template, secrets=[costly])
    assert ended.exact is False
    assert whole.finished is True
    assert ended.rank_low <= whole.rank <= ended.rank_high
    assert ended.bits == ended.low <= whole.bits <= ended.high
    (timed,) = exact_exposure(model, template, secrets=[costly], max_seconds=1e-9)
    assert timed.exact is False
    assert timed.rank_low <= whole.rank <= timed.rank_high


def test_a_uniform_model_exposes_nothing(table_model):
    template = Template("x{digits:4}")
    model = table_model(SYMBOLS, levels=1)
    (one,) = exact_exposure(model, template, secrets=["1234"])
    assert (one.rank, one.rank_low, one.bits) == (10_000, 10_000, 0.0)


def test_impossible_secrets_rank_last(table_model):
    template = Template("x{digits:2}")
    model = table_model(SYMBOLS, seed=1)
    model.table[:, SYMBOLS.index("7")] = -math.inf
    model.table -= np.log(np.exp(model.table).sum(1, keepdims=True))
    found = exact_exposure(model, template, secrets=["77", "12"])
    assert found[0].rank == found[0].rank_low == 100
    assert found[0].cost == math.inf
    assert found[1].rank < 82


@pytest.mark.parametrize("pattern", ["x{digits:4}", "{choice:a|ab|b}{digits:3}", "{digits:3}x.x"])
def test_small_batches_and_little_memory_change_nothing(table_model, monkeypatch, pattern):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=2, seed=5)
    secrets = [template.secret_at(i) for i in (0, 7, 123, 999)]
    whole = exact_exposure(model, template, secrets=secrets)
    small = exact_exposure(model, template, secrets=secrets, memory=20_000)
    assert [one.rank for one in small] == [one.rank for one in whole]
    assert small.nodes == whole.nodes


def test_many_canaries_share_one_walk(table_model, brute):
    template = Template("x{digits:3}")
    model = table_model(SYMBOLS, order=2, seed=9, levels=4)
    costs = brute(model, template)
    secrets = sorted(costs)[::10]
    found = exact_exposure(model, template, secrets=secrets)
    assert found.rank.tolist() == [rank_by_hand(costs, secret) for secret in secrets]
    most = max(exact_exposure(model, template, secrets=[s]).nodes for s in secrets)
    assert found.nodes <= most + 3 * len(secrets)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), levels=st.sampled_from([None, 3]), data=st.data())
def test_float32_is_settled_by_its_float64_twin(float32_table, brute, seed, levels, data):
    template = Template("x{digits:3}.")
    model = float32_table(SYMBOLS, order=1, seed=seed, levels=levels, scale=0.05)
    costs = brute(model, template)
    secrets = data.draw(st.lists(st.sampled_from(sorted(costs)), min_size=1, max_size=10))
    for one, secret in zip(exact_exposure(model, template, secrets=secrets), secrets, strict=True):
        assert one.rank == rank_by_hand(costs, secret)
        assert one.tolerance == 1e-9


def test_coarse_arithmetic_is_seen_and_settled(float32_table, brute):
    template = Template("x{digits:3}")
    model = float32_table(SYMBOLS, order=1, seed=4, scale=0.02)
    model.noise = 5e-4  # an error of the kind that TF32 leaves
    costs = brute(model, template)
    secrets = sorted(costs)[::97]
    found = exact_exposure(model, template, secrets=secrets)
    assert [one.rank for one in found] == [rank_by_hand(costs, s) for s in secrets]


def test_a_walk_less_exact_than_thought_is_walked_again(float32_table, brute, monkeypatch):
    monkeypatch.setattr("remnant.search.close_calls._TRIED", 0)
    template = Template("x{digits:3}")
    model = float32_table(SYMBOLS, order=1, seed=4, scale=0.02)
    costs = brute(model, template)
    quiet = exact_exposure(model, template, secrets=["222"])
    model.noise, model.noisy_after = 8e-4, SYMBOLS.index("2")  # the secret itself looks exact
    found = exact_exposure(model, template, secrets=["222"])
    assert found[0].rank == quiet[0].rank == rank_by_hand(costs, "222")
    assert found.nodes > 1.8 * quiet.nodes


def test_float32_without_a_twin_brackets_the_rank(float32_table, brute, monkeypatch):
    monkeypatch.delattr(float32_table, "in_float64")
    template = Template("x{digits:3}")
    model = float32_table(SYMBOLS, order=2, seed=4, scale=0.01)
    costs = brute(model, template)
    found = exact_exposure(model, template, secrets=sorted(costs)[::37])
    for one, secret in zip(found, sorted(costs)[::37], strict=True):
        assert one.rank_low <= rank_by_hand(costs, secret) <= one.rank_high
    assert any(one.rank_low < one.rank_high for one in found)
    assert [one.exact for one in found] == [one.rank_low == one.rank_high for one in found]
    assert found.finished
    assert not found.exact


def test_results_are_a_sequence_and_arrays(table_model):
    found = exact_exposure(table_model(SYMBOLS), Template("x{digits:1}"), secrets=["1", "2", "3"])
    assert len(found) == 3
    assert found.bits.tolist() == [one.bits for one in found]
    assert found[1:].rank.tolist() == found.rank.tolist()[1:]
    assert found.rank_low.tolist() <= found.rank_high.tolist()


def test_a_tokenizer_that_keeps_blanks_with_words_is_followed(table_model, brute):
    symbols = ["the", " word", " is", " red", " blue", " dark", "blue", " ", "."]
    template = Template("the word is {words:2}.", words=["red", "blue", "dark"])
    model = table_model(symbols, order=2, seed=2)
    found = exact_exposure(model, template, secrets=["red blue"])
    costs = {}
    for secret in [
        f"{a} {b}" for a in template.slots[0].choices for b in template.slots[0].choices
    ]:
        costs[secret] = cost_after(model, template, secret, tokens=3)
    assert found[0].cost == pytest.approx(costs["red blue"])
    assert found[0].rank == rank_by_hand(costs, "red blue")


def cost_after(model, template, secret, *, tokens):
    """Cost of the last tokens of a text."""
    ids = model.encode(template.text(secret))
    before = len(ids) - tokens
    log_probs, state = model.start(ids[:before])
    total = 0.0
    for token in ids[before:]:
        total -= float(log_probs[0, token]) / math.log(2)
        log_probs, state = model.step(state, torch.tensor([token]))
    return total


def test_choices_of_several_tokens_form_a_trie(table_model, brute):
    template = Template("x{choice:10|110|111|a1|b}{choice:0|1-|-}")
    model = table_model(SYMBOLS, order=2, seed=8)
    costs = brute(model, template)
    for secret in costs:
        (one,) = exact_exposure(model, template, secrets=[secret])
        assert one.rank == rank_by_hand(costs, secret)


@pytest.mark.parametrize(
    ("symbols", "pattern"),
    [
        ([*SYMBOLS, "12"], "x{digits:3}"),
        ([*SYMBOLS, "x1"], "x{digits:3}"),
        ([*SYMBOLS, "9."], "x{digits:3}."),
        ([*SYMBOLS, "ab"], "{choice:a|ab}{choice:b|-}"),
        ([*SYMBOLS, "ab"], "{choice:a|ab}{choice:b|bb}"),
    ],
)
def test_a_tokenizer_that_merges_across_a_hole_is_refused(table_model, symbols, pattern):
    template = Template(pattern)
    with pytest.raises(MergedTokens, match="sampling"):
        exact_exposure(table_model(symbols), template, secrets=[template.secret_at(0)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secrets": ["12a"]}, "not one of the 1000"),
        ({"secrets": "123"}, "not a list"),
        ({"secrets": []}, "not a list"),
        (
            {"secrets": ["123"], "max_nodes": 2},
            "max_nodes=2 is less than the template's depth of 3",
        ),
        ({"secrets": ["123"], "max_seconds": 0}, "max_seconds=0"),
        ({"secrets": ["123"], "memory": 10}, "memory=10 bytes do not hold one row"),
        ({"secrets": ["123"], "memory": 0}, "memory=0"),
    ],
)
def test_faults_are_one_sentence(table_model, options, message):
    with pytest.raises(InvalidInput, match=message) as fault:
        exact_exposure(table_model(SYMBOLS), Template("x{digits:3}"), **options)
    assert "12a" not in str(fault.value)


def test_a_budget_of_the_depth_is_enough(table_model):
    (one,) = exact_exposure(
        table_model(SYMBOLS), Template("x{digits:3}"), secrets=["123"], max_nodes=3
    )
    assert one.nodes <= 3


def test_characters_the_model_cannot_encode(table_model):
    with pytest.raises(InvalidInput, match="cannot encode") as fault:
        exact_exposure(table_model(list("0123")), Template("{digits:3}"), secrets=["987"])
    assert "987" not in str(fault.value)


def test_characters_that_look_alike_to_the_model(table_model):
    model = table_model(SYMBOLS)
    plain = model.encode
    model.encode = lambda text: plain(text.replace("8", "9"))
    with pytest.raises(InvalidInput, match="same tokens"):
        exact_exposure(model, Template("x{digits:3}"), secrets=["123"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table * np.nan, "NaN"),
        (lambda table: table + 0.1, "not normalised"),
        (lambda table: table / np.log(2), "not normalised"),
    ],
)
@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_model_that_answers_nonsense_is_refused(table_model, change, message, when):
    model = table_model(SYMBOLS, order=1)
    rows = slice(None) if when == "at once" else slice(SYMBOLS.index("5"), SYMBOLS.index("5") + 1)
    model.table[rows] = change(model.table[rows])
    with pytest.raises(UnsupportedModel, match=message):
        exact_exposure(model, Template("x{digits:3}"), secrets=["123"])


def test_a_rare_nan_is_seen(table_model):
    model = table_model(SYMBOLS, order=3, scale=0.1)
    width = len(SYMBOLS) + 1
    last = [SYMBOLS.index(c) for c in "987"]
    model.table[(last[0] * width + last[1]) * width + last[2]] = np.nan
    with pytest.raises(UnsupportedModel, match="NaN"):
        exact_exposure(model, Template("x{digits:4}"), secrets=["1234"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a: a.half(), "float16"),
        (lambda a: a[0], "returned"),
        (lambda a: a.numpy(), "returned"),
    ],
)
def test_a_model_that_answers_in_another_shape_is_refused(table_model, answer, message):
    model = table_model(SYMBOLS)
    start = model.start
    model.start = lambda prefix: (answer(start(prefix)[0]), start(prefix)[1])
    with pytest.raises(UnsupportedModel, match=message):
        exact_exposure(model, Template("x{digits:3}"), secrets=["123"])


def test_a_tokenizer_of_another_model_is_refused(table_model):
    model = table_model(SYMBOLS)
    plain = model.encode
    model.encode = lambda text: [i + 10 for i in plain(text)]
    with pytest.raises(InvalidInput, match="answers for"):
        exact_exposure(model, Template("{digits:3}"), secrets=["123"])


def test_something_that_is_no_model_is_refused():
    class Empty:
        def encode(self, text):
            return list(range(len(text)))

    with pytest.raises(UnsupportedModel, match="no start, step, take"):
        exact_exposure(Empty(), Template("{choice:a|bc}"), secrets=["a"])


def test_progress_reaches_its_end(table_model):
    told = []
    exact_exposure(
        table_model(SYMBOLS),
        Template("x{digits:3}"),
        secrets=["123"],
        progress=lambda *what: told.append(what),
    )
    assert told[-1] == ("search", 1000, 1000)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_the_space_may_be_larger_than_any_machine_number(table_model):
    template = Template("x{digits:30}")
    model = table_model(SYMBOLS, order=1, seed=2, scale=8.0)
    (secret, _), *_ = extract(model, template).candidates
    (one,) = exact_exposure(model, template, secrets=[secret])
    assert one.rank == 1
    assert one.bits == pytest.approx(30 * math.log2(10))
    (ended,) = exact_exposure(model, template, secrets=["9" * 30], max_nodes=1000)
    assert ended.exact is False
    assert ended.rank_high > 2**64


class OutOfMemory:
    """A model on a device that holds so many rows; more of them do not fit."""

    def __init__(self, model, rows):
        self.model, self.rows, self.refused = model, rows, 0
        self.encode, self.start, self.take = model.encode, model.start, model.take

    def step(self, state, token_ids):
        if len(token_ids) > self.rows:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return self.model.step(state, token_ids)


def test_a_walk_that_runs_out_of_memory_goes_on_with_fewer_rows(table_model):
    template = Template("x{digits:3}.")
    plain = table_model(SYMBOLS, order=2, seed=3)
    expected = exact_exposure(plain, template, secrets=["281", "999"])
    model = OutOfMemory(plain, rows=40)
    found = exact_exposure(model, template, secrets=["281", "999"])
    assert model.refused > 0
    assert found.rank.tolist() == expected.rank.tolist()
    assert found.nodes == expected.nodes
    best, same = (extract(each, template, top=3) for each in (model, plain))
    assert best.candidates == same.candidates
    assert best.certified


def test_too_little_memory_for_one_row_is_one_sentence(table_model):
    model = OutOfMemory(table_model(SYMBOLS, order=1), rows=0)
    with pytest.raises(InvalidInput, match="does not hold one more row"):
        extract(model, Template("x{digits:2}."))
