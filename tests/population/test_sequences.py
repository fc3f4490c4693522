"""Populations of language models: member i of N equals the same member alone, and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.models import LanguageModel, Vocabulary, causal_cnn, gpt, gru, lstm, wavenet

V, TIMES, SEEDS = 9, 12, [3, 4, 5]
MODELS = {
    "lstm": lambda **o: lstm(V, units=6, **o),
    "lstm-embedded": lambda **o: lstm(V, units=6, embedding=4, **o),
    "gru": lambda **o: gru(V, units=6, **o),
    "causal_cnn": lambda **o: causal_cnn(V, units=6, layers=2, taps=3, **o),
    "wavenet": lambda **o: wavenet(V, units=6, layers=2, stacks=2, **o),
    "gpt": lambda **o: gpt(V, units=8, layers=2, heads=2, context=TIMES, **o),
}


@pytest.fixture
def windows():
    """Forty windows of tokens, two of which begin with the token for "no text yet"."""
    ids = torch.randint(0, V, (40, TIMES + 1), generator=torch.Generator().manual_seed(0))
    inputs, labels = ids[:, :-1].clone(), ids[:, 1:]
    inputs[:2, 0] = V
    return inputs, labels


def batches(steps, members):
    return np.random.default_rng(1).integers(0, 40, (steps, members, 8))


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("backend", ["stacked", "serial"])
@pytest.mark.parametrize("name", MODELS)
def test_each_member_equals_a_plain_loop(name, backend, windows):
    make, indices = MODELS[name], batches(6, 3)
    population = Population(make, seeds=SEEDS, precision="float64")
    population.fit(*windows, indices, optimizer="adam", lr=0.02, backend=backend)
    inputs, labels = windows
    for member, seed in enumerate(SEEDS):
        torch.manual_seed(seed)
        model = make().double().train()
        rule = torch.optim.Adam(model.parameters(), lr=0.02)
        for rows in torch.from_numpy(indices[:, member]):
            rule.zero_grad()
            logits = model(inputs[rows]).flatten(0, 1)
            nn.functional.cross_entropy(logits, labels[rows].flatten()).backward()
            rule.step()
        assert_same(population.state_dict(member), model.state_dict())


@pytest.mark.parametrize("name", MODELS)
def test_dropout_does_not_depend_on_the_neighbours_or_the_backend(name, windows):
    indices = batches(4, 3)

    def make():
        return MODELS[name](dropout=0.3)

    together = Population(make, seeds=SEEDS, precision="float64")
    together.fit(*windows, indices, lr=0.5)
    for backend in ("stacked", "serial"):
        alone = Population(make, seeds=SEEDS[1:2], precision="float64")
        alone.fit(*windows, indices[:, 1:2], lr=0.5, backend=backend)
        assert_same(alone.state_dict(0), together.state_dict(1))
    without = Population(MODELS[name], seeds=SEEDS, precision="float64")
    without.fit(*windows, indices, lr=0.5)
    moved = [without.state_dict(1)[n] - t for n, t in together.state_dict(1).items()]
    assert max(float(m.abs().max()) for m in moved) > 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_the_rule_stacks_them(name, windows):
    population = Population(MODELS[name], seeds=SEEDS)
    fit = population.fit(*windows, batches(1, 3), lr=0.1)
    assert (fit.backend, fit.reason) == ("stacked", "every layer vmaps")


@pytest.mark.parametrize("name", MODELS)
def test_coarse_training_keeps_its_weights_fine(name, windows):
    population = Population(MODELS[name], seeds=SEEDS[:2], precision="bf16")
    population.fit(*windows, batches(3, 2), lr=0.1)
    state = population.state_dict(0)
    assert all(t.dtype == torch.float32 and t.isfinite().all() for t in state.values())


@pytest.mark.parametrize("name", MODELS)
def test_a_trained_member_answers_as_the_population_does(name, windows):
    population = Population(MODELS[name], seeds=SEEDS, precision="float64")
    population.fit(*windows, batches(3, 3), lr=0.1)
    module = MODELS[name]().double()
    module.load_state_dict(population.state_dict(2))
    model = LanguageModel(module, Vocabulary.of_characters("abcdefghi"))
    text = windows[0][5]
    expected = population.logits(text[None])[2, 0].log_softmax(-1)
    log_probs, state = model.start(text[:1].tolist())
    for place in range(1, TIMES):
        torch.testing.assert_close(log_probs[0], expected[place - 1], rtol=0, atol=1e-10)
        log_probs, state = model.step(state, text[place : place + 1])
    torch.testing.assert_close(log_probs[0], expected[-1], rtol=0, atol=1e-10)


def test_a_population_learns_a_text_by_heart():
    text = "the random number is 281265017. " * 2
    vocabulary = Vocabulary.of_characters(text)
    ids = torch.tensor([vocabulary.encode(text)])
    population = Population(lambda: lstm(vocabulary.size, units=24, layers=1), seeds=[0, 1])
    indices = np.zeros((80, 2, 1), dtype=np.int64)
    population.fit(ids[:, :-1], ids[:, 1:], indices, optimizer="adam", lr=0.03)
    module = lstm(vocabulary.size, units=24, layers=1)
    module.load_state_dict(population.state_dict(1))
    model = LanguageModel(module, vocabulary)
    log_probs, state = model.start(vocabulary.encode("the random number is "))
    found = []
    for _ in range(9):
        found.append(int(log_probs.argmax()))
        log_probs, state = model.step(state, torch.tensor(found[-1:]))
    assert vocabulary.decode(found) == "281265017"


@pytest.mark.cuda
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpu_answers_as_a_cpu_does(name, dtype):
    torch.manual_seed(0)
    module, vocabulary = MODELS[name](), Vocabulary.of_characters("abcdefghi")
    here = LanguageModel(module, vocabulary, dtype=dtype)
    there = LanguageModel(module, vocabulary, dtype=dtype, device="cuda")
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    states = [here.start([1, 2])[1], there.start([1, 2])[1]]
    for rows in (torch.zeros(9), torch.arange(9).repeat_interleave(9), torch.tensor([80, 3])):
        new = torch.arange(len(rows)) % V
        found = []
        for place, model in enumerate((here, there)):
            log_probs, states[place] = model.step(model.take(states[place], rows.long()), new)
            found.append(log_probs.cpu())
        torch.testing.assert_close(*found, rtol=0, atol=tolerance)
