"""Adapters by the hundred: each member is what a plain loop over one adapted model gives."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.population import AdapterPopulation, Checkpoint, FrozenModel, LearningRate, Lora
from remnant.population.adapters import PADDING, _Dropout, _factor

VOCABULARY, WIDTH, LONGEST = 23, 12, 9
SEEDS = [5, 6, 2**31 - 1]
EVERYWHERE = ("query", "value", "out", "head")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        mixed = nn.functional.scaled_dot_product_attention(
            self.query(x), self.key(x), self.value(x), is_causal=True
        )
        return x + torch.tanh(self.out(mixed))


class Tiny(nn.Module):
    """A causal transformer of two blocks, its places told apart by a fixed code."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def body(self, tokens):
        places = torch.arange(tokens.shape[1])[:, None] / (1 + torch.arange(WIDTH))
        return self.blocks(
            self.embedding(tokens) + torch.sin(places).to(self.embedding.weight.dtype)
        )


@pytest.fixture
def tiny():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Tiny().double()


@pytest.fixture
def sequences():
    rng = np.random.default_rng(0)
    tokens = np.full((30, LONGEST), PADDING)
    for row, length in zip(tokens, rng.integers(2, LONGEST + 1, 30), strict=True):
        row[:length] = rng.integers(0, VOCABULARY, length)
    return tokens, rng.integers(0, 4, 30)


def frozen(model):
    return FrozenModel(model, model.body, model.head)


def batches(steps, members=3, batch=6, seed=1):
    return np.random.default_rng(seed).integers(0, 30, (steps, members, batch))


class PlainLora(nn.Module):
    """The definition: a dense layer and its adapter."""

    def __init__(self, layer, down, scale):
        super().__init__()
        self.layer, self.scale = layer, scale
        self.down = nn.Parameter(down)
        self.up = nn.Parameter(torch.zeros(layer.out_features, len(down), dtype=down.dtype))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.down.T) @ self.up.T


def adapted(model, start, *, scale, modules):
    """Return a copy of the model with plain adapters, and these by name."""
    model = copy.deepcopy(model).requires_grad_(False)
    adapters = {}
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear) and name.split(".")[-1] in modules:
            parent = model.get_submodule(name.rpartition(".")[0])
            adapters[name] = PlainLora(layer, start[f"{name}.A"].clone(), scale)
            setattr(parent, name.split(".")[-1], adapters[name])
    return model, adapters


def train_plainly(model, adapters, tokens, answers, rows, **options):
    """One model, one sequence at a time, without any padding."""
    parameters = [p for one in adapters.values() for p in (one.down, one.up)]
    rule = torch.optim.AdamW(parameters, **options)
    for step in rows:
        rule.zero_grad()
        losses = [loss_of(model, tokens[row], answers[row]) for row in step]
        torch.stack(losses).mean().backward()
        rule.step()
    return {
        f"{name}.{part}": getattr(one, long).detach()
        for name, one in adapters.items()
        for part, long in (("A", "down"), ("B", "up"))
    }


def end_of(model, row):
    tokens = torch.from_numpy(row[row != PADDING])[None]
    return model.body(tokens)[0, -1]


def loss_of(model, row, answer):
    return nn.functional.cross_entropy(model.head(end_of(model, row)), torch.tensor(answer))


def assert_same(one, other, tolerance=1e-9):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance, msg=name)


@pytest.mark.parametrize("modules", [("query", "value"), EVERYWHERE])
def test_each_member_equals_a_plain_loop_over_unpadded_sequences(modules, tiny, sequences):
    indices = batches(12)
    lora = Lora(rank=2, alpha=6.0, modules=modules)
    population = AdapterPopulation(frozen(tiny), SEEDS, lora=lora, precision="float64")
    starts = [population.state_dict(member) for member in range(3)]
    population.fit(*sequences, indices, lr=0.02, weight_decay=0.1)
    for member, start in enumerate(starts):
        plain, adapters = adapted(tiny, start, scale=3.0, modules=modules)
        expected = train_plainly(
            plain, adapters, *sequences, indices[:, member], lr=0.02, weight_decay=0.1
        )
        assert_same(population.state_dict(member), expected)
        assert any(bool((expected[name] != start[name]).any()) for name in start)


