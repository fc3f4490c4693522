"""Claims that an adversary once refuted: each of these failed before it was mended."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InjectPlan, Population
from remnant.errors import InvalidInput, RecordError, UnsupportedModel
from remnant.population import Checkpoint, EarlyStop


def linear():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 5))


def assert_same(one, other, atol=1e-9):
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=atol, msg=name)


def rows(steps, members, seed=3, low=0, high=40):
    return np.random.default_rng(seed).integers(low, high, (steps, members, 8))


class Killed(BaseException):
    pass


def stopping(toy, indices, *, active=None, checkpoint=None, on_step=None, every=3, **options):
    inputs, labels = toy
    population = Population(linear, seeds=range(indices.shape[1]), precision="float64")
    rule = EarlyStop(inputs[40:], labels[40:], every=every, patience=2)
    fit = population.fit(
        inputs,
        labels,
        indices,
        active=active,
        lr=0.5,
        early_stop=rule,
        checkpoint=checkpoint,
        on_step=on_step,
        **options,
    )
    return population, fit


def test_early_stopping_goes_on_to_the_same_bits_from_every_step(toy, tmp_path):
    indices = rows(30, 4)
    whole, reference = stopping(toy, indices)
    for killed_at in range(1, 30):

        def kill(step, killed_at=killed_at):
            if step == killed_at:
                raise Killed

        checkpoint = Checkpoint(tmp_path / f"{killed_at}.safetensors", seconds=0)
        with contextlib.suppress(Killed):
            stopping(toy, indices, checkpoint=checkpoint, on_step=kill)
        again, fit = stopping(toy, indices, checkpoint=checkpoint)
        assert fit.stopped_at.tolist() == reference.stopped_at.tolist(), killed_at
        for member in range(4):
            assert_same(whole.state_dict(member), again.state_dict(member), atol=0)


def test_training_without_a_look_is_not_thrown_away(toy):
    indices = rows(10, 2)
    found, _ = stopping(toy, indices, every=40)
    plain = Population(linear, seeds=range(2), precision="float64")
    plain.fit(*toy, indices, lr=0.5)
    for member in range(2):
        assert_same(found.state_dict(member), plain.state_dict(member))


def test_a_skipped_update_is_no_miss(toy):
    indices, active = rows(60, 2), np.ones((60, 2), bool)
    active[5:30, 1] = False
    together, fit = stopping(toy, indices, active=active)
    inputs, labels = toy
    alone = Population(linear, seeds=[1], precision="float64")
    own = alone.fit(
        inputs,
        labels,
        indices[active[:, 1], 1][:, None],
        lr=0.5,
        early_stop=EarlyStop(inputs[40:], labels[40:], every=3, patience=2),
    )
    assert_same(together.state_dict(1), alone.state_dict(0))
    stopped = int(np.flatnonzero(np.cumsum(active[:, 1]) == own.stopped_at[0])[0]) + 1
    assert fit.stopped_at[1] == stopped


def test_a_trunk_and_early_stopping_agree_with_plain_arrays(toy):
    plan = InjectPlan(canaries=4, step=12, watch_steps=30, trials=2, batch=8)
    schedule = plan.schedule(examples=36)
    batches = [schedule.batch(step) for step in range(schedule.steps)]
    indices, active = (np.stack(part) for part in zip(*batches, strict=True))
    inputs, labels = toy
    stops = []
    for given, mask in ((schedule, None), (indices, active)):
        population = Population(linear, seeds=plan.seeds, precision="float64")
        fit = population.fit(
            inputs,
            labels,
            given,
            active=mask,
            lr=0.5,
            early_stop=EarlyStop(inputs[40:], labels[40:], every=3, patience=2),
        )
        stops.append(fit.stopped_at.tolist())
    assert stops[0] == stops[1]


def test_a_stopped_member_is_probed_alone_as_in_company(toy):
    probes = {"logits": lambda p: p.logits(toy[0][:2])}
    indices = rows(60, 3)
    _, company = stopping(toy, indices, probes=probes, probe_steps=[5, 30, 60])
    _, alone = stopping(toy, indices[:, :1], probes=probes, probe_steps=[5, 30, 60])
    assert alone.probe_steps == company.probe_steps == (5, 30, 60)
    np.testing.assert_allclose(alone.probes["logits"][:, 0], company.probes["logits"][:, 0])


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 6, padding_idx=0)
        self.head = nn.Linear(6, 5)

    def forward(self, tokens):
        return self.head(self.table(tokens).mean(1))


def test_a_padding_row_is_not_trained_in_any_member(toy):
    tokens = torch.randint(0, 10, (60, 7), generator=torch.Generator().manual_seed(0))
    population = Population(Padded, seeds=[0, 1, 2], precision="float64")
    fit = population.fit(tokens, toy[1], rows(20, 3), lr=0.5)
    assert fit.backend == "serial"
    for member in range(3):
        assert (population.state_dict(member)["table.weight"][0] == 0).all()


class Sometimes(nn.Module):
    """Skips a layer at random: torch.optim then leaves its weights alone, we refuse."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 5)

    def forward(self, inputs):
        inputs = inputs.flatten(1)
        if self.training and torch.rand(()) < 0.5:
            inputs = self.a(inputs)
        return self.b(inputs)


