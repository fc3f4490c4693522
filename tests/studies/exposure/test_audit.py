"""Exposure by whichever method: exact where it can be afforded, and honest about it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from remnant.canaries import Template
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.models import LanguageModel, Vocabulary, lstm
from remnant.probes import Asked, token_costs
from remnant.probes.counted_model import TimeLimit
from remnant.search import MergedTokens, compile_template, exact_exposure
from remnant.studies import measure_exposure
from remnant.studies.exposure.audit import ReadCosts, measure_costs
from remnant.studies.exposure.cost_estimate import nodes_expected

TEMPLATE = Template("pin {digits:4}")
VOCABULARY = Vocabulary.of_characters("pin 0123456789")


def make_model(seed):
    torch.manual_seed(seed)
    module = lstm(VOCABULARY.size, units=16, layers=1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(4.0)  # costs that differ
    return LanguageModel(module, VOCABULARY)


@pytest.fixture(scope="module")
def model():
    return make_model(0)


@pytest.fixture(scope="module")
def secrets():
    return [one.secret for one in TEMPLATE.sample(6, rng=np.random.default_rng(3))]


def test_auto_is_exact_where_the_walk_is_affordable(model, secrets):
    found = measure_exposure(model, TEMPLATE, secrets=secrets, rng=np.random.default_rng(0))
    truth = exact_exposure(model, TEMPLATE, secrets=secrets)
    assert found.method == "exact"
    assert "expected to take about" in found.reason
    assert [one.rank for one in found.each] == truth.rank.tolist()
    np.testing.assert_allclose(found.bits, truth.bits)
    assert len(found.reference_costs) == 10_000 - len(secrets)
    assert found.extrapolated is not None


def test_auto_samples_where_the_walk_is_not(model, secrets):
    found = measure_exposure(
        model, TEMPLATE, secrets=secrets, rng=np.random.default_rng(0), max_nodes=20, references=500
    )
    truth = exact_exposure(model, TEMPLATE, secrets=secrets)
    assert found.method == "sampled"
    assert found.reason.startswith("sampled, because")
    inside = [
        one.low <= exact.bits <= one.high for one, exact in zip(found.each, truth, strict=True)
    ]
    assert all(inside)
    assert all(one.rank is None for one in found.each)


def test_auto_samples_where_a_budget_ends_the_walk(model, secrets):
    found = measure_exposure(
        model,
        TEMPLATE,
        secrets=secrets,
        rng=np.random.default_rng(0),
        max_seconds=1e-9,
        references=300,
    )
    assert found.method == "sampled"
    assert "a budget ended the walk" in found.reason


def test_exact_that_was_asked_for_keeps_its_bounds(model, secrets):
    found = measure_exposure(
        model,
        TEMPLATE,
        secrets=secrets,
        rng=np.random.default_rng(0),
        method="exact",
        max_nodes=40,
        references=0,
    )
    truth = exact_exposure(model, TEMPLATE, secrets=secrets)
    assert found.method == "exact"
    assert found.extrapolated is None
    for one, exact in zip(found.each, truth, strict=True):
        assert one.low <= exact.bits <= one.high
    assert any(one.low < one.high for one in found.each)


class Pairs:
    """The model behind a tokenizer that joins "12" into one token."""

    def __init__(self, model):
        self.start, self.step, self.take = model.start, model.step, model.take

    def encode(self, text):
        return [VOCABULARY.symbols.index("n" if c == "\0" else c) for c in text.replace("12", "\0")]


def test_a_tokenizer_that_merges_is_sampled(model):
    found = measure_exposure(
        Pairs(model),
        TEMPLATE,
        secrets=["1234", "0000"],
        rng=np.random.default_rng(0),
        references=500,
    )
    assert found.method == "sampled"
    assert "tree cannot be walked" in found.reason


class Rarely(Pairs):
    """Joins "1234" only: too rare to be seen before the secrets are looked at."""

    def encode(self, text):
        joined = text.replace("1234", "\0")
        return [VOCABULARY.symbols.index("n" if c == "\0" else c) for c in joined]


def test_a_merge_that_shows_in_a_secret_alone_is_sampled(model):
    found = measure_exposure(
        Rarely(model), TEMPLATE, secrets=["1234"], rng=np.random.default_rng(0), references=500
    )
    assert found.method == "sampled"
    with pytest.raises(MergedTokens):
        measure_exposure(
            Rarely(model), TEMPLATE, secrets=["1234"], rng=np.random.default_rng(0), method="exact"
        )


def test_a_space_beyond_all_numbers_is_sampled(model):
    found = measure_exposure(
        model,
        Template("pin {digits:400}"),
        secrets=["1" * 400],
        rng=np.random.default_rng(0),
        references=60,
    )
    assert found.method == "sampled"
    assert "10^30" in found.reason


def test_reference_models_calibrate(model, secrets):
    others = [make_model(seed) for seed in (1, 2)]
    found = measure_exposure(
        model,
        TEMPLATE,
        secrets=secrets,
        rng=np.random.default_rng(0),
        references=400,
        reference_models=others,
    )
    assert found.calibrated
    assert found.method == "sampled"
    plain = [exact_exposure(m, TEMPLATE, secrets=secrets) for m in (model, *others)]
    expected = [a.cost - (b.cost + c.cost) / 2 for a, b, c in zip(*plain, strict=True)]
    np.testing.assert_allclose([one.cost for one in found.each], expected, atol=1e-3)


def test_the_same_rng_gives_the_same_numbers(model, secrets):
    one, other = (
        measure_exposure(
            model,
            TEMPLATE,
            secrets=secrets,
            rng=np.random.default_rng(5),
            method="sampled",
            references=200,
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.reference_costs, other.reference_costs)
    np.testing.assert_array_equal(one.bits, other.bits)


@pytest.mark.parametrize("index", [0, 50, 2000])
def test_the_expected_nodes_are_near_the_real_ones(model, index):
    drawn = [one.secret for one in TEMPLATE.sample(256, rng=np.random.default_rng(1))]
    truth = exact_exposure(model, TEMPLATE, secrets=drawn)
    secret = drawn[int(np.argsort(truth.bits)[-1 - index * 255 // 2000])]
    expected = nodes_expected(model, TEMPLATE, [secret], drawn, limit=TimeLimit(None))
    walked = exact_exposure(model, TEMPLATE, secrets=[secret]).nodes
    assert abs(expected - walked) < 0.25 * walked + 300  # with the calls that settle rounding
    assert nodes_expected(model, TEMPLATE, [secret], [], limit=TimeLimit(None)) == 1110


def test_a_cheap_secret_is_ranked_in_a_space_of_any_size():
    module = lstm(VOCABULARY.size, units=1, layers=1)
    state = {name: torch.zeros_like(tensor) for name, tensor in module.state_dict().items()}
    state["head.bias"][VOCABULARY.encode("7")[0]] = 6.0
    module.load_state_dict(state)
    model = LanguageModel(module, VOCABULARY)
    template = Template("pin {digits:30}")
    cheap, dear = "7" * 29 + "1", "7" * 15 + "1" * 15
    options = {"rng": np.random.default_rng(0), "references": 100}
    found = measure_exposure(model, template, secrets=[cheap], **options)
    assert (found.method, found.each[0].rank) == ("exact", 1 + 30 * 9)
    drawn = [one.secret for one in template.sample(100, rng=np.random.default_rng(1))]
    expected = nodes_expected(model, template, [cheap], drawn, limit=TimeLimit(None))
    assert found.nodes <= expected + 1000
    assert nodes_expected(model, template, [cheap, dear], drawn, limit=TimeLimit(None)) > 10**12


def read_costs(model, secrets, drawn):
    automaton = compile_template(model.encode, TEMPLATE)
    asked = Asked(model, automaton.prefix)
    paths = [model.encode(TEMPLATE.text(one))[4:] for one in (*secrets, *drawn)]
    costs = token_costs(asked, paths)
    return ReadCosts(automaton, costs[: len(secrets)], costs[len(secrets) :], asked.nodes)


@pytest.mark.parametrize("method", ["auto", "exact", "sampled"])
@pytest.mark.parametrize("max_nodes", [30, 400, 900, 1200])
def test_costs_read_before_give_the_same_audit(model, secrets, method, max_nodes):
    options = {"secrets": secrets[:2], "method": method, "max_nodes": max_nodes}
    expected = measure_exposure(
        model, TEMPLATE, rng=np.random.default_rng(0), references=300, **options
    )
    drawn = TEMPLATE.sample(300, rng=np.random.default_rng(0), exclude=secrets[:2])
    costs = read_costs(model, secrets[:2], [one.secret for one in drawn])
    found = measure_costs(model, TEMPLATE, costs, **options)
    assert (found.method, found.reason) == (expected.method, expected.reason)
    assert (found.nodes, found.complete) == (expected.nodes, expected.complete)
    assert [one.rank for one in found.each] == [one.rank for one in expected.each]
    np.testing.assert_array_equal(found.bits, expected.bits)
    np.testing.assert_allclose(found.reference_costs, expected.reference_costs)
    np.testing.assert_allclose(found.extrapolated.bits, expected.extrapolated.bits, rtol=1e-6)
    plain = measure_costs(model, TEMPLATE, costs, fit=False, **options)
    assert plain.extrapolated is None
    np.testing.assert_array_equal(plain.bits, found.bits)


class Silent:
    """A model that must not be asked."""


def test_sampling_among_costs_read_before_asks_no_model(model, secrets):
    costs = read_costs(model, secrets, ["0000", "9999", "1234"])
    found = measure_costs(Silent(), TEMPLATE, costs, secrets=secrets, method="sampled")
    own, drawn = costs.secrets.sum(1), costs.references.sum(1)
    bits = [math.log2(4) - math.log2(1 + sum(drawn <= one)) for one in own]
    np.testing.assert_allclose(found.bits, bits)
    with pytest.raises(NotEnoughEvidence, match="needs references"):
        measure_costs(
            Silent(),
            TEMPLATE,
            read_costs(model, secrets, []),
            secrets=secrets,
            method="sampled",
        )


def test_equal_costs_stay_equal_whatever_is_read_with_them():
    parts = np.random.default_rng(0).uniform(0, 9, (1, 11))
    automaton = compile_template(VOCABULARY.encode, TEMPLATE)
    for many in (1, 2, 40):
        costs = ReadCosts(automaton, parts, np.repeat(parts, many, axis=0), 0)
        found = measure_costs(Silent(), TEMPLATE, costs, secrets=["1234"], method="sampled")
        assert found.bits == [0.0]  # ties count against the canary


def test_a_small_space_is_drawn_to_its_end(model):
    template = Template("pin {digits:1}")
    found = measure_exposure(
        model, template, secrets=["3"], rng=np.random.default_rng(0), method="sampled"
    )
    assert len(found.reference_costs) == 9
    assert found.each[0].high <= math.log2(10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method='guess'"),
        ({"references": -1}, "references=-1"),
        ({"secrets": []}, "at least one secret"),
        ({"secrets": "1234"}, "at least one secret"),
        ({"method": "exact", "reference_models": ["x"]}, "takes no reference models"),
        ({"secrets": ["99x9"]}, "not one of the 10000"),
    ],
)
def test_faults(model, secrets, options, message):
    with pytest.raises(InvalidInput, match=message):
        measure_exposure(
            model, TEMPLATE, **{"secrets": secrets, "rng": np.random.default_rng(0), **options}
        )


def test_sampling_without_references(model, secrets):
    with pytest.raises(NotEnoughEvidence, match="needs references"):
        measure_exposure(
            model,
            TEMPLATE,
            secrets=secrets,
            rng=np.random.default_rng(0),
            method="sampled",
            references=0,
        )