def test_a_member_does_not_depend_on_its_neighbours_or_the_split_with_dropout(tiny, sequences):
    indices = batches(8)
    lora = Lora(rank=2, dropout=0.3, modules=EVERYWHERE)
    options = {"lr": 0.02, "clip": 0.5, "learning_rate": LearningRate(kind="cosine", total=8)}
    whole = AdapterPopulation(frozen(tiny), SEEDS, lora=lora, precision="float64")
    whole.fit(*sequences, indices, **options)
    for members, split in (([2], None), ([1, 2], None), ([2, 0, 1], 2)):
        some = AdapterPopulation(
            frozen(tiny), [SEEDS[m] for m in members], lora=lora, precision="float64"
        )
        some.fit(*sequences, indices[:, members], split=split, **options)
        for place, member in enumerate(members):
            assert_same(some.state_dict(place), whole.state_dict(member))
    without = AdapterPopulation(
        frozen(tiny), SEEDS, lora=Lora(rank=2, modules=EVERYWHERE), precision="float64"
    )
    without.fit(*sequences, indices, **options)
    different = without.state_dict(0)["blocks.0.query.B"] - whole.state_dict(0)["blocks.0.query.B"]
    assert float(different.abs().max()) > 1e-4


def test_more_padding_changes_nothing(tiny, sequences):
    tokens, answers = sequences
    wider = np.pad(tokens, ((0, 0), (0, 5)), constant_values=PADDING)
    made = []
    for store in (tokens, wider):
        population = AdapterPopulation(
            frozen(tiny), SEEDS, lora=Lora(dropout=0.2, modules=EVERYWHERE), precision="float64"
        )
        population.fit(store, answers, batches(6), lr=0.02)
        made.append(population)
    assert_same(made[0].state_dict(1), made[1].state_dict(1))


def test_answers_are_those_of_each_member_alone_in_any_pieces(tiny, sequences):
    tokens, answers = sequences
    lora = Lora(rank=2, alpha=6.0, modules=EVERYWHERE)
    population = AdapterPopulation(frozen(tiny), SEEDS, lora=lora, precision="float64")
    starts = [population.state_dict(member) for member in range(3)]
    population.fit(tokens, answers, batches(5), lr=0.05)
    layers = ("last", "blocks.0", "blocks.1.query")
    for at_once in (None, 1, 40):
        logits = torch.full((3, 30, VOCABULARY), torch.nan, dtype=torch.float64)
        states = {name: torch.full((3, 30, WIDTH), torch.nan).double() for name in layers}
        for rows, some, found in population.ask(tokens, layers=layers, at_once=at_once):
            logits[:, rows] = some
            for name in layers:
                states[name][:, rows] = found[name]
        for member in range(3):
            plain, adapters = adapted(tiny, starts[member], scale=3.0, modules=EVERYWHERE)
            for name, one in adapters.items():
                own = population.state_dict(member)
                one.down.data, one.up.data = own[f"{name}.A"], own[f"{name}.B"]
            for place, row in enumerate(tokens):
                end = end_of(plain, row)
                torch.testing.assert_close(states["last"][member, place], end)
                torch.testing.assert_close(logits[member, place], plain.head(end))
                first = plain.blocks[0](embedded(plain, row))
                torch.testing.assert_close(states["blocks.0"][member, place], first[0, -1])
                query = plain.blocks[1].query(first)[0, -1]
                torch.testing.assert_close(states["blocks.1.query"][member, place], query)


def embedded(model, row):
    kept, model.blocks = model.blocks, nn.Identity()
    found = model.body(torch.from_numpy(row[row != PADDING])[None])
    model.blocks = kept
    return found


def test_members_start_from_their_seeds_as_the_model_itself(tiny, sequences):
    one = AdapterPopulation(frozen(tiny), [5, 6], lora=Lora(rank=3, modules=("query",)))
    other = AdapterPopulation(frozen(tiny), [6], lora=Lora(rank=3, modules=("query",)))
    assert_same(one.state_dict(1), other.state_dict(0), tolerance=0)
    first = one.state_dict(0)["blocks.0.query.A"]
    assert not torch.equal(first, one.state_dict(1)["blocks.0.query.A"])
    assert float(first.abs().max()) <= WIDTH**-0.5
    assert float(first.std()) == pytest.approx(WIDTH**-0.5 / math.sqrt(3), rel=0.3)
    assert not one.state_dict(0)["blocks.0.query.B"].any()
    rows, logits, _ = next(iter(one.ask(sequences[0])))
    for place, row in enumerate(rows):
        alone = tiny.head(end_of(tiny, sequences[0][row]))
        torch.testing.assert_close(logits[1, place], alone)