def test_a_gradient_that_comes_and_goes_is_refused(toy):
    for seed in range(3):
        torch.manual_seed(seed)
        with pytest.raises(UnsupportedModel, match="at some steps and not at others"):
            Population(Sometimes, seeds=[0, 1]).fit(*toy, rows(30, 2), lr=0.1)


class Rolling(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 5)

    def forward(self, inputs):
        return self.inner(inputs.flatten(1)) * (1 + 0.1 * random.random())


def test_randomness_that_torch_knows_nothing_of_is_refused(toy):
    with pytest.raises(UnsupportedModel, match="Python's or NumPy's"):
        Population(Rolling, seeds=[0]).fit(*toy, rows(2, 1), lr=0.1)


class TwiceDropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(64, 5)

    def forward(self, inputs):
        ones = torch.ones_like(inputs.flatten(1))
        self.masks = self.drop(ones), self.drop(ones)
        return self.head(self.masks[0] * self.masks[1])


def test_a_dropout_layer_used_twice_has_two_masks():
    model = TwiceDropped()
    from remnant.population.blueprint import Blueprint

    blueprint = Blueprint(model)
    blueprint.begin_pass(training=True)(torch.randn(4, 1, 8, 8))
    assert not torch.equal(*model.masks)
    first = model.masks
    blueprint.begin_pass(training=True)(torch.randn(4, 1, 8, 8))
    assert torch.equal(first[0], model.masks[0]), "the next pass counts from the start again"


class TiedBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Module(), nn.Module()
        shared = torch.ones(5)
        self.one.register_buffer("scale", shared)
        self.two.register_buffer("scale", shared)
        self.head = nn.Linear(64, 5)

    def forward(self, inputs):
        if self.training:
            self.one.scale.mul_(1.01)
        return self.head(inputs.flatten(1)) * self.two.scale


def test_a_buffer_under_two_names_is_one(toy):
    found = {}
    for backend in ("stacked", "serial"):
        population = Population(TiedBuffer, seeds=[0, 1], precision="float64")
        population.fit(*toy, rows(10, 2), lr=0.1, backend=backend)
        found[backend] = population.state_dict(1)
    assert_same(found["stacked"], found["serial"])


def test_logits_do_not_depend_on_the_neighbours_even_without_running_statistics(toy):
    def make():
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.BatchNorm1d(8, track_running_stats=False),
            nn.Linear(8, 5),
        )

    images = torch.randn(3000, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    many = Population(make, seeds=range(40), precision="float64").logits(images)
    alone = Population(make, seeds=[7], precision="float64").logits(images)
    torch.testing.assert_close(many[7], alone[0])


@pytest.mark.parametrize("length", [5, 3])
def test_sequences_are_classified_along_the_last_axis(length, toy):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 5)

        def forward(self, tokens):
            return self.head(self.table(tokens))

    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 9, (60, length), generator=generator)
    tags = torch.randint(0, 5, (60, length), generator=generator)
    indices = rows(20, 2)
    population = Population(Tagger, seeds=[0, 1], precision="float64")
    population.fit(tokens, tags, indices, lr=0.5)
    torch.manual_seed(1)
    model = Tagger().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for row in torch.from_numpy(indices[:, 1]):
        optimizer.zero_grad()
        logits = model(tokens[row]).flatten(0, 1)
        nn.functional.cross_entropy(logits, tags[row].flatten()).backward()
        optimizer.step()
    assert_same(population.state_dict(1), model.state_dict())


