"""Extraction's certificate is right every time, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries.template import Template
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.search import extract
from remnant.search.baselines import beam_search, begin, brute_force, sample_secrets
from remnant.search.dijkstra import batched_dijkstra
from remnant.search.walk import bytes_held, rows_that_fit

SYMBOLS = list("0123456789ab- .x")
PATTERNS = [
    "x{digits:3}",
    "{digits:2}",
    "x {digits:1}-{digits:1}-{digits:1}.",
    "x{choice:a|ab|aba}",
    "{choice:a|ab}{choice:b|bb|}.",
    "{choice:a|ab}{choice:b|bb|}",
    "{choice:|a|ab}",
    "{choice:00|01|1}-{choice:a|b}{digits:1} x.",
]


def cheapest(costs, top):
    return sorted(costs.values())[:top]


@settings(max_examples=120)
@given(
    pattern=st.sampled_from(PATTERNS),
    order=st.integers(0, 2),
    seed=st.integers(0, 10_000),
    levels=st.sampled_from([None, 1, 3]),
    top=st.integers(1, 30),
    beam=st.integers(1, 8),
)
def test_candidates_are_the_cheapest_of_the_space(
    table_model, brute, pattern, order, seed, levels, top, beam
):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=order, seed=seed, levels=levels)
    costs = brute(model, template)
    found = extract(model, template, top=top, beam=beam)
    assert found.certified is True
    assert found.nodes == model.rows_seen
    secrets = [secret for secret, _ in found.candidates]
    assert len(set(secrets)) == len(secrets) == min(top, template.space)
    bits = [bits for _, bits in found.candidates]
    assert bits == sorted(bits)
    np.testing.assert_allclose(bits, cheapest(costs, top), atol=1e-9)
    np.testing.assert_allclose(bits, [costs[secret] for secret in secrets], atol=1e-9)


@settings(max_examples=80)
@given(
    pattern=st.sampled_from(PATTERNS),
    seed=st.integers(0, 10_000),
    budget=st.integers(8, 300),
    top=st.integers(1, 5),
)
def test_a_certificate_under_a_budget_is_never_wrong(
    table_model, brute, pattern, seed, budget, top
):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=1, seed=seed)
    costs = brute(model, template)
    found = extract(model, template, top=top, max_nodes=budget)
    assert found.candidates
    assert found.nodes <= budget
    assert all(costs[secret] == pytest.approx(bits) for secret, bits in found.candidates)
    if found.certified:
        np.testing.assert_allclose([b for _, b in found.candidates], cheapest(costs, top))


def test_a_budget_that_ends_the_search_gives_no_certificate(table_model):
    template = Template("{digits:6}")
    model = table_model(SYMBOLS, seed=5, scale=0.05)
    found = extract(model, template, max_nodes=100)
    assert found.certified is False
    assert found.bound == 0.0
    assert len(found.candidates) == 1
    assert extract(model, template, max_seconds=1e-9).certified is False


def test_a_memorised_secret_is_found_in_few_nodes(table_model):
    template = Template("x{digits:9}")
    model = table_model(SYMBOLS, order=2, seed=5, scale=5.0)
    found = extract(model, template, top=3)
    assert found.certified
    assert found.nodes < 100_000
    np.testing.assert_allclose(found.candidates[0][1], model.cost(template, found.candidates[0][0]))


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), top=st.integers(1, 5))
def test_float32_is_settled_by_its_float64_twin(float32_table, brute, seed, top):
    template = Template("x{digits:3}")
    model = float32_table(SYMBOLS, order=2, seed=seed, scale=0.02)
    costs = brute(model, template)
    found = extract(model, template, top=top)
    best = sorted(costs, key=costs.get)[:top]
    assert [secret for secret, _ in found.candidates] == best
    assert found.tolerance == 1e-9


def test_all_equal_secrets_are_certified_within_a_bounded_pool(table_model):
    found = extract(table_model(SYMBOLS, levels=1), Template("x{digits:5}"), top=3)
    assert found.certified
    assert len({secret for secret, _ in found.candidates}) == 3


def test_repr_shows_no_secret(table_model):
    found = extract(table_model(SYMBOLS), Template("x{digits:3}"))
    assert found.candidates[0][0] not in repr(found)


def test_many_more_than_the_beam_are_found(table_model, brute):
    template = Template("x{digits:4}")
    model = table_model(SYMBOLS, order=2, seed=5, levels=3)
    found = extract(model, template, top=6000, beam=2)
    np.testing.assert_allclose(
        [b for _, b in found.candidates], cheapest(brute(model, template), 6000)
    )


@pytest.mark.parametrize("options", [{"top": 0}, {"beam": 0}, {"max_nodes": 2}, {"memory": 3}])
def test_faults_are_one_sentence(table_model, options):
    with pytest.raises(InvalidInput):
        extract(table_model(SYMBOLS), Template("x{digits:3}"), **options)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_baselines_agree_where_they_must(table_model, brute, pattern):
    template = Template(pattern)
    model = table_model(SYMBOLS, order=2, seed=11)
    costs = brute(model, template)
    whole = brute_force(model, template, top=4)
    assert whole.certified
    np.testing.assert_allclose([b for _, b in whole.candidates], cheapest(costs, 4))
    wide = beam_search(model, template, width=template.space, top=4)
    assert [s for s, _ in wide.candidates] == [s for s, _ in whole.candidates]
    one_by_one = batched_dijkstra(model, template, at_once=1)
    assert one_by_one.candidates[0][1] == pytest.approx(cheapest(costs, 1)[0])
    many = batched_dijkstra(model, template, at_once=50, top=2)
    assert many.candidates[0][1] == pytest.approx(cheapest(costs, 1)[0])
    assert not many.certified
    assert not wide.certified
    drawn = sample_secrets(model, template, queries=300, rng=np.random.default_rng(0), top=5)
    assert all(costs[s] == pytest.approx(b) for s, b in drawn.candidates)
    greedy = beam_search(model, template, width=1)
    assert greedy.method == "greedy"
    assert costs[greedy.candidates[0][0]] >= cheapest(costs, 1)[0]


def test_samples_follow_the_model(table_model):
    template = Template("x{digits:1}")
    model = table_model(SYMBOLS, order=1, seed=3)
    model.table[:] = -30.0
    model.table[:, SYMBOLS.index("4")] = 0.0
    model.table -= np.log(np.exp(model.table).sum(1, keepdims=True))
    drawn = sample_secrets(model, template, queries=50, rng=np.random.default_rng(0), top=10)
    assert [s for s, _ in drawn.candidates] == ["4"]
    with pytest.raises(InvalidInput, match="queries=0"):
        sample_secrets(model, template, queries=0, rng=np.random.default_rng(0))


def test_a_memory_budget_changes_no_sample(table_model):
    template = Template("x{digits:2}x{digits:1}")
    model = table_model(SYMBOLS, order=2, seed=11)

    def drawn(memory):
        rng = np.random.default_rng(0)
        return sample_secrets(model, template, queries=60, rng=rng, top=60, memory=memory)

    scorer, automaton = begin(model, template)
    one, whole = bytes_held(scorer, automaton, 1), drawn(None)
    assert len(whole.candidates) > 10
    for rows in (1, 7):
        memory = bytes_held(scorer, automaton, rows)
        assert rows_that_fit(scorer, automaton, memory) == rows
        within = drawn(memory)
        assert [s for s, _ in within.candidates] == [s for s, _ in whole.candidates]
        assert [b for _, b in within.candidates] == pytest.approx([b for _, b in whole.candidates])
    with pytest.raises(InvalidInput, match=f"memory={one - 1} bytes do not hold one row"):
        drawn(one - 1)


def test_brute_force_refuses_a_large_space(table_model):
    with pytest.raises(NotEnoughEvidence, match="1000000000"):
        brute_force(table_model(SYMBOLS), Template("{digits:9}"))