def test_training_learns_what_follows_and_goes_on_from_a_checkpoint(tiny, sequences, tmp_path):
    indices = batches(20, members=2)
    lora = Lora(rank=4, dropout=0.1, modules=EVERYWHERE)

    def losses(population):
        found = np.empty((2, 30))
        for rows, logits, _ in population.ask(sequences[0]):
            wanted = torch.from_numpy(sequences[1][rows]).expand(2, -1)[..., None]
            found[:, rows] = -logits.log_softmax(-1).gather(-1, wanted)[..., 0].numpy()
        return found

    def fresh():
        return AdapterPopulation(frozen(tiny), [1, 2], lora=lora, precision="float64")

    asked = {"probes": {"losses": losses}, "probe_steps": [0, 10, 20], "lr": 0.02}
    whole = fresh()
    fit = whole.fit(*sequences, indices, **asked)
    assert fit.probes["losses"][-1].mean() < 0.6 * fit.probes["losses"][0].mean()

    class Cut(Exception):
        pass

    def cut(done):
        if done == 13:
            raise Cut

    saving = Checkpoint(tmp_path / "c.safetensors", seconds=0.0, key="k")
    with pytest.raises(Cut):
        fresh().fit(*sequences, indices, checkpoint=saving, on_step=cut, **asked)
    resumed = fresh()
    again = resumed.fit(*sequences, indices, checkpoint=saving, **asked)
    np.testing.assert_array_equal(again.probes["losses"], fit.probes["losses"])
    assert_same(resumed.state_dict(1), whole.state_dict(1), tolerance=0)


def test_dropout_keeps_the_share_it_says_and_layers_are_not_alike():
    rows = torch.arange(8).repeat(2, 1)
    drop = _Dropout(0.25, torch.tensor([3, 4]), rows)
    drop.at(torch.arange(64).expand(2, 8, -1))
    inputs = torch.empty(2, 8 * 64, 32)
    masks = torch.stack([drop.kept(layer, inputs) for layer in range(40)]).double()
    assert float(masks.mean()) == pytest.approx(0.75, abs=2e-3)
    flat = masks.flatten(1)
    agreement = torch.corrcoef(flat)
    agreement.fill_diagonal_(0)
    assert float(agreement.abs().max()) < 0.05  # 5 deviations of 32 768 independent pairs are 0.028
    assert abs(float(torch.corrcoef(masks.transpose(0, 1).flatten(1))[0, 1])) < 0.01
    assert len({_factor(layer) for layer in range(300)}) == 300


def test_bf16_trains_float32_adapters_near_the_exact_ones(tiny, sequences):
    indices = batches(4)
    made = {}
    for precision in ("float32", "bf16"):
        population = AdapterPopulation(
            frozen(copy.deepcopy(tiny).float()),
            SEEDS,
            lora=Lora(rank=2, modules=EVERYWHERE),
            precision=precision,
        )
        population.fit(*sequences, indices, optimizer="sgd", lr=0.02)
        made[precision] = population.state_dict(0)
    for name, exact in made["float32"].items():
        assert made["bf16"][name].dtype == torch.float32
        torch.testing.assert_close(made["bf16"][name], exact, rtol=0.05, atol=0.01)


@pytest.mark.parametrize(
    ("lora", "error", "words"),
    [
        ({"modules": ("q_proj",)}, UnsupportedModel, r"\['q_proj'\]: the model has no dense"),
        ({"rank": 0}, InvalidInput, "rank=0 is not a whole number"),
        ({"dropout": 1.0}, InvalidInput, r"dropout=1.0 is not a rate"),
        ({"alpha": 0.0}, InvalidInput, "alpha=0.0 is not a number above 0"),
    ],
)
def test_what_cannot_be_adapted_is_said(lora, error, words, tiny):
    with pytest.raises(error, match=words):
        AdapterPopulation(frozen(tiny), SEEDS, lora=Lora(**lora))


def test_adapters_are_not_trained_privately(tiny, sequences):
    population = AdapterPopulation(frozen(tiny), [1], lora=Lora(modules=("query",)))
    with pytest.raises(InvalidInput, match="adapters cannot be trained with differential privacy"):
        population.fit(*sequences, batches(1, members=1), optimizer="dp-sgd", clip=1.0, noise=1.0)
    empty = batches(2, members=1)
    empty[1, 0, 0] = -1
    with pytest.raises(InvalidInput, match=r"the schedule has empty places \(-1\)"):
        population.fit(*sequences, empty, optimizer="sgd", lr=0.1)


def test_tokens_that_cannot_be_read_are_refused(tiny, sequences):
    population = AdapterPopulation(frozen(tiny), [1], lora=Lora(modules=("query",)))
    tokens = sequences[0].copy()
    tokens[3] = [PADDING, *tokens[3][:-1]]
    with pytest.raises(InvalidInput, match="is empty, or has padding before"):
        next(population.ask(tokens))
    with pytest.raises(InvalidInput, match=r"tokens of shape \(30,\)"):
        population.fit(tokens[:, 0], sequences[1], batches(1, members=1))
    with pytest.raises(UnsupportedModel, match="no layer 'blocks"):
        next(population.ask(sequences[0], layers=("blocks.7",)))
