"""Exposure of secrets of which some are exposed: sampled ones stay, saturated ones are walked."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from remnant.canaries import Template
from remnant.probes import Asked, token_costs
from remnant.search import compile_template, exact_exposure
from remnant.search.automaton import secret_path
from remnant.studies import measure_exposure
from remnant.studies.exposure.audit import ReadCosts
from remnant.studies.exposure.saturated import measure_each, measure_each_cost

TEMPLATE = Template("k{digits:6}")


class Remembers:
    """Gives the digits of one number more than their share, and others somewhat less."""

    def __init__(self, secret, share=0.9):
        self._ids, self._share = [0, *(int(d) + 1 for d in secret)], share

    def encode(self, text):
        return [0 if one == "k" else int(one) + 1 for one in text]

    def start(self, prefix_ids):
        return self._answer([tuple(prefix_ids)]), [tuple(prefix_ids)]

    def step(self, state, token_ids):
        read = [(*row, int(token)) for row, token in zip(state, token_ids, strict=True)]
        return self._answer(read), read

    def take(self, state, rows):
        return [state[int(row)] for row in rows]

    def _answer(self, read):
        table = torch.full((len(read), 11), 0.1)
        for row, ids in enumerate(read):
            table[row] += torch.arange(11) * 0.001 * len(ids)
            if len(ids) < len(self._ids) and list(ids) == self._ids[: len(ids)]:
                table[row] *= 1 - self._share
                table[row, self._ids[len(ids)]] = 3 * self._share
        return (table / table.sum(1, keepdim=True)).double().log()


def test_what_no_reference_reaches_is_ranked_exactly_and_the_rest_sampled():
    model = Remembers("271828")
    options = {"references": 300, "max_nodes": 2000}
    secrets = ["111111", "271828"]
    sampled = measure_exposure(
        model, TEMPLATE, secrets=secrets, rng=np.random.default_rng(0), **options
    )
    found = measure_each(model, TEMPLATE, secrets=secrets, rng=np.random.default_rng(0), **options)
    assert [one.saturated for one in sampled.each] == [False, True]
    assert found.each[0] == sampled.each[0]
    (exact,) = exact_exposure(model, TEMPLATE, secrets=["271828"])
    assert found.each[1].rank == exact.rank == 1
    assert found.each[1].bits == pytest.approx(math.log2(10**6))
    assert found.each[1].skew_normal_bits == sampled.each[1].skew_normal_bits
    assert not found.each[1].saturated
    assert found.method == "sampled"
    assert found.reason == sampled.reason
    assert found.nodes > sampled.nodes


def test_the_same_from_costs_that_were_read_before():
    model, secrets = Remembers("271828"), ["111111", "271828"]
    rng, automaton = np.random.default_rng(0), compile_template(model.encode, TEMPLATE)
    drawn = [one.secret for one in TEMPLATE.sample(300, rng=rng, exclude=secrets)]
    paths = [secret_path(model.encode, automaton, TEMPLATE, one) for one in [*secrets, *drawn]]
    costs = token_costs(Asked(model, automaton.prefix), paths)
    read = ReadCosts(automaton, costs[:2], costs[2:], 0)
    found = measure_each_cost(model, TEMPLATE, read, secrets=secrets, max_nodes=2000)
    assert [one.rank for one in found.each] == [None, 1]
    assert [one.saturated for one in found.each] == [False, False]
    refused = measure_each_cost(model, TEMPLATE, read, secrets=secrets, max_nodes=3)
    assert [one.saturated for one in refused.each] == [False, True]
    alone = ReadCosts(automaton, costs[1:2], costs[2:], 0)
    once = measure_each_cost(model, TEMPLATE, alone, secrets=secrets[1:], max_nodes=3)
    assert once.each[0].saturated
    assert once.nodes == 0, "a walk that was refused is not asked for again"


def test_a_walk_that_cannot_be_afforded_leaves_the_sample():
    model = Remembers("271828")
    options = {"references": 300, "max_nodes": 3}
    for method in ("auto", "sampled"):
        found = measure_each(
            model,
            TEMPLATE,
            secrets=["111111", "271828"],
            rng=np.random.default_rng(0),
            method=method,
            **options,
        )
        assert found.each[1].saturated
        assert found.each[1].rank is None