class Branching(nn.Module):
    """Decides by a value: vmap cannot, so it needs the serial backend, for its logits too."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 5)

    def forward(self, inputs):
        made = self.inner(inputs.flatten(1))
        return made if made.sum() > 0 else -made


def test_logits_use_the_backend_that_the_fit_was_asked_for(toy):
    population = Population(Branching, seeds=[0, 1])
    assert population.logits(toy[0]).shape == (2, 60, 5)
    with pytest.raises(UnsupportedModel, match="backend='serial'"):
        population.fit(*toy, rows(2, 2), lr=0.1, backend="stacked")
    assert population.fit(*toy, rows(2, 2), lr=0.1).backend == "serial"
    assert population.logits(toy[0]).shape == (2, 60, 5)


class Shared(nn.Module):
    """One submodule under two names."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 64)
        self.again = self.a
        self.head = nn.Linear(64, 5)

    def forward(self, inputs):
        return self.head(torch.tanh(self.again(torch.tanh(self.a(inputs.flatten(1))))))


@pytest.mark.parametrize("backend", ["stacked", "serial"])
def test_a_submodule_under_two_names_is_one(backend, toy):
    indices = rows(20, 2)
    population = Population(Shared, seeds=[0, 1], precision="float64")
    population.fit(*toy, indices, lr=0.1, backend=backend)
    before = population.logits(toy[0])
    states = [population.state_dict(m) for m in (0, 1)]
    torch.testing.assert_close(population.logits(toy[0]), before)
    torch.manual_seed(1)
    model = Shared().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for row in torch.from_numpy(indices[:, 1]):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(toy[0][row].double()), toy[1][row]).backward()
        optimizer.step()
    assert_same(states[1], model.state_dict())


@pytest.mark.parametrize(
    "wrong",
    [
        {"split": -1},
        {"split": 0},
        {"split": 1.5},
        {"steps": 2.5},
        {"steps": True},
        {"probe_steps": 5},
    ],
)
def test_numbers_that_are_not_whole_are_refused(wrong, toy):
    with pytest.raises(InvalidInput):
        Population(linear, seeds=[0]).fit(*toy, rows(4, 1), lr=0.1, **wrong)
    for seeds in ("12", 0, None, [1.5], ["a"]):
        with pytest.raises(InvalidInput, match="seeds"):
            Population(linear, seeds=seeds)


def test_a_bad_row_late_in_an_array_is_refused_before_training(toy):
    indices = rows(10, 1)
    indices[9, 0, 0] = 10**6
    population = Population(linear, seeds=[0])
    before = population.state_dict(0)
    with pytest.raises(InvalidInput, match="1000000"):
        population.fit(*toy, indices, lr=0.1)
    assert_same(before, population.state_dict(0), atol=0)


def test_one_example_has_logits_also_with_batch_norm(toy):
    def make():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))

    assert Population(make, seeds=[0]).logits(toy[0][:1]).shape == (1, 1, 5)


@pytest.mark.parametrize(
    "change", ["data", "schedule", "start", "probes", "early_stop", "second fit", "model"]
)
def test_a_checkpoint_of_any_other_training_is_refused(change, toy, tmp_path):
    inputs, labels = toy
    checkpoint = Checkpoint(tmp_path / "c.safetensors", seconds=0)
    indices = rows(6, 2)

    def train(population, images=inputs, batches=indices, **options):
        population.fit(images, labels, batches, lr=0.1, checkpoint=checkpoint, **options)

    first = Population(linear, seeds=[0, 1])
    train(first)
    again = Population(linear, seeds=[0, 1])
    deeper = Population(lambda: nn.Sequential(*linear(), nn.Tanh(), nn.Linear(5, 5)), [0, 1])
    warm = Population(linear, seeds=[0, 1], start=first.state_dict(0))
    others = {
        "data": lambda: train(again, images=inputs + 1),
        "schedule": lambda: train(again, batches=rows(6, 2, seed=9)),
        "start": lambda: train(warm),
        "probes": lambda: train(
            again, probes={"x": lambda p: p.logits(inputs[:1])}, probe_steps=[2]
        ),
        "early_stop": lambda: train(again, early_stop=EarlyStop(inputs, labels, every=2)),
        "second fit": lambda: train(first),
        "model": lambda: train(deeper),
    }
    with pytest.raises(RecordError, match="settings"):
        others[change]()


def test_seeds_are_the_members_own_again_after_a_short_fit(toy):
    plan = InjectPlan(canaries=4, step=12, watch_steps=5, trials=1, batch=8, twins="fresh")
    population = Population(linear, seeds=plan.seeds, dropout_seeds=plan.dropout_seeds)
    rates = [0.1, 0.2, 0.3]  # members that differ cannot share the trunk
    population.fit(*toy, plan.schedule(examples=50), lr=rates, steps=3)
    assert population._state["seeds"]["dropout"].tolist() == plan.dropout_seeds
